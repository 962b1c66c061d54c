"""What the rules say of a command before it runs, that it runs only as they say, and the rules that hold by default."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import attrs

from amplifier_kit.shell import CommandRule, PolicyDecision, ShellPolicy, standard_table
from amplifier_kit.shell.coverage import prefix_of
from amplifier_kit.shell.decisions import Decision
from amplifier_kit.shell.file_access import file_accesses
from amplifier_kit.shell.network import installs_what_is_locked, reaches_network
from amplifier_module_tool_bash.config import BashConfig
from amplifier_module_tool_bash.surroundings import ShellEnvironment
from amplifier_sdk.assessments import EDITS, Assessment, Coverage
from amplifier_sdk.effects import Effect
from amplifier_sdk.errors import ToolError

__all__ = ["DEFAULT_RULES", "CommandPermission", "make_policy"]

_DENY: Final = CommandRule(
    decision="deny",
    commands=(
        "rm ** /|//|/.|/[*]|/bin|/boot|/dev|/etc|/home|/lib|/lib64|/opt|/proc|/root|/sbin|/srv|/sys|/usr|/var|/Users",
        "rm ** --no-preserve-root",
        "mkfs*",
        "wipefs|fdisk|sfdisk|parted|mkswap",
        "dd ** of=/dev/sd*|of=/dev/nvme*|of=/dev/vd*|of=/dev/hd*|of=/dev/disk*|of=/dev/mmc*",
        "shutdown|reboot|halt|poweroff",
    ),
    reason="it would destroy more than a session may risk",
    match=(
        "rm -rf /",
        "rm -rf /usr",
        "mkfs.ext4 /dev/sda1",
        "dd if=/dev/zero of=/dev/sda",
    ),
    not_match=("rm -rf build", "rm x", "dd if=a of=b"),
)
_ASK: Final = (
    CommandRule(
        decision="ask",
        commands=("sudo|doas|su|pkexec",),
        reason="it acts with another person's rights",
    ),
    CommandRule(
        decision="ask",
        commands=("git ** --receive-pack*|--upload-pack*|--exec*|--config-env*",),
        reason="it says which program git runs",
        match=("git push --receive-pack=x",),
        not_match=("git push",),
    ),
)
"""What an answer to a command that looks alike does not cover."""
DEFAULT_RULES: Final = (*_ASK, _DENY)
"""The default rules, which count before the table."""

_REMEMBERED: Final = 64
_SHOWN: Final = 500
_MAX_NAMES: Final = 20
_EDITS: Final = Coverage(key=EDITS, label="edits by commands")
_NETWORK: Final = "This call gets access to the network."
_NO_BACKUP: Final = "No backup can be made of all that this command may change."


class CommandPermission:
    """Evaluates commands: when a call is assessed, which says whether a person is asked, and again when it runs.

    Args:
        config: the module's configuration.
        surroundings: where commands run.

    Raises:
        ConfigError: a rule's example does not hold; names the rule.
    """

    def __init__(self, config: BashConfig, surroundings: ShellEnvironment) -> None:
        self._policy = make_policy(
            config.rules, config.unlisted, has_defaults=config.default_rules
        )
        self._ask_always = config.require_approval
        self._has_network = config.network
        self._surroundings = surroundings
        self._assessed: OrderedDict[tuple[str, bool], str] = OrderedDict()

    def assess(self, command: str, *, network: bool = False) -> Assessment:
        """Return what the rules say of a command.

        Args:
            command: the shell text.
            network: whether the call asks for access to the network.
        """
        self._surroundings.return_if_gone()
        verdict = self._verdict(command, network)
        if verdict.decision == "deny":
            return Assessment(decision="deny", reason=_denial(verdict))
        self._note(command, network)
        wants_network = self._wants_network(command, network)
        decision: Decision | None = verdict.decision
        effects: list[Effect] = ["exec"]
        details = []
        if wants_network:
            effects.append("network")
            if not self._has_network:
                details.append(_NETWORK)
        if verdict.edits:
            effects.append("write")
            details.append(_shown_edits(verdict.edits))
            if decision == "allow":
                decision = None  # who decides on edits decides
        # An edit that may be undone is allowed more lightly than one that may not,
        # so the question must not let a person take the one for the other.
        if verdict.decision == "ask" and self._may_use_any_file(command):
            details.append(_NO_BACKUP)
        part = ""
        if verdict.part.strip() not in ("", command.strip()):
            part = f" ({verdict.part[:_SHOWN]})"
        return Assessment(
            effects=effects,
            decision=decision,
            reason=f"{verdict.reason}{part}",
            details="\n".join(details),
            # to accept edits or a kind of command is no word about secrets
            is_firm=verdict.cause == "secret",
            coverages=self._coverages(command, verdict, network),
            directory=self._surroundings.directory,
            confinement=self._surroundings.confinement(
                network=self._has_network or wants_network
            ),
        )

    def check(self, command: str, *, network: bool = False) -> bool:
        """Let a command pass that the rules allow, or that was assessed and not refused.

        Returns:
            Whether it may reach the network.

        Raises:
            ToolError: it is denied, nobody was asked although somebody must be, or it was decided on elsewhere.
        """
        self._surroundings.return_if_gone()
        # taken out at once: one answer covers one run
        decided_in = self._assessed.pop((command, network), None)
        directory = self._surroundings.directory
        if decided_in not in (None, directory):
            # Another command of the same turn moved, or the folder is gone.
            raise ToolError(
                f"Not run: commands work in {directory!r} now, and it was decided on in {decided_in!r}; call again"
            )
        verdict = self._verdict(command, network)
        if verdict.decision == "deny":
            raise ToolError(_denial(verdict), type="denied")
        if verdict.decision == "allow":
            return self._has_network or installs_what_is_locked(
                command, self._surroundings.variables
            )
        if decided_in is None:
            raise ToolError(
                f"Not run: a person must allow this command, because {verdict.reason}",
                type="denied",
            )
        return self._has_network or self._wants_network(command, network)

    def _may_use_any_file(self, command: str) -> bool:
        """Whether backups cannot know beforehand which files a command changes."""
        surroundings = self._surroundings
        # backups go by these paths, so what is no path here has no copy there
        accesses = file_accesses(
            command, surroundings.directory, surroundings.variables
        )
        return any(access.path is None and access.writes for access in accesses)

    def _note(self, command: str, network: bool) -> None:
        self._assessed[command, network] = self._surroundings.directory
        # a call that was assessed and refused never runs, so its entry would stay
        while len(self._assessed) > _REMEMBERED:
            self._assessed.popitem(last=False)

    def _wants_network(self, command: str, network: bool) -> bool:
        return network or reaches_network(command, self._surroundings.variables)

    def _coverages(
        self, command: str, verdict: PolicyDecision, network: bool
    ) -> tuple[Coverage, ...]:
        """Name the commands that one answer may cover: edits, and such as no rule is about and can be evaluated."""
        if verdict.decision == "allow" and verdict.edits:
            return (_EDITS,)
        # what a rule asks about, or what cannot be evaluated, is asked each time
        if verdict.decision != "ask" or verdict.cause != "unlisted" or network:
            return ()
        prefix = prefix_of(command, self._surroundings.variables)
        if prefix is None:
            return ()
        return (
            Coverage(
                key=f"command {prefix}", label=f"commands that begin with {prefix!r}"
            ),
        )

    def _verdict(self, command: str, network: bool) -> PolicyDecision:
        surroundings = self._surroundings
        verdict = self._policy.evaluate(
            command, surroundings.path_policy, surroundings.variables
        )
        if verdict.decision != "allow":
            return verdict
        if self._ask_always:
            return PolicyDecision(
                decision="ask", reason="every command is", part=command
            )
        if network and not self._has_network:
            return attrs.evolve(
                verdict,
                decision="ask",
                reason="it wants access to the network",
                part=command,
            )
        return verdict


def _shown_edits(edits: Sequence[str]) -> str:
    """Name what is written over; a name never looks like more than one."""
    names = [f"{edit!a:.120}" for edit in edits[:_MAX_NAMES]]
    if len(edits) > _MAX_NAMES:
        names.append(f"and {len(edits) - _MAX_NAMES} more")
    return f"Writes over {', '.join(names)}."


def _denial(verdict: PolicyDecision) -> str:
    return f"A rule refuses {verdict.part[:_SHOWN]!r}: {verdict.reason}"


def make_policy(
    rules: tuple[CommandRule, ...] = (),
    unlisted: Decision = "ask",
    *,
    has_defaults: bool = True,
) -> ShellPolicy:
    """Return what decides on commands.

    Args:
        rules: those of the configuration; they come first, so that a message about `rules[0]` means its first one.
        unlisted: what becomes of a command that no rule and no usage of the table fits.
        has_defaults: whether the default rules and the table hold besides.
    """
    if not has_defaults:
        return ShellPolicy(rules, unlisted)
    return ShellPolicy((*rules, *DEFAULT_RULES), unlisted, standard_table())
