"""A turn that an editor watches: its events as updates of a session, without secrets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio
import attrs
from anyio import to_thread

from amplifier.acp.tool_calls import CallView, call_update, text_content
from amplifier.kernel.groups import open_group
from amplifier_kit.commands import SessionCommand
from amplifier_kit.redaction import SinkFilter
from amplifier_kit.todos import TodosUpdated
from amplifier_sdk.chat import ToolCall, Usage
from amplifier_sdk.errors import TurnCancelled
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.results import ToolResult
from amplifier_sdk.streaming import (
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)

if TYPE_CHECKING:
    from amplifier.app.sessions.opened import TurnEvents
    from amplifier.kernel.sessions.session import AmplifierSession

__all__ = [
    "RunningTurn",
    "Send",
    "StopReason",
    "TurnUpdates",
    "chunk",
    "commands_of",
    "plan_of",
]

Send: TypeAlias = Callable[[JSONObject], Awaitable[None]]
"""Sends one update of a session."""

StopReason: TypeAlias = Literal[
    "end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"
]

_REASONS: Final[Mapping[str | None, StopReason]] = {
    "length": "max_tokens",
    "content_filter": "refusal",
}
_MAX_OUTPUT: Final = 50_000
"""Characters of a tool's output that an editor is shown."""


def chunk(kind: str, text: str) -> JSONObject:
    """Return a piece of what somebody said."""
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def commands_of(commands: Mapping[str, SessionCommand]) -> JSONObject:
    """Return what there is to type behind a slash, by name."""
    listed: list[JSONValue] = []
    for name, command in commands.items():
        shown: JSONObject = {"name": name, "description": command.description or name}
        if command.argument_hint:
            shown["input"] = {"hint": command.argument_hint}
        listed.append(shown)
    return {"sessionUpdate": "available_commands_update", "availableCommands": listed}


def plan_of(data: TodosUpdated) -> JSONObject:
    """Return the plan that an agent keeps of its work."""
    entries: list[JSONValue] = [
        {"content": item["content"], "priority": "medium", "status": item["status"]}
        for item in data["todos"]
    ]
    return {"sessionUpdate": "plan", "entries": entries}


@attrs.define(eq=False)
class TurnUpdates:
    """Sends what happens in one turn.

    Args:
        send: sends an update.
        view: shows tool calls.
        tools: the session's tools, by name.
    """

    send: Send
    view: CallView
    tools: Mapping[str, object]
    _announced: set[str] = attrs.field(factory=set, init=False)
    _kind: str = attrs.field(default="", init=False)
    _filter: SinkFilter = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._filter = SinkFilter(self.view.redactor)

    async def take(self, event: StreamEvent) -> None:
        """Send what an event says."""
        match event:
            case TextDelta(text=text):
                await self._say("agent_message_chunk", text)
            case ThinkingDelta(text=text):
                await self._say("agent_thought_chunk", text)
            case ToolStarted(call=call):
                await self.end_text()
                await self.announce(call.id, call.name, call.arguments, "in_progress")
            case ToolFinished(call=call, result=result):
                await self.end_text()
                await self._finish(call, result)
            case TurnFinished():
                await self.end_text()
            case _:
                return

    async def announce(
        self, call_id: str, name: str, arguments: Mapping[str, JSONValue], status: str
    ) -> JSONObject:
        """Show a call, with what it would change while that can still be seen; return its description."""
        shown = self.view.shown(call_id, name, arguments, self.tools.get(name))
        if call_id in self._announced:
            await self.send(call_update(call_id, status))
            return shown
        self._announced.add(call_id)
        shown["content"] = await to_thread.run_sync(
            partial(self.view.diffs, name, arguments)
        )
        await self.send({"sessionUpdate": "tool_call", **shown, "status": status})
        return shown

    async def end_text(self) -> None:
        """Send what was held of a text because it could have been part of a secret."""
        rest = self._filter.end()
        if rest:
            await self.send(chunk(self._kind, rest))

    async def _say(self, kind: str, text: str) -> None:
        if kind != self._kind:
            await self.end_text()
            self._kind = kind
        shown = self._filter.feed(text)
        if shown:
            await self.send(chunk(kind, shown))

    async def _finish(self, call: ToolCall, result: ToolResult) -> None:
        if call.id not in self._announced:
            await self.announce(call.id, call.name, call.arguments, "pending")
        status = "completed" if result.success else "failed"
        content: list[JSONObject] = []
        has_diff = call.name in ("write_file", "edit_file")
        # An edit keeps its diff.
        if not (result.success and has_diff):
            text = self.view.redactor.redact_text(result.get_serialized_output())
            if len(text) > _MAX_OUTPUT:
                text = (
                    f"{text[:_MAX_OUTPUT]}\n[{len(text) - _MAX_OUTPUT} characters more]"
                )
            content.append(text_content(text))
        await self.send(call_update(call.id, status, *content))


@attrs.define(eq=False)
class RunningTurn:
    """A turn that runs, or a command, and how it ended.

    Args:
        stop: why it ended.
        error: what ended it otherwise.
    """

    stop: StopReason = "cancelled"
    error: Exception | None = None
    _usage: Usage | None = attrs.field(default=None, init=False)
    _in_turn: bool = attrs.field(default=False, init=False)
    _cancelled: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    @property
    def result(self) -> JSONObject:
        """Why it ended, and what it used.

        Raises:
            Exception: whatever ended it otherwise.
        """
        if self.error is not None:
            raise self.error
        if self._usage is None:
            return {"stopReason": self.stop}
        return {"stopReason": self.stop, "usage": _usage_of(self._usage)}

    def cancel(self) -> None:
        """Stop it, at once."""
        self._cancelled.set()

    async def run(
        self, session: AmplifierSession, answer: Callable[[], Awaitable[StopReason]]
    ) -> None:
        """Run until the answer, a cancellation or an error ends it."""
        try:
            async with open_group() as group:
                scope = anyio.CancelScope()
                group.start_soon(self._cancel_when_asked, scope, session)
                with scope:
                    self.stop = await answer()
                group.cancel_scope.cancel()
        except TurnCancelled:
            self.stop = "cancelled"
        except Exception as error:  # providers and tools fail as they like
            self.error = error

    async def show(
        self, turn: AbstractAsyncContextManager[TurnEvents], updates: TurnUpdates
    ) -> StopReason:
        """Send the events of a turn, and return why it ended."""
        finished = None
        async with turn as events:
            self._in_turn = True
            async for event in events:
                await updates.take(event)
                if isinstance(event, TurnFinished):
                    finished, self._usage = event, event.usage
        return _stop_reason(finished)

    async def _cancel_when_asked(
        self, scope: anyio.CancelScope, session: AmplifierSession
    ) -> None:
        await self._cancelled.wait()
        if self._in_turn:
            await session.cancel(immediate=True)
        else:
            scope.cancel()


def _stop_reason(finished: TurnFinished | None) -> StopReason:
    """Say why a turn ended."""
    if finished is None:
        return "end_turn"
    if finished.limit is not None:
        return "max_turn_requests"
    return _REASONS.get(finished.finish_reason, "end_turn")


def _usage_of(usage: Usage) -> JSONObject:
    """Return the tokens that a turn used; parts that the provider does not report are left out."""
    parts = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.total_tokens,
        "thoughtTokens": usage.reasoning_tokens,
        "cachedReadTokens": usage.cache_read_tokens,
        "cachedWriteTokens": usage.cache_write_tokens,
    }
    return {name: tokens for name, tokens in parts.items() if tokens is not None}
