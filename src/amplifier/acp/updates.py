"""The events of a turn as updates of a session, without secrets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, Literal, TypeAlias

import attrs
from anyio import to_thread

from amplifier.acp.tool_calls import CallView, text_content
from amplifier_kit.redaction import SinkFilter
from amplifier_kit.todos import TodosUpdated
from amplifier_sdk.chat import ToolCall, Usage
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

__all__ = [
    "Send",
    "StopReason",
    "TurnUpdates",
    "chunk",
    "plan_of",
    "stop_reason",
    "usage_of",
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


def plan_of(data: TodosUpdated) -> JSONObject:
    """Return the plan that an agent keeps of its work."""
    entries: list[JSONValue] = [
        {"content": item["content"], "priority": "medium", "status": item["status"]}
        for item in data["todos"]
    ]
    return {"sessionUpdate": "plan", "entries": entries}


def stop_reason(finished: TurnFinished | None) -> StopReason:
    """Say why a turn ended."""
    if finished is None:
        return "end_turn"
    if finished.limit is not None:
        return "max_turn_requests"
    return _REASONS.get(finished.finish_reason, "end_turn")


def usage_of(usage: Usage) -> JSONObject:
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
            update: JSONObject = {"toolCallId": call_id, "status": status}
            await self.send({"sessionUpdate": "tool_call_update", **update})
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
        update: JSONObject = {"toolCallId": call.id, "status": status}
        has_diff = call.name in ("write_file", "edit_file")
        # What is sent here replaces what stands there: an edit keeps its diff.
        if not (result.success and has_diff):
            text = self.view.redactor.redact_text(result.get_serialized_output())
            if len(text) > _MAX_OUTPUT:
                text = (
                    f"{text[:_MAX_OUTPUT]}\n[{len(text) - _MAX_OUTPUT} characters more]"
                )
            update["content"] = [text_content(text)]
        await self.send({"sessionUpdate": "tool_call_update", **update})
