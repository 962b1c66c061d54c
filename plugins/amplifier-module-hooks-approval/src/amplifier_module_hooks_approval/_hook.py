"""The hook: judges each tool call, asks where that is wanted, and keeps what was answered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from logging import getLogger
from pathlib import Path
from typing import Final, Literal

import attrs

from amplifier_module_hooks_approval._identity import CallKey, Distributions
from amplifier_module_hooks_approval._memory import Permission, Permissions
from amplifier_module_hooks_approval._record import Record
from amplifier_module_hooks_approval.config import ApprovalConfig, Scope, risk_of
from amplifier_sdk import Coordinator, HookResult, hook, on
from amplifier_sdk.events import (
    APPROVAL_DENIED,
    APPROVAL_GRANTED,
    TOOL_ERROR,
    TOOL_PRE,
    ApprovalDenied,
    ApprovalGranted,
    ToolErrorRaised,
    ToolPre,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.kit.homes import amplifier_home
from amplifier_sdk.kit.private_files import PrivateFile
from amplifier_sdk.kit.rules import Call, Judgement, RuleSet

__all__ = ["ApprovalHook"]

PERMISSIONS: Final = "approval.permissions"
"""The capability under which `Permissions` are offered."""

_log: Final = getLogger(__name__)
_LAST: Final = 1000
_OPTIONS: Final[Mapping[Scope, str]] = {
    "once": "Allow once",
    "session": "Allow in this session",
    "project": "Allow in this project",
}


@attrs.frozen(kw_only=True)
class _Pending:
    """A question that was handed over to be asked; `key` is `None` when its answer cannot be kept."""

    call: Call
    asked: str
    key: CallKey | None


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
        self._rules: tuple[Path, RuleSet] = (self._directory, config.load_rules(self._directory))
        audit = config.audit
        path = (
            Path(audit.path).expanduser() if audit.path is not None else amplifier_home() / "audit" / "approvals.jsonl"
        )
        self._record: Final = Record(self._directory / path) if audit.enabled else None
        self._home: Final = amplifier_home()
        self.permissions: Final = Permissions(PrivateFile(self._home / "approvals" / "projects.json"))
        coordinator.register_capability(PERMISSIONS, self.permissions)

    @on(TOOL_PRE, priority=_LAST)
    async def decide(self, _: str, data: ToolPre) -> HookResult | None:
        """Judge a call by the rules; ask where they say so and nobody allowed it before."""
        name, tool = data["tool_name"], data.get("tool_obj")
        arguments: object = data["tool_input"]  # another handler may have put anything there
        if not isinstance(arguments, Mapping):
            return HookResult.deny(f"The arguments of {name!r} are no object")
        call = Call(
            tool_name=name,
            arguments=arguments,
            directory=self._directory,
            effects=self._config.effects_of(name, tool),
        )
        judgement = self._judge(call)
        if judgement.decision == "deny":
            await self._write("denied", call, data, reason=judgement.reason)
            return HookResult.deny(judgement.reason)
        if judgement.decision == "allow":
            return await self._write("allowed", call, data, reason=judgement.reason)
        return await self._ask(call, judgement, tool, data)

    @on(APPROVAL_GRANTED, decides=True)
    async def granted(self, _: str, data: ApprovalGranted) -> HookResult | None:
        """Keep a permission for as long as the person said, and record it."""
        pending = self._pending.pop(data.get("span_id"), None)
        if pending is None:
            return None
        answer = data.get("reason", "")
        is_own = pending.asked in data.get("prompt", "")
        refusal = await self._write("granted" if is_own else "granted elsewhere", pending.call, data, reason=answer)
        if refusal is not None or not is_own:
            return refusal
        for scope in ("session", "project"):
            if answer.casefold() == _OPTIONS[scope].casefold() and scope in self._scopes(pending.key):
                await self._keep(pending, scope)
        return None

    @on(APPROVAL_DENIED)
    async def refused(self, _: str, data: ApprovalDenied) -> None:
        """Record that it was not allowed."""
        pending = self._pending.pop(data.get("span_id"), None)
        if pending is not None:
            await self._write("refused", pending.call, data, reason=data.get("reason", ""))

    @on(TOOL_ERROR)
    def over(self, _: str, data: ToolErrorRaised) -> None:
        """Forget a question that was not asked, since another handler refused the call."""
        self._pending.pop(data.get("span_id"), None)

    def _judge(self, call: Call) -> Judgement:
        directory, rules = self._rules
        if directory != call.directory:  # the application said later where the session works
            rules = self._config.load_rules(call.directory)
            self._rules = (call.directory, rules)
        judgement = rules.judge(call)
        if judgement.decision == "allow" and call.tool_name in self._wanted():
            return Judgement(decision="ask", reason="the session's state wants it asked about")
        return judgement

    def _wanted(self) -> Collection[object]:
        """Return the tools that the session's state names: other modules may write it."""
        state: object = getattr(self._coordinator, "session_state", None)
        wanted = state.get("require_approval_tools") if isinstance(state, Mapping) else None
        return wanted if isinstance(wanted, (list, tuple, set, frozenset)) else ()

    async def _ask(self, call: Call, judgement: Judgement, tool: object, data: ToolPre) -> HookResult | None:
        key = None if tool is None else self._key_of(call, tool)
        if key is not None and (known := await self._known(key)) is not None:
            return await self._write("allowed", call, data, reason=f"allowed before, in this {known.scope}")
        refusal = await self._write("asked", call, data, reason=judgement.reason)
        if refusal is not None:
            return refusal
        risk = risk_of(call)
        scopes = self._scopes(key)
        asked = _question(call, judgement, risk, scopes)
        self._pending[data.get("span_id")] = _Pending(call=call, asked=asked, key=key)
        is_harmless = risk == "low" and self._config.default_action == "continue"
        return HookResult.ask(
            asked,
            options=[*(_OPTIONS[scope] for scope in scopes), "Deny"],
            allowing=[_OPTIONS[scope] for scope in scopes],
            timeout=self._config.timeout,
            default="allow" if is_harmless else "deny",
            risk=risk,
        )

    def _key_of(self, call: Call, tool: object) -> CallKey | None:
        try:
            return CallKey.of(call, tool, self._distributions)
        except ValueError:  # what cannot be written down cannot be recognised again
            return None

    def _scopes(self, key: CallKey | None) -> tuple[Scope, ...]:
        """Return how long this call may be allowed; a project's permission wants a known tool and a place outside."""
        wanted = [scope for scope in _OPTIONS if scope in self._config.scopes]
        if key is None:
            wanted = [scope for scope in wanted if scope == "once"]
        elif key.identity.distribution is None or self._home.resolve().is_relative_to(self._directory.resolve()):
            wanted = [scope for scope in wanted if scope != "project"]
        return tuple(wanted) or ("once",)

    async def _known(self, key: CallKey) -> Permission | None:
        try:
            return await self.permissions.find(key.digest)
        except OSError as error:  # what cannot be read allows nothing
            _log.warning("What was allowed in projects cannot be read, so it is asked about again: %s", error)
            return None

    async def _keep(self, pending: _Pending, scope: Literal["session", "project"]) -> None:
        key, call = pending.key, pending.call
        assert key is not None  # else the scope is not offered
        identity = key.identity
        permission = Permission(
            id=key.digest,
            scope=scope,
            tool_name=call.tool_name,
            action=self._redacted_text(call.canonical),
            folder=str(call.directory),
            distribution=f"{identity.distribution} {identity.version}" if identity.distribution else "",
        )
        try:
            await self.permissions.grant(permission)
        except OSError as error:
            _log.warning("Allowed this once: the permission cannot be kept. %s", error)

    async def _write(self, decision: str, call: Call, data: Mapping[str, object], *, reason: str) -> HookResult | None:
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
        from amplifier_sdk.kit.redaction import redactor_of  # its rules take a while to load

        return redactor_of(self._coordinator).redact(value)

    def _redacted_text(self, text: str) -> str:
        return str(self._redacted(text))

    @property
    def _directory(self) -> Path:
        told = self._coordinator.get_capability("session.working_dir")
        return Path(told).absolute() if isinstance(told, (str, Path)) else Path.cwd()


def _question(call: Call, judgement: Judgement, risk: str, scopes: Sequence[Scope]) -> str:
    """Write what the person reads below the tool and its arguments."""
    effects = "unknown effects" if call.effects is None else ", ".join(sorted(call.effects))
    lines = [f"Risk: {risk} ({effects}). Asked because {judgement.reason}."]
    lasting = [_OPTIONS[scope] for scope in scopes if scope != "once"]
    if lasting:
        lines.append(f"{' and '.join(map(repr, lasting))} cover exactly this call, in {call.directory}.")
    return "\n".join(lines)
