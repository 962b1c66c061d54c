"""Which of our events the hooks of plugin folders handle, what they read, and what their answers do."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from amplifier_kit.claude_plugins import claude_calls, to_claude
from amplifier_module_hooks_shell._hookrunner import HookRunner
from amplifier_module_hooks_shell._surroundings import (
    NAME,
    EnvironmentFile,
    HookEnvironment,
)
from amplifier_module_hooks_shell._verdicts import Halt, Verdicts
from amplifier_sdk.events import (
    APPROVAL_REQUIRED,
    CONTEXT_PRE_COMPACT,
    PROMPT_SUBMIT,
    SESSION_END,
    SESSION_RESUME,
    SESSION_START,
    TOOL_POST,
    TOOL_PRE,
    USER_NOTIFICATION,
    ApprovalRequired,
    ContextPreCompact,
    PromptSubmit,
    SessionEnd,
    SessionStart,
    ToolPost,
    ToolPre,
    UserNotification,
)
from amplifier_sdk.loops.events import STOPPING, Stopping
from amplifier_sdk.results import HookResult, ToolResult

__all__ = ["ClaudeEvents"]

_EARLY: Final = -100
_MAX_ASKED: Final = 256


class ClaudeEvents:
    """The handlers of one session.

    Args:
        surroundings: the session's.
        runner: what runs the hooks.
    """

    def __init__(self, surroundings: HookEnvironment, runner: HookRunner) -> None:
        self._surroundings = surroundings
        self._runner = runner
        self._hooks = surroundings.coordinator.hooks
        self._questions: OrderedDict[object, str] = OrderedDict()
        self._halt = Halt(self._hooks)

    def register(self) -> None:
        """Hear the events that there are hooks for, and no others."""
        has = self._runner.has
        longest = self._runner.longest
        listen = self._surroundings.listen
        if has("PreToolUse"):
            listen(
                TOOL_PRE,
                self._before_tool,
                decides=True,
                priority=_EARLY,
                runs=longest("PreToolUse"),
            )
            listen(TOOL_PRE, self._question, decides=True, priority=_EARLY + 1)
        if has("PostToolUse"):
            listen(TOOL_POST, self._after_tool, runs=longest("PostToolUse"))
        if has(self._stop):
            listen(STOPPING, self._stopping, runs=longest(self._stop))
        if has("PreCompact"):
            listen(CONTEXT_PRE_COMPACT, self._compacting, runs=longest("PreCompact"))
        if not self._surroundings.is_child:
            self._register_persons()

    def _register_persons(self) -> None:
        """Hear what concerns the person: a child has none of its own."""
        has = self._runner.has
        longest = self._runner.longest
        listen = self._surroundings.listen
        if has("UserPromptSubmit"):
            listen(
                PROMPT_SUBMIT,
                self._submitted,
                decides=True,
                priority=_EARLY,
                runs=longest("UserPromptSubmit"),
            )
        if has("SessionStart"):
            for event in (SESSION_START, SESSION_RESUME):
                listen(event, self._started, runs=longest("SessionStart"))
        if has("SessionEnd"):
            listen(SESSION_END, self._ended, runs=longest("SessionEnd"))
        if has("Notification"):
            listen(USER_NOTIFICATION, self._notified)
            listen(APPROVAL_REQUIRED, self._permission_needed)

    @property
    def _stop(self) -> str:
        if self._surroundings.is_child:
            return "SubagentStop"
        return "Stop"

    # -- tools

    async def _before_tool(self, _: str, data: ToolPre) -> HookResult | None:
        """Let hooks deny a call, change it, or have the person asked; what they cannot say is a denial."""
        place = _call_of(data)
        self._questions.pop(place, None)
        # another handler may have put anything there
        arguments: object = data["tool_input"]
        if not isinstance(arguments, Mapping):
            return HookResult.deny(
                f"The arguments of {data['tool_name']!r} are no object"
            )
        calls = claude_calls(data["tool_name"], arguments, self._surroundings.directory)
        verdicts = Verdicts([])
        for call in calls:
            fields = {
                "tool_name": call.name,
                "tool_input": call.arguments,
                "tool_use_id": data.get("tool_call_id", ""),
            }
            verdicts = verdicts.plus(
                await self._runner.ask("PreToolUse", call.names, fields)
            )
        if not verdicts:
            return None
        refusal = self._refusal(verdicts, data)
        if refusal is not None:
            return refusal
        try:
            changes = verdicts.changes()
        except ValueError as error:
            return HookResult.deny(str(error))
        await self._add(verdicts, verdicts.context(), TOOL_PRE)
        if verdicts.questions:
            self._questions[place] = "\n".join(
                reply.plain_why for reply in verdicts.questions
            )
            while len(self._questions) > _MAX_ASKED:
                self._questions.popitem(last=False)
        message = self._message(verdicts, plain=True)
        if changes is None:
            return HookResult(user_message=message) if message else None
        if len(calls) > 1:
            return HookResult.deny(
                f"A hook changes the arguments of {data['tool_name']!r}, which it knows by other ones"
            )
        changed = {"tool_input": calls[0].with_changes(changes)}
        return HookResult(
            action="modify",
            data=changed,
            user_message=message,
            suppress_output=verdicts.suppressed,
        )

    async def _question(self, _: str, data: ToolPre) -> HookResult | None:
        """Have the person asked about a call, as the hooks wanted."""
        asked = self._questions.get(_call_of(data))
        if asked is None:
            return None
        return HookResult.ask(self._surroundings.shown(asked))

    async def _after_tool(self, _: str, data: ToolPost) -> HookResult | None:
        """Tell the model what hooks say of a result."""
        call = to_claude(
            data["tool_name"], data["tool_input"], self._surroundings.directory
        )
        result = data["result"]
        fields = {
            "tool_name": call.name,
            "tool_input": call.arguments,
            "tool_response": _response(result),
            "tool_result": result.get_serialized_output(),
            "tool_use_id": data.get("tool_call_id", ""),
        }
        verdicts = await self._runner.ask("PostToolUse", call.names, fields)
        if verdicts.halt is not None:
            self._halt.set(verdicts.halt, data.get("turn_id"))
        blocked = [reply.why for reply in verdicts.denials]
        text = "\n\n".join(
            filter(None, [*blocked, verdicts.context(messages=not blocked)])
        )
        return self._adding(verdicts, text, self._message(verdicts, plain=True))

    # -- prompts and turns

    async def _submitted(self, _: str, data: PromptSubmit) -> HookResult | None:
        """Let hooks refuse a prompt, or add to it."""
        fields = {"prompt": data["prompt"], "user_prompt": data["prompt"]}
        verdicts = await self._runner.ask("UserPromptSubmit", (), fields)
        if not verdicts:
            return None
        refusal = self._refusal(verdicts, None)
        if refusal is not None:
            return refusal
        if verdicts.questions:
            return HookResult.ask(
                self._surroundings.shown(verdicts.questions[0].plain_why)
            )
        return self._adding(
            verdicts, verdicts.context(plain=True), self._message(verdicts)
        )

    async def _stopping(self, _: str, data: Stopping) -> HookResult | None:
        """Keep the agent at work when a hook says that it is not done; as often as is allowed."""
        if data["continued"] >= self._surroundings.config.max_stops:
            return None
        fields = {
            "stop_hook_active": data["continued"] > 0,
            "reason": "completed",
            "last_assistant_message": data["response"],
        }
        verdicts = await self._runner.ask(self._stop, (), fields)
        message = self._message(verdicts, plain=True)
        if verdicts.halt is None and verdicts.denials:
            reason = "\n\n".join(reply.why for reply in verdicts.denials)
            return HookResult(
                action="deny",
                reason=self._surroundings.cut(reason),
                user_message=message,
            )
        if message:
            return HookResult(user_message=message)
        return None

    async def _compacting(self, _: str, data: ContextPreCompact) -> HookResult | None:
        """Let hooks say what must not be forgotten: it stands in the request for which the history is shortened."""
        fields = {
            "trigger": "auto",
            "custom_instructions": "",
            "message_count": data["message_count"],
        }
        verdicts = await self._runner.ask("PreCompact", ("auto",), fields)
        text = verdicts.context(plain=True)
        if text:
            added = HookResult.inject(
                self._surroundings.cut(text),
                role="user",
                ephemeral=True,
                suppress_output=verdicts.suppressed,
            )
            await self._hooks.host.process_hook_result(added, CONTEXT_PRE_COMPACT, NAME)
        return None

    # -- sessions

    async def _started(self, event: str, _: SessionStart) -> HookResult | None:
        """Let hooks say what the agent should know from the start, and set variables for what is run later."""
        source = "startup"
        if event == SESSION_RESUME:
            source = "resume"
        file = EnvironmentFile(self._surroundings)
        verdicts = await self._runner.ask(
            "SessionStart",
            (source,),
            {"source": source},
            {"CLAUDE_ENV_FILE": file.path},
        )
        await file.read()
        return self._adding(
            verdicts, verdicts.context(plain=True), self._message(verdicts)
        )

    async def _ended(self, _: str, data: SessionEnd) -> None:
        """Tell hooks that the session is over; the session's clean-up waits some seconds for them."""
        await self._runner.ask(
            "SessionEnd",
            ("other",),
            {"reason": "other", "status": data.get("status", "")},
        )

    async def _notified(self, _: str, data: UserNotification) -> None:
        """Pass the person's notifications to hooks."""
        kind = data.get("notification_type") or "notification"
        fields = {"message": data["message"], "notification_type": kind}
        await self._runner.observe("Notification", (kind,), fields)

    async def _permission_needed(self, _: str, data: ApprovalRequired) -> None:
        """Tell hooks that the person is asked."""
        kind = "permission_prompt"
        message = f"Permission is needed: {data.get('tool_name') or data['prompt']}"
        await self._runner.observe(
            "Notification", (kind,), {"message": message, "notification_type": kind}
        )

    # -- what answers do

    def _refusal(
        self, verdicts: Verdicts, data: Mapping[str, object] | None
    ) -> HookResult | None:
        """Return the denial that hooks ask for, or that their failure is; `data` is the call's."""
        reason = verdicts.failure
        if verdicts.denials:
            reason = "; ".join(reply.plain_why for reply in verdicts.denials)
        if verdicts.halt is not None:
            reason = verdicts.halt
            if data is not None:
                self._halt.set(reason, data.get("turn_id"))
        if reason is None:
            return None
        return HookResult(
            action="deny",
            reason=self._surroundings.cut(reason),
            user_message=self._message(verdicts),
        )

    async def _add(self, verdicts: Verdicts, text: str, event: str) -> None:
        added = self._adding(verdicts, text, None)
        if added is not None:
            await self._hooks.host.process_hook_result(added, event, NAME)

    def _adding(
        self, verdicts: Verdicts, text: str, message: str | None
    ) -> HookResult | None:
        if text:
            return HookResult.inject(
                self._surroundings.cut(text),
                role="user",
                user_message=message,
                suppress_output=verdicts.suppressed,
            )
        if message:
            return HookResult(user_message=message)
        return None

    def _message(self, verdicts: Verdicts, *, plain: bool = False) -> str | None:
        message = verdicts.message(plain=plain)
        if message is None:
            return None
        return self._surroundings.shown(message)


def _call_of(data: ToolPre) -> object:
    return data.get("tool_call_id") or data.get("span_id")


def _response(result: ToolResult) -> dict[str, object]:
    if result.success:
        return {"success": True, "output": result.output}
    return {"success": False, "error": dict(result.error or {})}
