"""What the module is configured with, and the rules that come of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Final, Literal, TypeAlias

import attrs

from amplifier_kit.rules import Rule, RuledCall, RuleSet
from amplifier_kit.shell.decisions import Decision
from amplifier_sdk import ConfigError
from amplifier_sdk.bounds import seconds
from amplifier_sdk.configuration import read_config
from amplifier_sdk.effects import ONLY_READS, Effect, effects_of
from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "ApprovalConfig",
    "AuditSettings",
    "PatternRule",
    "Policy",
    "Scope",
    "ToolSettings",
    "risk_of",
]

_WILD: Final = frozenset("*?[|$")

Scope: TypeAlias = Literal["once", "session", "project", "everywhere"]
"""How far an answer reaches."""


@attrs.frozen(kw_only=True)
class Policy:
    """The rules that hold; the first `configured` ones are written in the configuration."""

    rules: RuleSet
    configured: int


@attrs.frozen(kw_only=True)
class ToolSettings:
    """The decision for a tool whatever its arguments: ask about it, or let it run where no rule is stricter."""

    require_approval: bool


@attrs.frozen(kw_only=True)
class AuditSettings:
    """The record of what was decided.

    Args:
        enabled: whether it is written.
        path: the file; default `audit/approvals.jsonl` in `AMPLIFIER_HOME`, else in `~/.amplifier`.
        require_record: whether a call whose decision cannot be recorded is denied.
    """

    enabled: bool = True
    path: str | None = None
    require_record: bool = False


_FIVE_MINUTES: Final[float | None] = 300.0
_A_MONTH: Final[float | None] = 30.0


@attrs.frozen(kw_only=True)
class ApprovalConfig:
    """The configuration.

    Args:
        rules: rules on calls, and patterns of commands; the strictest that fits counts.
        otherwise: what becomes of a call that no rule is about; default `ask`.
        policy_driven_only: ask about nothing but what rules and `tools` name: `otherwise: allow`.
        allow_reads: let tools that only read run, where no rule is stricter.
        default_action: the decision when nobody answers; `continue` lets a tool that only reads run.
        default_timeout: seconds to wait for an answer; `None` means as long as it takes.
        tools: decisions for single tools.
        effects: what tools do that do not say so themselves.
        scopes: how far a person may let an answer reach.
        permission_days: after how many days a permission ends that outlasts its session; `None` means never.
        audit: the record of what was decided.
    """

    rules: tuple[Mapping[str, JSONValue], ...] = ()
    otherwise: Decision | None = None
    policy_driven_only: bool = False
    allow_reads: bool = True
    default_action: Literal["deny", "continue"] = "deny"
    default_timeout: float | None = attrs.field(
        default=_FIVE_MINUTES, validator=attrs.validators.optional(seconds)
    )
    tools: Mapping[str, ToolSettings] = attrs.field(factory=dict)
    effects: Mapping[str, tuple[Effect, ...]] = attrs.field(factory=dict)
    scopes: tuple[Scope, ...] = ("once", "session", "project", "everywhere")
    permission_days: float | None = attrs.field(
        default=_A_MONTH, validator=attrs.validators.optional(seconds)
    )
    audit: AuditSettings = AuditSettings()

    @property
    def timeout(self) -> float:
        """Seconds to wait for an answer."""
        if self.default_timeout is None:
            return inf
        return self.default_timeout

    def effects_of(self, name: str, tool: object) -> frozenset[Effect] | None:
        """Return what a tool does: what it says itself, else what is configured or known; `None` when nobody says."""
        return effects_of(tool, name=name, configured=self.effects)

    def load_policy(self, directory: Path) -> Policy:
        """Read the rules and check their examples.

        Args:
            directory: where relative paths start.

        Raises:
            ConfigError: a rule cannot be read, an example does not hold, or two keys contradict each other.
        """
        if self.policy_driven_only and self.otherwise not in (None, "allow"):
            problem = f"contradicts policy_driven_only, which means allow; got {self.otherwise!r}"
            raise ConfigError.of(
                "otherwise", problem, subject="configuration of hooks-approval"
            )
        otherwise = self.otherwise or ("allow" if self.policy_driven_only else "ask")
        given = [self._read_rule(index, rule) for index, rule in enumerate(self.rules)]
        rules = RuleSet.checked(
            [*given, *self._own_rules()], directory=directory, otherwise=otherwise
        )
        return Policy(rules=rules, configured=len(given))

    def _read_rule(self, index: int, rule: Mapping[str, JSONValue]) -> Rule:
        subject = f"rules[{index}] of hooks-approval"
        if "pattern" in rule or "action" in rule:
            return read_config(PatternRule, rule, subject=subject).as_rule(subject)
        return read_config(Rule, rule, subject=subject)

    def _own_rules(self) -> Iterator[Rule]:
        for name, settings in self.tools.items():
            decision: Decision = "allow"
            if settings.require_approval:
                decision = "ask"
            reason = f"tools.{name}.require_approval is {str(settings.require_approval).lower()}"
            yield Rule(decision=decision, tools=(name,), reason=reason)
        if self.allow_reads:
            yield Rule(decision="allow", effects=("read",), reason="it only reads")


def risk_of(call: RuledCall) -> str:
    """Say how much is at stake: `low` for a tool that only reads, `high` for one that runs programs or says nothing."""
    if call.effects is None or "exec" in call.effects:
        return "high"
    if call.effects == ONLY_READS:
        return "low"
    return "medium"


@attrs.frozen(kw_only=True)
class PatternRule:
    """A pattern of commands and what becomes of them.

    `ls*` is the command `ls` with any words behind it, never `lsof`; `pwd` is `pwd` alone.
    """

    pattern: str
    action: Literal["auto_approve", "auto_deny"]
    description: str | None = None

    def as_rule(self, subject: str) -> Rule:
        """Return the rule that means this.

        Args:
            subject: what is configured, for the message.

        Raises:
            ConfigError: the pattern approves commands that it does not name.
        """
        words = self.pattern.split()
        if self.action == "auto_deny":
            # As widely as it can be meant: the words as they are, and anything behind them.
            return Rule(
                decision="deny",
                tools=("*",),
                commands=(f"{' '.join(words)} **",),
                reason=self.description,
            )
        if words and words[-1].endswith("*"):
            words[-1:] = [word for word in (words[-1].rstrip("*"), "**") if word]
        if (
            not words
            # A wildcard inside a word would approve what nobody thought of, as `rm*`
            # does `rmdir`.
            or any(_WILD & set(word) for word in words if word != "**")
            or words[0] == "**"
        ):
            problem = (
                f"{self.pattern!r} approves commands that it does "
                "not name; write their words, as in 'git status*'"
            )
            raise ConfigError.of("pattern", problem, subject=subject)
        return Rule(
            decision="allow", commands=(" ".join(words),), reason=self.description
        )
