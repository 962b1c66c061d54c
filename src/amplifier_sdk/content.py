"""Content blocks: the typed pieces of a message.

Each block has a `type` that names it on the wire, an optional `visibility` hint for the application, and
`extras`: the vendor's own fields, which survive the round trip through `block_to_dict` and
`block_from_dict` unchanged. A block whose type nobody here knows becomes a `VendorBlock` and survives as
well. Source: the context and orchestrator specification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Final, Literal, TypeAlias

import attrs

from amplifier_sdk._fields import values
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.values import Value

__all__ = [
    "NO_EXTRAS",
    "ContentBlock",
    "ImageBlock",
    "ReasoningBlock",
    "RedactedThinkingBlock",
    "TextBlock",
    "ThinkingBlock",
    "ToolCallBlock",
    "ToolResultBlock",
    "VendorBlock",
    "Visibility",
    "block_from_dict",
    "block_to_dict",
]

Visibility: TypeAlias = Literal["internal", "developer", "user"]
"""Who should see a block; the application decides what to do with the hint."""

NO_EXTRAS: Final[Mapping[str, JSONValue]] = MappingProxyType({})
"""The extras of a value that has none."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class TextBlock(Value):
    """Plain text."""

    type: ClassVar[Literal["text"]] = "text"
    text: str
    visibility: Visibility | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ThinkingBlock(Value):
    """A model's visible thinking; the signature must go back to the vendor unchanged."""

    type: ClassVar[Literal["thinking"]] = "thinking"
    thinking: str
    signature: str | None = None
    visibility: Visibility | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS


@attrs.frozen(kw_only=True, eq=False, repr=False)
class RedactedThinkingBlock(Value):
    """Thinking that the vendor encrypted; it is carried, never read."""

    type: ClassVar[Literal["redacted_thinking"]] = "redacted_thinking"
    data: str
    visibility: Visibility | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ReasoningBlock(Value):
    """A reasoning item of the vendors that return content and summaries apart."""

    type: ClassVar[Literal["reasoning"]] = "reasoning"
    content: tuple[JSONValue, ...] = attrs.field(default=(), converter=values)
    summary: tuple[JSONValue, ...] = attrs.field(default=(), converter=values)
    visibility: Visibility | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS

    @property
    def text(self) -> str:
        """What of the reasoning can be read: the texts of the summary and of the content, blank lines between them."""
        texts = (part.get("text") for part in (*self.summary, *self.content) if isinstance(part, Mapping))
        return "\n\n".join(text for text in texts if isinstance(text, str) and text)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ToolCallBlock(Value):
    """A call the model makes; `id` pairs it with its result."""

    type: ClassVar[Literal["tool_call"]] = "tool_call"
    id: str
    name: str
    input: Mapping[str, JSONValue] = attrs.field(factory=dict)
    visibility: Visibility | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ToolResultBlock(Value):
    """What a tool returned for the call `tool_call_id`."""

    type: ClassVar[Literal["tool_result"]] = "tool_result"
    tool_call_id: str
    output: JSONValue = None
    visibility: Visibility | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ImageBlock(Value):
    """An image; `source` is the vendor-neutral mapping (`type`, `media_type`, `data` or `url`)."""

    type: ClassVar[Literal["image"]] = "image"
    source: Mapping[str, JSONValue]
    visibility: Visibility | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS


@attrs.frozen(kw_only=True, eq=False, repr=False)
class VendorBlock(Value):
    """A block of a type unknown here, kept whole so that it can go back where it came from."""

    type: str
    visibility: Visibility | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS


ContentBlock: TypeAlias = (
    TextBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | ReasoningBlock
    | ToolCallBlock
    | ToolResultBlock
    | ImageBlock
    | VendorBlock
)
"""One piece of a message's content."""

_COMMON: Final = frozenset({"type", "visibility"})
_FIELDS: Final[Mapping[type[ContentBlock], tuple[str, ...]]] = {
    cls: tuple(name for name in attrs.fields_dict(cls) if name not in ("type", "visibility", "extras"))
    for cls in (
        TextBlock,
        ThinkingBlock,
        RedactedThinkingBlock,
        ReasoningBlock,
        ToolCallBlock,
        ToolResultBlock,
        ImageBlock,
        VendorBlock,
    )
}


