"""The reader of one answer: chunks become deltas, and at the end the whole answer with the tokens that were counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Final, TypeAlias

import attrs

from amplifier_kit.http.sse import ServerEvent
from amplifier_kit.open_data import as_list
from amplifier_kit.vendors import read_object, read_tokens, storable
from amplifier_module_provider_chat_completions.calls import (
    CallDraft,
    CallDrafts,
    arguments_of,
    function_of,
    text_of,
)
from amplifier_sdk.chat import ChatResponse, Usage
from amplifier_sdk.content import ContentBlock, TextBlock, ThinkingBlock, ToolCallBlock
from amplifier_sdk.errors import LLMError, StreamError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.streaming import Delta, TextDelta, ThinkingDelta

__all__ = ["ChatAnswer", "Fail", "read_usage"]

Fail: TypeAlias = Callable[[str], LLMError]
"""Makes the error of an event that reports one."""

_DONE: Final = "[DONE]"
_REASONS: Final[Mapping[str, str]] = {
    "content_filter": "content_filter",
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "stop": "stop",
    "stop_sequence": "stop",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
}
"""Why a model stopped, by the servers' words; any other is an `error`."""


@attrs.define(eq=False)
class _Words:
    """A block of text or thinking as it forms."""

    make: type[TextDelta | ThinkingDelta]
    index: int
    parts: list[str] = attrs.field(factory=list)

    def finish(self) -> ContentBlock:
        whole = storable("".join(self.parts))
        if self.make is TextDelta:
            return TextBlock(text=whole)
        return ThinkingBlock(thinking=whole)


@attrs.define(eq=False)
class ChatAnswer:
    """Reads one answer.

    The answer is whole when the server said why the model stopped. A server that only ends the stream properly is
    believed for text alone: no tool runs from an answer of which nobody says that it is whole.

    Args:
        fail: makes the error of an event that reports one.
    """

    fail: Fail
    _blocks: list[_Words | CallDraft] = attrs.field(factory=list, init=False)
    _calls: CallDrafts = attrs.field(factory=CallDrafts, init=False)
    _reason: str | None = attrs.field(default=None, init=False)
    _usage: Usage | None = attrs.field(default=None, init=False)
    _is_refusal: bool = attrs.field(default=False, init=False)
    _is_done: bool = attrs.field(default=False, init=False)

    @property
    def is_ended(self) -> bool:
        """Whether the end marker came."""
        return self._is_done

    def feed(self, event: ServerEvent) -> Iterator[Delta]:
        """Take the next event and yield what it adds.

        Raises:
            LLMError: it reports an error, or is no chunk.
        """
        if event.data.strip() == _DONE:
            self._is_done = True
            return
        chunk = read_object(event.data)
        # Servers report errors inside a stream in three forms.
        if chunk.get("error") or "error" in (chunk.get("object"), event.event):
            raise self.fail(event.data)
        self._usage = read_usage(chunk) or self._usage
        for choice in _objects(chunk.get("choices")):
            # One answer is asked for; a server that sends more would mix them.
            if not choice.get("index"):
                yield from self._choose(choice)

    def finish(self) -> ChatResponse:
        """Return the whole answer.

        Raises:
            StreamError: the stream ended before the answer was whole.
        """
        calls = [draft.finish() for draft in self._calls.drafts]
        reason = self._finish_reason(bool(calls))
        # Running it would need a guess of which tool was meant.
        if reason == "tool_calls" and not all(call.name for call in calls):
            raise StreamError("The server sent a call that names no tool")
        by_id = {call.id: call for call in calls}
        content = [
            block.finish()
            if isinstance(block, _Words)
            else ToolCallBlock(
                id=block.id, name=block.name, input=by_id[block.id].shown_arguments
            )
            for block in self._blocks
        ]
        return ChatResponse(
            content=content,
            tool_calls=tuple(calls) or None,
            usage=self._usage,
            finish_reason=reason,
            metadata=self._metadata(reason),
        )

    def _finish_reason(self, has_calls: bool) -> str:
        if self._reason is None:
            if not self._is_done:
                raise StreamError("The stream ended before the answer was whole")
            if has_calls:
                raise StreamError(
                    "The server did not say that the answer with its tool calls is whole"
                )
            if not self._blocks:
                raise StreamError("The server ended the stream without an answer")
            return "stop"
        reason = _REASONS.get(self._reason, "error")
        # an answer that lost its calls on the way must not pass for a plain one
        if reason == "tool_calls" and not has_calls:
            raise StreamError(
                "The server says that the model calls tools, and sent no call"
            )
        # some servers end an answer with calls by `stop`
        if reason == "stop" and has_calls:
            return "tool_calls"
        return reason

    def _metadata(self, reason: str) -> JSONObject | None:
        said: JSONObject
        said = {}
        if self._is_refusal:
            said = {"refusal": True}
        if reason == "error":
            # The server's own word, since `error` says nothing of what happened.
            said["finish_reason"] = self._reason
        return said or None

    def _choose(self, choice: Mapping[str, JSONValue]) -> Iterator[Delta]:
        # A server that was not asked to stream, or does not, sends the whole message.
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, Mapping):
            yield from self._grow(delta)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._reason = reason
            # a call without arguments has streamed nothing yet
            for draft in self._calls.drafts:
                yield from draft.announce()

    def _grow(self, delta: Mapping[str, JSONValue]) -> Iterator[Delta]:
        # no standard has a name for it; servers send one of these two, or both alike
        if thought := text_of(delta, "reasoning_content") or text_of(
            delta, "reasoning"
        ):
            yield self._say(ThinkingDelta, thought)
        if said := _said(delta.get("content")):
            yield self._say(TextDelta, said)
        if refused := text_of(delta, "refusal"):
            self._is_refusal = True
            yield self._say(TextDelta, refused)
        for piece in _call_pieces(delta):
            yield from self._call(piece)

    def _say(self, make: type[TextDelta | ThinkingDelta], words: str) -> Delta:
        """Add to the last block, or begin one."""
        last = None
        if self._blocks:
            last = self._blocks[-1]
        # pieces carry no index of a block; a change of kind begins another
        if not isinstance(last, _Words) or last.make is not make:
            last = _Words(make, len(self._blocks))
            self._blocks.append(last)
        last.parts.append(words)
        return make(text=storable(words), index=last.index)

    def _call(self, piece: Mapping[str, JSONValue]) -> Iterator[Delta]:
        count = len(self._calls.drafts)
        draft = self._calls.find(piece, len(self._blocks))
        if len(self._calls.drafts) > count:
            self._blocks.append(draft)
        yield from draft.grow(
            storable(text_of(function_of(piece), "name")), arguments_of(piece)
        )


