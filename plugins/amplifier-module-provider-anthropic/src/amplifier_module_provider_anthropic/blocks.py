"""One content block while it arrives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from amplifier_kit.open_data import as_text
from amplifier_sdk.arguments import Arguments, read_arguments
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.content import (
    ContentBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    VendorBlock,
)
from amplifier_sdk.errors import StreamError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.streaming import Delta, TextDelta, ThinkingDelta, ToolCallDelta
from amplifier_sdk.values import NO_EXTRAS

__all__ = ["ArrivingBlock"]

_PIECES: Final[Mapping[str, tuple[str, str | None]]] = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "thinking"),
    "input_json_delta": ("partial_json", None),
}
"""For each kind of piece: the field that has it, and the type of the blocks it belongs to; `None` is any."""

_OURS: Final = frozenset({"image", "reasoning", "tool_call", "tool_result"})
"""Types of the SDK's own blocks that the API does not have; one of them would be read as something it is not."""


@attrs.define(eq=False)
class ArrivingBlock:
    """Puts one block together from its beginning and its pieces.

    Args:
        index: its place in the answer.
        start: the block as the API began it.
        names: the tools' own names by the names under which they were offered.
    """

    index: int
    start: JSONObject
    names: Mapping[str, str]
    is_open: bool = attrs.field(default=True, init=False)
    _pieces: dict[str, list[str]] = attrs.field(factory=dict, init=False)
    _citations: list[JSONValue] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        if self.type == "tool_use" and not (self._said("id") and self._said("name")):
            raise StreamError("The API began a tool call without an id or a name")
        if self.type == "redacted_thinking" and not self._said("data"):
            raise StreamError("The API began a redacted thought without its data")

    @property
    def type(self) -> str:
        """The block's type."""
        return self._said("type")

    @property
    def call_id(self) -> str | None:
        """The id of the call that the block is, if it is one."""
        if self.type == "tool_use":
            return self._said("id")
        return None

    def begin(self) -> Iterable[Delta]:
        """Return what the block's beginning shows already."""
        if self.type in ("text", "thinking"):
            return self._shown(self._said(self.type))
        return ()

    def take(self, piece: Mapping[str, JSONValue]) -> Iterable[Delta]:
        """Add one piece and return what it shows; a piece of an unknown kind adds nothing.

        Raises:
            StreamError: it is no piece of such a block.
        """
        kind = piece.get("type")
        # they show nothing by themselves, and stand beside the text in the end
        if kind == "citations_delta":
            self._citations.append(piece.get("citation"))
            return ()
        # the API adds kinds of pieces without a new version
        if not isinstance(kind, str) or kind not in _PIECES:
            return ()
        field, type_ = _PIECES[kind]
        text = piece.get(field)
        if type_ is None:
            is_misplaced = self.type in ("text", "thinking")
        else:
            is_misplaced = self.type != type_
        if is_misplaced or not isinstance(text, str):
            raise StreamError(
                f"The API sent a {kind} that does not fit a block of type {self.type!r}"
            )
        self._pieces.setdefault(field, []).append(text)
        # a signature is for the API alone; nobody reads it
        if field == "signature":
            return ()
        return self._shown(text)

    def _shown(self, text: str) -> Iterable[Delta]:
        match self.type:
            case _ if not text:
                return ()
            case "text":
                return (TextDelta(text=text, index=self.index),)
            case "thinking":
                return (ThinkingDelta(text=text, index=self.index),)
            case "tool_use":
                return (
                    ToolCallDelta(
                        id=self._said("id"),
                        name=self._name(),
                        arguments=text,
                        index=self.index,
                    ),
                )
            case _:
                return ()

    def block(self) -> ContentBlock | None:
        """Return the whole block; `None` for one that nobody here could tell from a block of the SDK.

        Raises:
            StreamError: what arrived of a server's tool is not JSON.
        """
        match self.type:
            case "text":
                return TextBlock(text=self._joined("text"), extras=self._extras("text"))
            case "thinking":
                return ThinkingBlock(
                    thinking=self._joined("thinking"),
                    signature=self._joined("signature") or None,
                    extras=self._extras("thinking", "signature"),
                )
            case "redacted_thinking":
                return RedactedThinkingBlock(
                    data=self._said("data"), extras=self._extras("data")
                )
            case "tool_use":
                call = self.call()
                extras = self._extras("id", "name", "input")
                return ToolCallBlock(
                    id=call.id,
                    name=call.name,
                    input=call.shown_arguments,
                    extras=extras,
                )
            # read back, it would pass for a block that this program made
            case type_ if type_ in _OURS:
                return None
            case type_:
                return VendorBlock(type=type_, extras=self._vendor_fields())

    def call(self) -> ToolCall:
        """Return the tool call that the block is; what cannot be read of its arguments is its `problem`."""
        raw, read = self._arguments()
        return ToolCall(
            id=self._said("id"),
            name=self._name(),
            arguments=read.values,
            raw_arguments=raw,
            problem=read.problem,
        )

    def _arguments(self) -> tuple[str | None, Arguments]:
        """Read the pieces; a server that streams none, or empty ones, has put the whole into the block's beginning."""
        raw, given = self._streamed(), self.start.get("input")
        # the text of a stream counts before the beginning, which is `{}` there
        if not raw and isinstance(given, Mapping):
            return None, read_arguments(given)
        return raw, read_arguments(raw)

    def _vendor_fields(self) -> Mapping[str, JSONValue]:
        fields = {key: value for key, value in self.start.items() if key != "type"}
        if self._streamed():
            _, read = self._arguments()
            if read.problem is not None:
                raise StreamError(
                    f"The API sent a block of type {self.type!r} with an input that is not JSON"
                )
            fields["input"] = read.values
        return fields or NO_EXTRAS

    def _extras(self, *own: str) -> Mapping[str, JSONValue]:
        extras = {
            key: value
            for key, value in self.start.items()
            if key not in ("type", *own) and value is not None
        }
        if self._citations:
            given = extras.get("citations")
            extras["citations"] = [
                *(given if isinstance(given, Sequence) else ()),
                *self._citations,
            ]
        return extras or NO_EXTRAS

    def _streamed(self) -> str:
        return "".join(self._pieces.get("partial_json", ()))

    def _joined(self, field: str) -> str:
        return self._said(field) + "".join(self._pieces.get(field, ()))

    def _name(self) -> str:
        name = self._said("name")
        # the API allows fewer characters in a name than a tool may have
        return self.names.get(name, name)

    def _said(self, field: str) -> str:
        return as_text(self.start.get(field))
