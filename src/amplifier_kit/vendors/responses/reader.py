"""One streamed response, event by event.

The last event carries the whole response, and the answer is made of it: what came before is for display. Where it
has no items, as with some gateways, the finished items of the stream stand in. A call whose pieces contradict its
whole is not trusted. Servers that number nothing name the item in each event instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Final, TypeAlias

import attrs

from amplifier_kit.http.sse import ServerEvent
from amplifier_kit.vendors.payloads import read_object, storable
from amplifier_kit.vendors.responses._fields import mapping, mappings, text
from amplifier_kit.vendors.responses.answers import answer, call_id, tool_name
from amplifier_kit.vendors.responses.drafts import (
    Drafts,
    Item,
    OutputItemDraft,
    Part,
    parts_of,
)
from amplifier_kit.vendors.responses.refusals import reported
from amplifier_sdk.chat import ChatResponse
from amplifier_sdk.errors import StreamError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.streaming import Delta, TextDelta, ThinkingDelta, ToolCallDelta

__all__ = ["ResponsesReader"]

_Event: TypeAlias = Mapping[str, JSONValue]

_PIECES: Final[Mapping[str, tuple[str, str]]] = {
    "response.function_call_arguments.delta": ("function_call", "arguments"),
    "response.output_text.delta": ("message", "content"),
    "response.reasoning_summary_text.delta": ("reasoning", "summary"),
    "response.reasoning_text.delta": ("reasoning", "content"),
    "response.refusal.delta": ("message", "content"),
}
"""The events with pieces of an item: its kind, and the part of it that grows."""

_UNFINISHED: Final = frozenset({"in_progress", "incomplete"})
_BREAK: Final = "\n\n"
"""What stands between two parts of one summary."""


@attrs.define(eq=False)
class ResponsesReader:
    """Reads one response of the API.

    Args:
        names: the names of tools by those under which the API knows them, where they differ.
    """

    names: Mapping[str, str] = attrs.field(factory=dict)
    _drafts: Drafts = attrs.field(factory=Drafts, init=False)
    _ids: set[str] = attrs.field(factory=set, init=False)
    _blocks: int = attrs.field(default=0, init=False)
    _response: Mapping[str, JSONValue] = attrs.field(factory=dict, init=False)
    _answer: ChatResponse | None = attrs.field(default=None, init=False)

    @property
    def response(self) -> Mapping[str, JSONValue]:
        """The response as the vendor ended it; empty before."""
        return self._response

    @property
    def is_ended(self) -> bool:
        """Whether the response was ended by the vendor."""
        return self._answer is not None

    def feed(self, event: ServerEvent) -> Iterable[Delta]:
        """Take the next event and return what it adds; unknown ones add nothing.

        Raises:
            LLMError: the vendor reports one, or the event cannot be read.
        """
        # servers of other protocols' habits send it behind the end
        if event.data == "[DONE]":
            return ()
        data = read_object(event.data)
        if isinstance(data.get("error"), Mapping):  # also of gateways, without a type
            raise reported(data)
        name = text(data, "type") or event.event
        if name in _PIECES:
            return self._add(data, *_PIECES[name])
        read = self._READ.get(name)
        if read is None:
            return ()
        return read(self, data)

    def finish(self) -> ChatResponse:
        """Return the whole answer.

        Raises:
            StreamError: the stream ended before the response did.
        """
        if self._answer is None:
            raise StreamError("The stream ended before the response was whole")
        return self._answer

    def _begin(self, data: _Event) -> Iterable[Delta]:
        item = mapping(data, "item")
        draft = self._drafts.of_event(data, item)
        if draft.kind not in ("", "message"):  # of a message each part is a block
            self._index(draft, ("", 0))
        return self._announced(draft, item)

    def _begin_part(self, data: _Event) -> Iterable[Delta]:
        """Give the part its block, so that the next one has the next."""
        if text(mapping(data, "part"), "type") in ("output_text", "refusal"):
            self._index(
                self._drafts.of_event(data, {"type": "message"}),
                ("content", _number(data, "content_index")),
            )
        return ()

    def _add(self, data: _Event, kind: str, part: str) -> Iterable[Delta]:
        """Take a piece of a part that an item of a kind has."""
        draft = self._drafts.of_event(data, {"type": kind})
        number = _number(data, f"{part}_index")
        return self._grow(draft, (part, number), text(data, "delta") or "")

    def _end_item(self, data: _Event) -> Iterable[Delta]:
        item = mapping(data, "item")
        draft = self._drafts.of_event(data, item)
        draft.whole = item
        return self._missing(draft, item)

    def _fail(self, data: _Event) -> Iterable[Delta]:
        raise reported(mapping(data, "response") or data)

    def _end(self, data: _Event) -> Iterator[Delta]:
        """End the response, with what of its text was not streamed."""
        response = mapping(data, "response")
        if not response:
            raise StreamError("The vendor ended a response without sending it")
        status = text(response, "status")
        if status in ("failed", "cancelled") or isinstance(
            response.get("error"), Mapping
        ):
            raise reported(response)
        if status not in (None, "completed", "incomplete"):
            raise StreamError(f"The vendor ended a response whose status is {status!r}")
        output = self._output(response)
        if status != "incomplete":
            self._refuse_unfinished(output)
        for draft, item in self._drafts.of_items(output):
            yield from self._missing(draft, item)
        self._response, self._answer = response, answer(response, output, self.names)

    def _output(self, response: Mapping[str, JSONValue]) -> Sequence[Item]:
        """Return the items of the response, reasoning as its own event had it: that one is sure to be complete."""
        given = list(mappings(response, "output"))
        if not given:
            return [draft.whole for draft in self._drafts if draft.whole is not None]
        done = {
            text(draft.whole, "id"): draft.whole
            for draft in self._drafts
            if draft.whole is not None
        }
        done.pop(None, None)  # items without ids cannot be distinguished
        return [
            done.get(text(item, "id"), item)
            if text(item, "type") == "reasoning"
            else item
            for item in given
        ]

    def _refuse_unfinished(self, output: Sequence[Item]) -> None:
        for item in output:
            if text(item, "status") in _UNFINISHED:
                raise StreamError(
                    f"The vendor calls a response complete whose {text(item, 'type')} is not"
                )
        for kind in ("message", "function_call"):
            if sum(text(item, "type") == kind for item in output) < sum(
                draft.kind == kind for draft in self._drafts
            ):
                raise StreamError(
                    f"The vendor calls a response complete of which a {kind} is missing"
                )

    def _announced(self, draft: OutputItemDraft, item: Item) -> Iterable[Delta]:
        """Name a call as soon as it is known."""
        if draft.kind != "function_call" or draft.name:
            return ()
        self._ids.discard(draft.call_id)
        draft.call_id = call_id(item, draft.place, self._ids)
        draft.name = tool_name(item, self.names)
        self._ids.add(draft.call_id)
        return self._grow(
            draft, ("arguments", 0), text(item, "arguments") or "", always=True
        )

    def _missing(self, draft: OutputItemDraft, item: Item) -> Iterator[Delta]:
        """Yield what a finished item has and its pieces had not.

        Raises:
            StreamError: the pieces of a call are others than its whole.
        """
        yield from self._announced(draft, item)
        for part, whole in parts_of(item):
            shown = "".join(draft.parts.get(part, ()))
            if whole.startswith(shown):
                yield from self._grow(draft, part, whole[len(shown) :])
            elif draft.kind == "function_call":
                raise StreamError(
                    f"The vendor sent two texts as the arguments of one call of {draft.name!r}"
                )

    def _grow(
        self, draft: OutputItemDraft, part: Part, piece: str, *, always: bool = False
    ) -> Iterable[Delta]:
        if not piece and not always:
            return ()
        index = self._index(draft, part)
        is_further = bool(draft.parts) and part not in draft.parts
        draft.parts.setdefault(part, []).append(piece)
        shown = storable(piece)
        match draft.kind:
            case "message":
                return (TextDelta(text=shown, index=index),)
            case "reasoning":
                return (
                    ThinkingDelta(
                        text=_BREAK + shown if is_further else shown, index=index
                    ),
                )
            case "function_call" if draft.name:
                return (
                    ToolCallDelta(
                        id=draft.call_id, name=draft.name, arguments=shown, index=index
                    ),
                )
            case _:  # a call that nobody named yet; its pieces come once it is
                draft.parts.pop(part)
                return ()

    def _index(self, draft: OutputItemDraft, part: Part) -> int:
        """Return the content block of a part: reasoning and calls are one each, a message is one for each part."""
        key = ("", 0)
        if draft.kind == "message":
            key = part
        if key not in draft.indexes:
            draft.indexes[key] = self._blocks
            self._blocks += 1
        return draft.indexes[key]

    _READ: ClassVar[
        Mapping[str, Callable[[ResponsesReader, _Event], Iterable[Delta]]]
    ] = {
        "error": _fail,
        "response.cancelled": _fail,
        "response.completed": _end,
        "response.content_part.added": _begin_part,
        "response.failed": _fail,
        "response.incomplete": _end,
        "response.output_item.added": _begin,
        "response.output_item.done": _end_item,
    }


def _number(data: _Event, key: str) -> int:
    value = data.get(key)
    if isinstance(value, int):
        return value
    return 0
