"""One answer as it arrives: the lines of `/api/chat`, each a JSON object, the last one with `done`."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from amplifier_kit.http.sse import ServerEvent
from amplifier_kit.open_data import as_object
from amplifier_kit.vendors import read_object, read_tokens, storable
from amplifier_module_provider_ollama.faults import reported_error
from amplifier_sdk.arguments import read_arguments
from amplifier_sdk.chat import ChatResponse, ToolCall, Usage
from amplifier_sdk.content import ContentBlock, TextBlock, ThinkingBlock, ToolCallBlock
from amplifier_sdk.errors import StreamError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.streaming import Delta, TextDelta, ThinkingDelta, ToolCallDelta

__all__ = ["OllamaAnswer"]

_FIGURES: Final = (
    "total_duration",
    "load_duration",
    "prompt_eval_duration",
    "eval_duration",
)
"""Nanoseconds that the last line reports."""


@attrs.define(eq=False)
class _Run:
    """Pieces of one kind that follow each other: a block of the answer."""

    is_thinking: bool
    pieces: list[str] = attrs.field(factory=list)

    def block(self) -> ContentBlock:
        text = "".join(self.pieces)
        if self.is_thinking:
            return ThinkingBlock(thinking=text)
        return TextBlock(text=text)


@attrs.define(eq=False)
class OllamaAnswer:
    """Reads one answer.

    Args:
        model: who was asked.
    """

    model: str
    _parts: list[_Run | ToolCall] = attrs.field(factory=list, init=False)
    _ids: set[str] = attrs.field(factory=set, init=False)
    _last: JSONObject | None = attrs.field(default=None, init=False)

    @property
    def is_ended(self) -> bool:
        """Whether the line with `done` came."""
        return self._last is not None

    def feed(self, event: ServerEvent) -> Iterator[Delta]:
        """Take the next line and yield what it adds.

        Raises:
            LLMError: the line is an error, or cannot be read.
        """
        line = read_object(event.data)
        # once the answer has begun, the status is sent and an error can only be a line
        if (problem := line.get("error")) is not None:
            raise reported_error(problem)
        message = line.get("message")
        if message is not None and not isinstance(message, Mapping):
            raise StreamError(
                f"Ollama's answer has a `message` that is no object: {message!r:.200}"
            )
        if message:
            yield from self._take(message)
        if line.get("done") is True:
            self._last = line

    def finish(self) -> ChatResponse:
        """Return the whole answer.

        Raises:
            StreamError: the line with `done` did not come.
        """
        if self._last is None:
            raise StreamError(
                "Ollama's answer ended before its last line, the one with `done`"
            )
        calls = [part for part in self._parts if isinstance(part, ToolCall)]
        return ChatResponse(
            content=[block for part in self._parts for block in _blocks(part)],
            tool_calls=calls or None,
            usage=_usage(self._last),
            finish_reason=_reason(self._last.get("done_reason"), has_calls=bool(calls)),
            metadata=self._metadata(self._last),
        )

    def _take(self, message: Mapping[str, JSONValue]) -> Iterator[Delta]:
        if thinking := _piece(message, "thinking"):
            yield ThinkingDelta(
                text=thinking, index=self._add(thinking, is_thinking=True)
            )
        if text := _piece(message, "content"):
            yield TextDelta(text=text, index=self._add(text, is_thinking=False))
        calls = message.get("tool_calls") or ()
        if not isinstance(calls, (list, tuple)):
            raise StreamError(
                f"Ollama's answer has `tool_calls` that are no list: {calls!r:.200}"
            )
        for given in calls:
            call = self._call(given)
            self._parts.append(call)
            # who joins the pieces of a call expects JSON even where there is none
            text = call.raw_arguments or "{}"
            yield ToolCallDelta(
                id=call.id, name=call.name, arguments=text, index=len(self._parts) - 1
            )

    def _add(self, piece: str, *, is_thinking: bool) -> int:
        """Add a piece to the block that forms, or begin another; return the block's index."""
        last = None
        if self._parts:
            last = self._parts[-1]
        # the lines do not say where a block ends; a change of kind does
        if not isinstance(last, _Run) or last.is_thinking is not is_thinking:
            last = _Run(is_thinking)
            self._parts.append(last)
        last.pieces.append(piece)
        return len(self._parts) - 1

    def _call(self, given: JSONValue) -> ToolCall:
        """Read a call, which comes whole: its arguments are an object, or text from servers that only look like one."""
        call = as_object(given)
        function = as_object(call.get("function"))
        name = function.get("name")
        if not isinstance(name, str) or not name:
            raise StreamError(
                f"Ollama's answer has a tool call without the tool's name: {given!r:.200}"
            )
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            raw = arguments
        else:
            raw = json.dumps({} if arguments is None else arguments)
        read = read_arguments(raw)
        return ToolCall(
            id=self._id(call.get("id")),
            name=storable(name),
            arguments=read.values,
            raw_arguments=storable(raw),
            problem=read.problem,
        )

    def _id(self, given: JSONValue) -> str:
        """Return the call's id; older servers give none, and an id names one call only."""
        call_id = ""
        if isinstance(given, str):
            call_id = storable(given)
        # results find their calls by id, so a repeated one is replaced
        if not call_id or call_id in self._ids:
            call_id = f"call_{secrets.token_hex(8)}"
        self._ids.add(call_id)
        return call_id

    def _metadata(self, last: JSONObject) -> JSONObject:
        facts: JSONObject = {"ollama:done_reason": last.get("done_reason")}
        facts |= {f"ollama:{name}": read_tokens(last, name) for name in _FIGURES}
        return {
            "model": self.model,
            **{name: value for name, value in facts.items() if value is not None},
        }


def _blocks(part: _Run | ToolCall) -> list[ContentBlock]:
    if isinstance(part, _Run):
        return [part.block()]
    # arguments that are no object have no block; the call carries them as its problem
    if part.problem is None:
        return [ToolCallBlock(id=part.id, name=part.name, input=part.arguments)]
    return []


def _piece(message: Mapping[str, JSONValue], key: str) -> str:
    piece = message.get(key)
    if piece is None:
        return ""
    if not isinstance(piece, str):
        raise StreamError(
            f"Ollama's answer has a `{key}` that is no text: {piece!r:.200}"
        )
    return storable(piece)


def _usage(last: JSONObject) -> Usage | None:
    """Read the counts; a server leaves one out that is zero."""
    read = read_tokens(last, "prompt_eval_count")
    written = read_tokens(last, "eval_count")
    # no counts are unknown, which is not the same as none
    if read is None and written is None:
        return None
    return Usage(
        input_tokens=read or 0,
        output_tokens=written or 0,
        total_tokens=(read or 0) + (written or 0),
    )


def _reason(given: JSONValue, *, has_calls: bool) -> str:
    """Say why the answer ended; `load`, `unload` and words unknown here are no ends of an answer."""
    match given:
        case "stop" | None | "":
            if has_calls:
                return "tool_calls"
            return "stop"
        case "length":
            return "length"
        case _:
            return "error"
