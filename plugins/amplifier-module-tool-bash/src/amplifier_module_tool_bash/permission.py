"""Whether a command may run: the rules, and the person where they say so."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from amplifier_module_tool_bash.config import BashConfig
from amplifier_module_tool_bash.default_rules import DEFAULT_RULES
from amplifier_module_tool_bash.surroundings import Surroundings
from amplifier_sdk.errors import ToolError
from amplifier_sdk.kit.shell import Judge, Verdict
from amplifier_sdk.results import HookResult

__all__ = ["Permission"]

_REMEMBERED: Final = 64
_OPTIONS: Final = ("Allow once", "Allow always", "Deny")
_SHOWN: Final = 500


class Permission:
    """Judges commands, before handlers decide on a call and again when it runs.

    Args:
        config: the module's configuration.
        surroundings: where commands run.

    Raises:
        ConfigError: a rule's example does not hold; names the rule.
    """

    def __init__(self, config: BashConfig, surroundings: Surroundings) -> None:
        # The configuration's come first, so that a message about `rules[0]` means its first one.
        self._judge = Judge((*config.rules, *(DEFAULT_RULES if config.default_rules else ())), config.unlisted)
        self._ask_always = config.require_approval
        self._surroundings = surroundings
        self._asked: OrderedDict[str, None] = OrderedDict()

    def decide(self, command: str) -> HookResult | None:
        """Return what the rules say of a call: nothing, a denial, or a question to the person."""
        verdict = self._verdict(command)
        if verdict.decision == "deny":
            return HookResult.deny(_denial(verdict))
        if verdict.decision == "allow":
            return None
        self._asked[command] = None
        while len(self._asked) > _REMEMBERED:
            self._asked.popitem(last=False)
        part = f" ({verdict.part[:_SHOWN]})" if verdict.part.strip() not in ("", command.strip()) else ""
        return HookResult.ask(f"Run this command? It is asked about because {verdict.reason}{part}", options=_OPTIONS)

    def check(self, command: str) -> None:
        """Let a command pass that the rules allow, or that a person was asked about and did not refuse.

        Raises:
            ToolError: it is denied, or nobody was asked although somebody must be.
        """
        verdict = self._verdict(command)
        if verdict.decision == "deny":
            raise ToolError(_denial(verdict), type="denied")
        if verdict.decision == "ask" and self._asked.pop(command, self) is self:
            raise ToolError(f"Not run: a person must allow this command, because {verdict.reason}", type="denied")

    def _verdict(self, command: str) -> Verdict:
        surroundings = self._surroundings
        verdict = self._judge.judge(command, surroundings.places, surroundings.variables)
        if self._ask_always and verdict.decision == "allow":
            return Verdict(decision="ask", reason="every command is", part=command)
        return verdict


def _denial(verdict: Verdict) -> str:
    return f"A rule refuses {verdict.part[:_SHOWN]!r}: {verdict.reason}"
