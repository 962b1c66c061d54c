"""Content blocks: the typed pieces of a message.

Each block has a `type` that names it on the wire, an optional `visibility` hint for the application, and
`extras`: the vendor's own fields, which survive the round trip through `block_to_dict` and
`block_from_dict` unchanged. A block whose type nobody here knows becomes a `VendorBlock` and survives as
well. Source: the context and orchestrator specification.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import ClassVar, Final, Literal, TypeAlias, cast, get_args

import attrs

from amplifier_sdk._fields import values
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.values import NO_EXTRAS, Value

__all__ = [
    "AudioBlock",
    "ContentBlock",
    "DocumentBlock",
    "ImageBlock",
    "ReasoningBlock",
    "RedactedThinkingBlock",
    "TextBlock",
    "ThinkingBlock",
    "ToolCallBlock",
    "ToolResultBlock",
    "VendorBlock",
    "VideoBlock",
    "Visibility",
    "block_from_dict",
    "block_to_dict",
]

Visibility: TypeAlias = Literal["internal", "developer", "user"]
"""Who should see a block; the application decides what to do with the hint."""


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
        texts = (
            part.get("text")
            for part in (*self.summary, *self.content)
            if isinstance(part, Mapping)
        )
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
    """An image; `source` is the vendor-neutral mapping (`type`, `media_type`, `data` or `url`, perhaps `name`)."""

    type: ClassVar[Literal["image"]] = "image"
    source: Mapping[str, JSONValue]
    visibility: Visibility | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS


@attrs.frozen(kw_only=True, eq=False, repr=False)
class AudioBlock(Value):
    """Speech or music, with a `source` as an image has it."""

    type: ClassVar[Literal["audio"]] = "audio"
    source: Mapping[str, JSONValue]
    visibility: Visibility | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS


@attrs.frozen(kw_only=True, eq=False, repr=False)
class DocumentBlock(Value):
    """A document, with a `source` as an image has it; one of text has the type `text` and its text as `data`."""

    type: ClassVar[Literal["document"]] = "document"
    source: Mapping[str, JSONValue]
    visibility: Visibility | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS


@attrs.frozen(kw_only=True, eq=False, repr=False)
class VideoBlock(Value):
    """A video, with a `source` as an image has it."""

    type: ClassVar[Literal["video"]] = "video"
    source: Mapping[str, JSONValue]
    visibility: Visibility | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS


@attrs.frozen(kw_only=True, eq=False, repr=False)
class VendorBlock(Value):
    """A block of a type unknown here, stored unchanged so that it can go back where it came from."""

    type: str
    visibility: Visibility | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS

    @classmethod
    def from_dict(cls, data: Mapping[str, JSONValue]) -> VendorBlock:
        """Read a block of any type; `visibility` may be the vendor's own word, with another meaning.

        Raises:
            ValueError: the object has no `type`.
        """
        extras = {**data}
        kind = extras.pop("type", None)
        if not isinstance(kind, str):
            raise ValueError(
                f"A content block needs a string 'type'; got {dict(data)!r:.200}"
            )
        match extras.get("visibility"):
            case "internal" | "developer" | "user" as visibility:
                del extras["visibility"]
                return cls(type=kind, visibility=visibility, extras=extras or NO_EXTRAS)
            case _:
                return cls(type=kind, extras=extras or NO_EXTRAS)


ContentBlock: TypeAlias = (
    TextBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | ReasoningBlock
    | ToolCallBlock
    | ToolResultBlock
    | ImageBlock
    | AudioBlock
    | DocumentBlock
    | VideoBlock
    | VendorBlock
)
"""One piece of a message's content."""

_MEDIA: Final = frozenset({"audio", "document", "video"})
_CLASSES: Final[tuple[type[ContentBlock], ...]] = get_args(ContentBlock)
_FIELDS: Final[Mapping[type[ContentBlock], tuple[str, ...]]] = {
    cls: tuple(
        name
        for name in attrs.fields_dict(cls)
        if name not in ("type", "visibility", "extras")
    )
    for cls in _CLASSES
}


def block_to_dict(block: ContentBlock) -> JSONObject:
    """Write a block as the JSON object that stored messages hold; fields that are `None` are left out."""
    # the two kinds of which almost every history consists
    if block.visibility is None and not block.extras:
        if type(block) is ToolCallBlock:
            return {
                "type": "tool_call",
                "id": block.id,
                "name": block.name,
                "input": block.input,
            }
        if type(block) is TextBlock:
            return {"type": "text", "text": block.text}
    data: JSONObject = {"type": block.type}
    for name in _FIELDS[type(block)]:
        value = getattr(block, name)
        if value is not None:
            if isinstance(value, tuple):
                data[name] = list(value)
            else:
                data[name] = value
    if block.visibility is not None:
        data["visibility"] = block.visibility
    # what the block itself says wins
    return {**block.extras, **data} if block.extras else data


def block_from_dict(data: Mapping[str, JSONValue]) -> ContentBlock:
    """Read a block from its JSON object.

    Raises:
        ValueError: the object has no `type`, or lacks or misuses a field that its type needs.
    """
    kind = data.get("type")
    read = None
    if isinstance(kind, str):
        read = _readers().get(kind)
    # vendors have blocks of these names with other fields
    is_foreign = kind in _MEDIA and not isinstance(data.get("source"), Mapping)
    if read is None or is_foreign:
        return VendorBlock.from_dict(data)
    try:
        return read(data)
    except ValueError as error:
        raise ValueError(f"Content block of type {kind!r}: {error}") from None


@cache
def _readers() -> dict[str, Callable[[object], ContentBlock]]:
    """Return what reads the blocks of each type that is known here."""
    # a process without stored messages need not import it
    from amplifier_sdk._reader.loaders import loader_of

    readers = {
        cls.type: loader_of(cls)
        for cls in get_args(ContentBlock)
        if cls is not VendorBlock
    }
    return cast("dict[str, Callable[[object], ContentBlock]]", readers)
