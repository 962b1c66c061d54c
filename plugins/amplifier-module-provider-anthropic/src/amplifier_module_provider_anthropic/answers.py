"""One answer of the API, event by event; of a long one in parts, each of which the API continues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs

from amplifier_kit.http.sse import ServerEvent
from amplifier_kit.vendors import read_object, read_tokens
from amplifier_module_provider_anthropic.blocks import ArrivingBlock
from amplifier_module_provider_anthropic.messages import MESSAGE_ID
from amplifier_sdk.chat import ChatRequest, ChatResponse, FinishReason, Usage
from amplifier_sdk.errors import LLMError, StreamError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message
from amplifier_sdk.streaming import Delta

__all__ = ["PAUSED", "STOP_REASON", "Continuation", "MessageReader"]

STOP_REASON: Final = "anthropic:stop_reason"
"""The key of an answer's metadata that says in the API's word why the model stopped."""

PAUSED: Final = "pause_turn"
"""The API's word for an answer that goes on when it is sent back."""

_REASONS: Final[Mapping[str, FinishReason]] = {
    "end_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    PAUSED: "length",
    "refusal": "content_filter",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
}

_KNOWN: Final = frozenset(
    {
        "content_block_delta",
        "content_block_start",
        "content_block_stop",
        "error",
        "message",
        "message_delta",
        "message_start",
        "message_stop",
    }
)
"""Names of events that must be readable; `message` is the name of those that have none."""

_SHOWN_USAGE: Final = (
    "cache_creation",
    "inference_geo",
    "server_tool_use",
    "service_tier",
    "speed",
)


@attrs.define(eq=False)
class MessageReader:
    """Reads one answer; see `AnswerReader`.

    Args:
        names: the tools' own names by the names under which they were offered.
        fail: makes the error of what the API reports in the stream.
    """

    names: Mapping[str, str]
    fail: Callable[[Mapping[str, JSONValue]], LLMError]
    _message: JSONObject | None = attrs.field(default=None, init=False)
    _blocks: dict[int, ArrivingBlock] = attrs.field(factory=dict, init=False)
    _usage: JSONObject = attrs.field(factory=dict, init=False)
    _end: JSONObject = attrs.field(factory=dict, init=False)
    _is_ended: bool = attrs.field(default=False, init=False)

    @property
    def is_ended(self) -> bool:
        """Whether `message_stop` came."""
        return self._is_ended

    def feed(self, event: ServerEvent) -> Iterable[Delta]:
        """Take the next event and return what it shows.

        Raises:
            LLMError: the API reports an error, or sent what does not follow its own order.
        """
        # the API asks its readers to pass over events that they do not know
        if event.event not in _KNOWN:
            return ()
        data = read_object(event.data)
        match data.get("type"):
            case "message_start":
                self._begin(data)
            case "content_block_start":
                return self._begin_block(data)
            case "content_block_delta":
                return self._open_block(data).take(_part(data, "delta"))
            case "content_block_stop":
                self._open_block(data).is_open = False
            case "message_delta":
                self._take_end(data)
            case "message_stop":
                self._close()
            case "error":
                raise self.fail(data)
            case _:
                pass
        return ()

    def _begin(self, data: JSONObject) -> None:
        # Two answers in one stream would be mixed into one.
        if self._message is not None:
            raise StreamError("The API began a second answer in the same stream")
        self._message = dict(_part(data, "message"))
        self._count(self._message.get("usage"))

    def _begin_block(self, data: JSONObject) -> Iterable[Delta]:
        self._check_begun()
        index = data.get("index")
        if (
            not isinstance(index, int)
            # In Python a bool is an int, and `true` is no place.
            or isinstance(index, bool)
            or index < 0
            or index in self._blocks
        ):
            raise StreamError(
                f"The API began a content block at {index!r}, where none can begin"
            )
        block = ArrivingBlock(index, dict(_part(data, "content_block")), self.names)
        # Results are matched to calls by id: with two of one id, one call would never
        # get its own.
        if block.call_id is not None and block.call_id in (
            other.call_id for other in self._blocks.values()
        ):
            raise StreamError(
                f"The API sent two tool calls with the id {block.call_id!r}"
            )
        self._blocks[index] = block
        return block.begin()

    def _open_block(self, data: JSONObject) -> ArrivingBlock:
        index = data.get("index")
        block = None
        if isinstance(index, int):
            block = self._blocks.get(index)
        if block is None or not block.is_open:
            raise StreamError(
                f"The API sent a piece of content block {index!r}, which is not open"
            )
        return block

    def _take_end(self, data: JSONObject) -> None:
        self._check_begun()
        self._end |= {
            key: value
            for key, value in _part(data, "delta").items()
            if value is not None
        }
        self._count(data.get("usage"))

    def _close(self) -> None:
        self._check_begun()
        if unfinished := [
            index for index, block in self._blocks.items() if block.is_open
        ]:
            raise StreamError(
                f"The API ended the answer and left content block {unfinished[0]} open"
            )
        # Without it nobody could say whether the answer is complete.
        if not isinstance(self._end.get("stop_reason"), str):
            raise StreamError("The API ended the answer without a reason")
        self._is_ended = True

    def _check_begun(self) -> None:
        if self._message is None:
            raise StreamError("The API sent a part of an answer that it had not begun")

    def _count(self, usage: JSONValue) -> None:
        """Take the counts, which are of the whole answer so far; one that is left out stays as it was."""
        if isinstance(usage, Mapping):
            # the counts are totals, so a later one replaces an earlier one
            self._usage |= {
                key: value for key, value in usage.items() if value is not None
            }

    def finish(self) -> ChatResponse:
        """Return the whole answer.

        Raises:
            StreamError: the stream ended before `message_stop`.
        """
        if not self._is_ended:
            raise StreamError("The stream ended before the answer was whole")
        # blocks may be open beside each other; the index says where each belongs
        arrived = [self._blocks[index] for index in sorted(self._blocks)]
        calls = [block.call() for block in arrived if block.call_id is not None]
        reason = _REASONS.get(str(self._end["stop_reason"]), "error")
        return ChatResponse(
            content=[
                whole for block in arrived if (whole := block.block()) is not None
            ],
            tool_calls=calls or None,
            usage=self._tokens(),
            # Compatible servers report `end_turn` for an answer that calls tools.
            finish_reason="tool_calls" if calls and reason == "stop" else reason,
            metadata=self._metadata(),
        )

    def _metadata(self) -> JSONObject:
        message = self._message or {}
        fields = {
            MESSAGE_ID: message.get("id"),
            "anthropic:model": message.get("model"),
            "anthropic:container": self._end.get("container")
            or message.get("container"),
            "anthropic:input_transformations": message.get("input_transformations"),
            "anthropic:stop_details": self._end.get("stop_details"),
            "anthropic:stop_sequence": self._end.get("stop_sequence"),
            STOP_REASON: self._end.get("stop_reason"),
        }
        return {
            # Present also where the API gave none: the key marks the answer as the
            # API's own.
            MESSAGE_ID: "",
            **{key: value for key, value in fields.items() if value is not None},
        }

    def _tokens(self) -> Usage:
        """Return the usage: the API counts what it read anew apart from what the cache gave and took."""
        usage = self._usage
        read = read_tokens(usage, "cache_read_input_tokens")
        written = read_tokens(usage, "cache_creation_input_tokens")
        fresh = read_tokens(usage, "input_tokens") or 0
        output = read_tokens(usage, "output_tokens") or 0
        # `input_tokens` of the API leaves out what the cache gave and took
        whole = fresh + (read or 0) + (written or 0)
        return Usage(
            input_tokens=whole,
            output_tokens=output,
            total_tokens=whole + output,
            reasoning_tokens=read_tokens(
                usage.get("output_tokens_details"), "thinking_tokens"
            ),
            cache_read_tokens=read,
            cache_write_tokens=written,
            extras={key: usage[key] for key in _SHOWN_USAGE if key in usage},
        )