def _call_pieces(delta: Mapping[str, JSONValue]) -> Iterator[Mapping[str, JSONValue]]:
    yield from _objects(delta.get("tool_calls"))
    # the older form has one call, without a number or an id
    if isinstance(older := delta.get("function_call"), Mapping):
        yield {"index": 0, "function": older}


def _objects(values: JSONValue) -> Iterator[Mapping[str, JSONValue]]:
    yield from (value for value in as_list(values) if isinstance(value, Mapping))


def _said(content: JSONValue) -> str:
    """Return the text of a content, which some servers send in parts."""
    if isinstance(content, str):
        return content
    return "".join(
        text_of(part, "text")
        for part in _objects(content)
        if part.get("type") == "text"
    )


def read_usage(chunk: Mapping[str, JSONValue]) -> Usage | None:
    """Read a chunk's usage; `None` where it has none. The cost is there when the server says it, in US dollars."""
    usage = chunk.get("usage")
    read = read_tokens(usage, "prompt_tokens")
    written = read_tokens(usage, "completion_tokens")
    # Some servers send an empty usage with every chunk.
    if not isinstance(usage, Mapping) or read is None:
        return None
    details = usage.get("prompt_tokens_details")
    further = usage.get("completion_tokens_details")
    cached = read_tokens(details, "cached_tokens")
    return Usage(
        input_tokens=read,
        output_tokens=written or 0,
        total_tokens=read + (written or 0),
        reasoning_tokens=read_tokens(further, "reasoning_tokens"),
        cache_read_tokens=read_tokens(usage, "prompt_cache_hit_tokens")
        if cached is None
        else cached,
        cache_write_tokens=read_tokens(details, "cache_write_tokens"),
        cost_usd=_cost(usage.get("cost")),
    )


def _cost(value: JSONValue) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # By its text: a float has digits that nobody counted.
    cost = Decimal(str(value))
    # another one would give back what was spent
    return cost if cost.is_finite() and cost >= 0 else None