def block_to_dict(block: ContentBlock) -> JSONObject:
    """Write a block as the JSON object that stored messages hold; fields that are `None` are left out."""
    if block.visibility is None and not block.extras:  # the two kinds of which almost every history consists
        if type(block) is ToolCallBlock:
            return {"type": "tool_call", "id": block.id, "name": block.name, "input": block.input}
        if type(block) is TextBlock:
            return {"type": "text", "text": block.text}
    data: JSONObject = {"type": block.type}
    for name in _FIELDS[type(block)]:
        value = getattr(block, name)
        if value is not None:
            data[name] = list(value) if isinstance(value, tuple) else value
    if block.visibility is not None:
        data["visibility"] = block.visibility
    return {**block.extras, **data} if block.extras else data  # what the block itself says wins


def block_from_dict(data: Mapping[str, JSONValue]) -> ContentBlock:
    """Read a block from its JSON object.

    Raises:
        ValueError: the object has no `type`, or lacks or misuses a field that its type needs.
    """
    kind = data.get("type")
    read = _Reader(kind, data)
    match kind:
        case "text":
            return TextBlock(text=read.text("text"), visibility=read.visibility(), extras=read.extras(TextBlock))
        case "thinking":
            return ThinkingBlock(
                thinking=read.text("thinking"),
                signature=read.optional_text("signature"),
                visibility=read.visibility(),
                extras=read.extras(ThinkingBlock),
            )
        case "redacted_thinking":
            return RedactedThinkingBlock(
                data=read.text("data"), visibility=read.visibility(), extras=read.extras(RedactedThinkingBlock)
            )
        case "reasoning":
            return ReasoningBlock(
                content=read.items("content"),
                summary=read.items("summary"),
                visibility=read.visibility(),
                extras=read.extras(ReasoningBlock),
            )
        case "tool_call":
            return ToolCallBlock(
                id=read.text("id"),
                name=read.text("name"),
                input=read.object("input") if "input" in data else {},
                visibility=read.visibility(),
                extras=read.extras(ToolCallBlock),
            )
        case "tool_result":
            return ToolResultBlock(
                tool_call_id=read.text("tool_call_id"),
                output=data.get("output"),
                visibility=read.visibility(),
                extras=read.extras(ToolResultBlock),
            )
        case "image":
            return ImageBlock(
                source=read.object("source"), visibility=read.visibility(), extras=read.extras(ImageBlock)
            )
        case str():
            return _vendor_block(kind, data)
        case _:
            raise ValueError(f"A content block needs a string 'type'; got {dict(data)!r:.200}")


def _vendor_block(kind: str, data: Mapping[str, JSONValue]) -> VendorBlock:
    """Keep a block whole; `visibility` may be the vendor's own word, with another meaning."""
    match data.get("visibility"):
        case "internal" | "developer" | "user" as visibility:
            extras = {key: value for key, value in data.items() if key not in _COMMON}
            return VendorBlock(type=kind, visibility=visibility, extras=extras or NO_EXTRAS)
        case _:
            extras = {key: value for key, value in data.items() if key != "type"}
            return VendorBlock(type=kind, extras=extras or NO_EXTRAS)


@attrs.frozen(eq=False, repr=False)
class _Reader(Value):
    """Reads one block's fields and names the field that is wrong."""

    kind: JSONValue
    data: Mapping[str, JSONValue]

    def text(self, name: str) -> str:
        value = self.data.get(name)
        if not isinstance(value, str):
            raise self._wrong(name, "a string", value)
        return value

    def optional_text(self, name: str) -> str | None:
        return None if self.data.get(name) is None else self.text(name)

    def object(self, name: str) -> Mapping[str, JSONValue]:
        value = self.data.get(name)
        if not isinstance(value, Mapping):
            raise self._wrong(name, "an object", value)
        return value

    def items(self, name: str) -> tuple[JSONValue, ...]:
        value = self.data.get(name, ())
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise self._wrong(name, "a list", value)
        return tuple(value)

    def visibility(self) -> Visibility | None:
        match self.data.get("visibility"):
            case None:
                return None
            case "internal" | "developer" | "user" as value:
                return value
            case value:
                raise self._wrong("visibility", "'internal', 'developer' or 'user'", value)

    def extras(self, cls: type[ContentBlock]) -> Mapping[str, JSONValue]:
        fields = _FIELDS[cls]
        extras = {key: value for key, value in self.data.items() if key not in _COMMON and key not in fields}
        return extras or NO_EXTRAS

    def _wrong(self, name: str, expected: str, value: JSONValue) -> ValueError:
        return ValueError(f"Content block of type {self.kind!r}: {name!r} is {expected}; got {value!r:.200}")