def _part(data: JSONObject, name: str) -> Mapping[str, JSONValue]:
    part = data.get(name)
    if not isinstance(part, Mapping):
        raise StreamError(
            f"The API sent an event of type {data.get('type')!r} without its {name!r}"
        )
    return part


@attrs.define(eq=False)
class Continuation:
    """The parts of one answer so far.

    Args:
        request: what the answer is to.
    """

    request: ChatRequest
    _parts: list[ChatResponse] = attrs.field(factory=list, init=False)
    _blocks: int = attrs.field(default=0, init=False)

    @property
    def rounds(self) -> int:
        """How many parts there are."""
        return len(self._parts)

    @property
    def is_paused(self) -> bool:
        """Whether the last part ended with a pause, and there is something to go on from."""
        last = self._parts[-1]
        # An empty part would be sent back as nothing, and the API would pause again for
        # ever.
        return bool(last.content) and (last.metadata or {}).get(STOP_REASON) == PAUSED

    def next_request(self) -> ChatRequest:
        """Return the request for the next part: the first one, with the parts behind its messages."""
        if not self._parts:
            return self.request
        said = [
            Message(role="assistant", content=part.content, metadata=part.metadata)
            for part in self._parts
        ]
        return attrs.evolve(self.request, messages=(*self.request.messages, *said))

    def add(self, part: ChatResponse) -> None:
        """Take the next part."""
        self._parts.append(part)
        self._blocks += len(part.content)

    def shifted(self, delta: Delta) -> Delta:
        """Return the delta with its block counted from the answer's beginning."""
        if self._blocks:
            return attrs.evolve(delta, index=delta.index + self._blocks)
        return delta

    def answer(self) -> ChatResponse:
        """Return the parts as one answer: its content and usage are theirs, the rest is the last one's."""
        first, *more = self._parts
        if not more:
            return first
        usage = first.usage
        for part in more:
            if usage is None:
                usage = part.usage
            else:
                usage = usage if part.usage is None else usage + part.usage
        return attrs.evolve(
            # The last part says how the answer ended.
            more[-1],
            content=[block for part in self._parts for block in part.content],
            tool_calls=[call for part in self._parts for call in part.tool_calls or ()]
            or None,
            usage=usage,
            degradation=next(
                (part.degradation for part in self._parts if part.degradation), None
            ),
            metadata=self._metadata(),
        )

    def _metadata(self) -> Mapping[str, JSONValue]:
        return {**(self._parts[-1].metadata or {}), "anthropic:parts": self.rounds}
