"""The hook: evaluates each tool call, asks where that is wanted, and keeps what was answered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from logging import getLogger
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.commands import COMMANDS
from amplifier_kit.files.homes import amplifier_home
from amplifier_kit.files.session_folders import working_directory
from amplifier_kit.open_data import as_object
from amplifier_kit.rules import RuledCall
from amplifier_kit.rules.permissions import PERMISSIONS, PermissionRule, Permissions
from amplifier_module_hooks_approval._choices import DENY, ApprovalChoice, Choices
from amplifier_module_hooks_approval._commands import commands_of
from amplifier_module_hooks_approval._identity import Distributions, Keys
from amplifier_module_hooks_approval._record import AnswersFile
from amplifier_module_hooks_approval._verdicts import ApprovalDecision, evaluate
from amplifier_module_hooks_approval.config import (
    ApprovalConfig,
    Policy,
    Scope,
    risk_of,
)
from amplifier_sdk import Coordinator, HookResult, hook, on
from amplifier_sdk.assessments import ACCEPTED, Assessment, assess
from amplifier_sdk.events import (
    APPROVAL_DENIED,
    APPROVAL_GRANTED,
    TOOL_ERROR,
    TOOL_PRE,
    ApprovalDenied,
    ApprovalGranted,
    ToolErrorPayload,
    ToolPre,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.legible import asked_text
from amplifier_sdk.toolinfo import called_tool

__all__ = ["ApprovalHook"]

_log: Final = getLogger(__name__)
_LAST: Final = 1000
_SECONDS_OF_A_DAY: Final = 86_400


@attrs.frozen(kw_only=True)
class _Asked:
    """A call to be decided: what it is, what its tool says of it, and what permissions for it are known by."""

    call: RuledCall
    assessment: Assessment
    keys: Keys | None


@attrs.frozen(kw_only=True)
class _Pending:
    """A question that was handed over to be asked; `text` is how it reads."""

    asked: _Asked
    text: str
    choices: Choices


@hook
class ApprovalHook:
    """Lets tool calls run, asks a person, or refuses them.

    The question is asked by the session: once, last, about the arguments that will run.

    Raises:
        ConfigError: a rule cannot be read, or one of its examples does not hold.
    """

    def __init__(self, config: ApprovalConfig, coordinator: Coordinator) -> None:
        self._config: Final = config
        self._coordinator: Final = coordinator
        self._distributions: Final = Distributions()
        self._pending: Final[dict[object, _Pending]] = {}
        self._policy: tuple[Path, Policy] = (
            self._directory,
            config.load_policy(self._directory),
        )
        audit = config.audit
        if audit.path is not None:
            path = Path(audit.path).expanduser()
        else:
            path = amplifier_home() / "audit" / "approvals.jsonl"
        self._record: Final = (
            AnswersFile(self._directory / path) if audit.enabled else None
        )
        self._home: Final = amplifier_home()
        inherited = coordinator.get_capability(PERMISSIONS)
        self.permissions: Final = (
            inherited if isinstance(inherited, Permissions) else Permissions.in_home()
        )
        coordinator.register_capability(PERMISSIONS, self.permissions)
        coordinator.register_contributor(
            COMMANDS, "hooks-approval", lambda: commands_of(self.permissions)
        )

    @on(TOOL_PRE, priority=_LAST)
    async def decide(self, _: str, data: ToolPre) -> HookResult | None:
        """Evaluate a call by the rules and by what its tool says; ask where that is wanted and nobody allowed it."""
        name, tool = data["tool_name"], called_tool(data, self._coordinator)
        # another handler may have put anything there
        arguments: object = data["tool_input"]
        if not isinstance(arguments, Mapping):
            return HookResult.deny(f"The arguments of {name!r} are no object")
        assessment = await assess(tool, dict(arguments)) or Assessment()
        declared = assessment.effects
        if declared is None:
            effects = self._config.effects_of(name, tool)
        else:
            effects = frozenset(declared)
        call = RuledCall(
            tool_name=name,
            arguments=arguments,
            directory=self._directory,
            effects=effects,
            shell_directory=None
            if assessment.directory is None
            else Path(assessment.directory),
        )
        verdict = evaluate(call, assessment, self._current_policy(), self._wanted())
        if verdict.decision == "deny":
            await self._write("denied", call, data, reason=verdict.reason)
            return HookResult.deny(verdict.reason)
        if assessment.problem is not None:
            return None  # it cannot work: the session says so, and nobody is asked
        if verdict.decision == "allow":
            return await self._allow(call, data, verdict.reason)
        asked = _Asked(
            call=call, assessment=assessment, keys=self._keys_of(call, tool, assessment)
        )
        return await self._ask(asked, verdict, data)

    @on(APPROVAL_GRANTED, decides=True)
    async def granted(self, _: str, data: ApprovalGranted) -> HookResult | None:
        """Keep a permission as far as the person said, and record it."""
        pending = self._pending.pop(data.get("span_id"), None)
        if pending is None:
            return None
        answer = data.get("reason", "")
        # Another hook may have asked about the same call; its answer is none to this
        # question.
        is_own = asked_text(pending.text) in data.get("prompt", "")
        decision = "granted elsewhere"
        if is_own:
            decision = "granted"
        refusal = await self._write(decision, pending.asked.call, data, reason=answer)
        if refusal is not None or not is_own:
            return refusal
        choice = pending.choices.chosen(answer)
        if choice is not None and choice.scope != "once":
            await self._keep(pending.asked, choice)
        return None

    @on(APPROVAL_DENIED)
    async def refused(self, _: str, data: ApprovalDenied) -> None:
        """Record that it was not allowed."""
        pending = self._pending.pop(data.get("span_id"), None)
        if pending is not None:
            await self._write(
                "refused", pending.asked.call, data, reason=data.get("reason", "")
            )

    @on(TOOL_ERROR)
    def over(self, _: str, data: ToolErrorPayload) -> None:
        """Forget a question that was not asked, since another handler refused the call."""
        self._pending.pop(data.get("span_id"), None)

    def _current_policy(self) -> Policy:
        directory, policy = self._policy
        # the application said later where the session works
        if directory != self._directory:
            policy = self._config.load_policy(self._directory)
            self._policy = (self._directory, policy)
        return policy

    def _wanted(self) -> Collection[object]:
        """Return the tools that the session's state names: other modules may write it."""
        state: object = getattr(self._coordinator, "session_state", None)
        wanted: object = as_object(state).get("require_approval_tools")
        if isinstance(wanted, (list, tuple, set, frozenset)):
            return wanted
        return ()

    async def _allow(self, call: RuledCall, data: ToolPre, reason: str) -> HookResult:
        return await self._write(
            "allowed", call, data, reason=reason
        ) or HookResult.approve(reason)

    async def _ask(
        self, asked: _Asked, verdict: ApprovalDecision, data: ToolPre
    ) -> HookResult:
        call, keys = asked.call, asked.keys
        if verdict.by_rule:
            asked = attrs.evolve(
                # A rule that asks wants each call asked about, not a kind of them at
                # once.
                asked,
                assessment=attrs.evolve(asked.assessment, coverages=()),
            )
        before = None
        if not verdict.by_state:
            before = await self._allowed_before(asked)
        if before is not None:
            return await self._allow(call, data, before)
        refusal = await self._write("asked", call, data, reason=verdict.reason)
        if refusal is not None:
            return refusal
        choices = Choices.of(
            self._scopes(keys), () if keys is None else asked.assessment.coverages
        )
        text = _question(asked, verdict, choices, self._config.permission_days)
        # By the step's id: the answer comes as an event of its own, and questions may
        # overlap.
        self._pending[data.get("span_id")] = _Pending(
            asked=asked, text=text, choices=choices
        )
        is_harmless = (
            risk_of(call) == "low" and self._config.default_action == "continue"
        )
        return HookResult.ask(
            text,
            options=[*choices.texts, DENY],
            allowing=choices.texts,
            timeout=self._config.timeout,
            default="allow" if is_harmless else "deny",
            risk=risk_of(call),
        )

    def _keys_of(
        self, call: RuledCall, tool: object, assessment: Assessment
    ) -> Keys | None:
        if tool is None:
            return None
        try:
            return Keys.of(call, tool, self._distributions, assessment)
        except ValueError:  # what cannot be written down cannot be recognised again
            return None

    def _scopes(self, keys: Keys | None) -> tuple[Scope, ...]:
        """Return how far an answer may reach; one that is stored wants a known tool and a place outside the project."""
        wanted = self._config.scopes
        if keys is None:
            return tuple(scope for scope in wanted if scope == "once")
        if keys.identity.distribution is None or self._home.resolve().is_relative_to(
            self._directory.resolve()
        ):
            # A model that may write in the project could otherwise write its own
            # permission.
            return tuple(scope for scope in wanted if scope in ("once", "session"))
        return wanted

    async def _allowed_before(self, asked: _Asked) -> str | None:
        """Say who allowed a call before: whoever opened the session, or a permission; `None` where nobody did."""
        accepted = self._coordinator.get_capability(ACCEPTED)
        coverages = asked.assessment.coverages
        if isinstance(accepted, frozenset) and any(
            coverage.key in accepted for coverage in coverages
        ):
            return "accepted for this session"
        if asked.keys is None:
            return None
        scopes = [scope for scope in _LASTING if scope in self._config.scopes]
        kinds = [
            asked.keys.of_kind(each.key, scope)
            for each in coverages
            for scope in scopes
        ]
        try:
            known = await self.permissions.find([asked.keys.call, *kinds])
        except OSError as error:  # what cannot be read allows nothing
            _log.warning(
                "What was allowed before cannot be read, so it is asked about again: %s",
                error,
            )
            return None
        if known is None or known.scope not in self._config.scopes:
            return None
        return f"allowed before: {known.action}"

    async def _keep(self, asked: _Asked, choice: ApprovalChoice) -> None:
        keys, call = asked.keys, asked.call
        assert keys is not None  # else no choice lasts
        assert choice.scope != "once"
        identity, coverage = keys.identity, choice.coverage
        days = None
        if choice.scope != "session":
            days = self._config.permission_days
        now = self.permissions.clock()
        permission = PermissionRule(
            id=keys.call
            if coverage is None
            else keys.of_kind(coverage.key, choice.scope),
            scope=choice.scope,
            tool_name=call.tool_name,
            action=self._redacted_text(call.canonical)
            if coverage is None
            else coverage.label,
            folder="" if choice.scope == "everywhere" else str(call.directory),
            distribution=f"{identity.distribution} {identity.version}"
            if identity.distribution
            else "",
            granted=now,
            expires=None if days is None else now + days * _SECONDS_OF_A_DAY,
        )
        try:
            await self.permissions.grant(permission)
        except OSError as error:
            _log.warning(
                "Allowed this once: the permission cannot be stored. %s", error
            )

    async def _write(
        self, decision: str, call: RuledCall, data: Mapping[str, object], *, reason: str
    ) -> HookResult | None:
        """Record a decision; return a denial when it cannot be recorded and has to be."""
        if self._record is None:
            return None
        entry: JSONObject = {
            "decision": decision,
            "tool": call.tool_name,
            "arguments": self._redacted(dict(call.arguments)),
            "reason": self._redacted_text(reason),
            "risk": risk_of(call),
            "folder": str(call.directory),
            "session_id": str(data.get("session_id", "")),
            "turn_id": str(data.get("turn_id", "")),
            "span_id": str(data.get("span_id", "")),
        }
        try:
            await self._record.append(entry)
        except (OSError, ValueError) as error:
            problem = f"The decision on {call.tool_name!r} cannot be recorded: {error}"
            if self._config.audit.require_record:
                return HookResult.deny(problem)
            _log.warning("%s", problem)
        return None

    def _redacted(self, value: JSONValue) -> JSONValue:
        # its rules take a while to load
        from amplifier_kit.redaction import redactor_of

        return redactor_of(self._coordinator).redact(value)

    def _redacted_text(self, text: str) -> str:
        return str(self._redacted(text))

    @property
    def _directory(self) -> Path:
        return working_directory(self._coordinator)


_LASTING: Final = ("session", "project", "everywhere")


def _question(
    asked: _Asked, verdict: ApprovalDecision, choices: Choices, days: float | None
) -> str:
    """Write what the person reads below the tool and its arguments."""
    call, assessment = asked.call, asked.assessment
    effects = "unknown effects"
    if call.effects is not None:
        effects = ", ".join(sorted(call.effects))
    directory = assessment.directory or str(call.directory)
    lines: Sequence[str] = [
        *filter(None, [assessment.details, assessment.confinement]),
        f"Risk: {risk_of(call)} ({effects}). Asked because {verdict.reason}.",
        *choices.explained(directory, days),
    ]
    return "\n".join(lines)
