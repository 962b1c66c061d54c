"""What the history says of a tool's result: its text, or the blocks of its content where it has some."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from amplifier_sdk.content import (
    AudioBlock,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    VendorBlock,
    VideoBlock,
    block_from_dict,
    block_to_dict,
)
from amplifier_sdk.history._calls import tool_message
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.messages import MessageDict

if TYPE_CHECKING:
    from amplifier_sdk.results import ToolResult

__all__ = ["result_message"]

_OWN: Final = frozenset(
    {"thinking", "redacted_thinking", "reasoning", "tool_call", "tool_result"}
)
"""The types of blocks that no tool makes."""


def result_message(call_id: str, name: str, result: ToolResult) -> MessageDict:
    """Build the stored message that answers a call with a tool's result.

    Without content it is the text of `get_serialized_output`. With content it is the blocks of that; the text goes
    first where the call failed or no block is a text. A block that no model can take becomes a text that says so.
    """
    text = result.get_serialized_output()
    if not result.content:
        return tool_message(call_id, name, text)
    return tool_message(
        call_id,
        name,
        list(_written(text, result.content, is_failure=not result.success)),
    )


def _written(
    text: str, content: Sequence[ContentBlock], *, is_failure: bool
) -> Iterator[JSONObject]:
    if is_failure or not any(map(_words, content)):
        yield {"type": "text", "text": text}
    for block in content:
        is_text = isinstance(block, TextBlock) and isinstance(block.text, str)
        if is_text and (not _words(block) or (is_failure and _words(block) in text)):
            continue
        yield _plain(_shown(block))


def _words(block: ContentBlock) -> str:
    text: object
    text = None
    if isinstance(block, TextBlock):
        text = block.text
    if isinstance(text, str):
        return text.strip()
    return ""


def _shown(block: ContentBlock) -> ContentBlock:
    """Return what the model may get of a block: never a call or a result, by which others would be answered."""
    match block:
        case TextBlock():
            return block
        case ImageBlock() | AudioBlock() | DocumentBlock() | VideoBlock():
            from amplifier_sdk.media import sound_media  # few results have any

            return sound_media(block)
        case VendorBlock() if block.type not in _OWN:
            return block
        case _:
            return _note(block)


def _plain(block: ContentBlock) -> JSONObject:
    """Return a block as JSON data that every reader of the history takes; a tool may put anything into it."""
    from amplifier_sdk.convert import to_json  # few results have blocks

    try:
        written = to_json(block_to_dict(block))
        assert isinstance(written, dict)  # as every object is
        written.pop("tool_call_id", None)  # by which a history knows what is answered
        # a block that the history cannot read again would make it unreadable as a whole
        block_from_dict(written)
        return written
    except (TypeError, ValueError) as error:
        return block_to_dict(_note(block, f": {error!s:.200}"))


def _note(block: object, reason: str = "") -> TextBlock:
    kind: object = getattr(block, "type", type(block).__name__)
    return TextBlock(text=f"[a block of the type {kind!r:.80} is not shown{reason}]")
