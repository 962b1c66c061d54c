"""Shorter forms of tool results and prompts: the beginning, the end, and how much is missing between them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import attrs

from amplifier_kit.compaction.media import (
    is_media,
    media_left_out,
    text_document,
)
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import MessageDict

__all__ = ["cut", "limited", "shortened"]

LEAST_SAVED: Final = 80
"""Characters that a cut must save at least; its own note takes most of them."""

BYTES_PER_CHARACTER: Final = 4
"""The most bytes of a character in UTF-8."""

_TEXTS: Final = ("text", "output", "content")


def shortened(message: MessageDict, limit: int, number: int) -> MessageDict:
    """Return a copy whose texts have at most `limit` characters each and no media, or the message where all fits.

    Args:
        message: a tool's result or a prompt, in any shape.
        limit: characters of a text that stay; the note of what is missing comes on top.
        number: the message's place in the history, for the note.
    """
    return _with_content(
        message,
        _Cutter(limit, number, keeps_media=False).content(message.get("content")),
    )


def limited(message: MessageDict, most_bytes: int, number: int) -> MessageDict:
    """Return a copy whose texts have at most so many bytes of UTF-8 together, or the message where they have.

    Media stay: they are no text. The notes of what is missing come on top.
    """
    content = message.get("content")
    if isinstance(content, str):
        texts = [content]
    else:
        texts = list(map(_written, _without_media(content)))
    size = sum(
        len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        for text in texts
    )
    if size <= most_bytes:
        return message
    if all(map(str.isascii, texts)):
        characters = most_bytes
    else:
        # an upper bound, so that no cut text passes the limit and none is
        # measured twice
        characters = most_bytes // BYTES_PER_CHARACTER
    limit = characters // len(texts)
    return _with_content(
        message, _Cutter(limit, number, keeps_media=True).content(content)
    )


def cut(text: str, limit: int, number: int) -> str:
    """Return the beginning and the end of a text, two parts to one, with a note between; a short text as it is."""
    if len(text) <= limit + LEAST_SAVED:
        return text
    head = limit - limit // 3
    tail = text[len(text) - limit // 3 :]
    return f"{text[:head]}\n[{len(text) - limit:,} characters of message {number} are not shown]\n{tail}"


def _with_content(message: MessageDict, content: JSONValue) -> MessageDict:
    if content is message.get("content"):
        return message
    return {**message, "content": content}


def _without_media(content: JSONValue) -> list[JSONValue]:
    if not isinstance(content, (list, tuple)):
        return []
    return [block for block in content if not is_media(block)]


@attrs.frozen
class _Cutter:
    """Shortens every text of a content; what needs no change comes back as it is."""

    limit: int
    number: int
    keeps_media: bool

    def content(self, content: JSONValue) -> JSONValue:
        if isinstance(content, str):
            return cut(content, self.limit, self.number)
        if not isinstance(content, (list, tuple)):
            return content
        blocks = [self._block(block) for block in content]
        if all(new is old for new, old in zip(blocks, content, strict=True)):
            return content
        return blocks

    def _block(self, block: JSONValue) -> JSONValue:
        if isinstance(block, str):
            return cut(block, self.limit, self.number)
        if not isinstance(block, Mapping):
            return block
        if is_media(block):
            if self.keeps_media:
                return block
            return {"type": "text", "text": media_left_out(block)}
        if text_document(block) is not None:
            return self._document(block)
        changed = {
            key: short
            for key in _TEXTS
            if (short := self._value(block.get(key))) is not block.get(key)
        }
        if changed:
            return {**block, **changed}
        return block

    def _document(self, block: Mapping[str, JSONValue]) -> JSONValue:
        text, source = text_document(block), block.get("source")
        assert text is not None
        assert isinstance(source, Mapping)
        short = cut(text, self.limit, self.number)
        if short is text:
            return block
        return {**block, "source": {**source, "data": short}}

    def _value(self, value: JSONValue) -> JSONValue:
        """Shorten what a tool returned; what is no text is cut as the text it is written as."""
        if isinstance(value, str):
            return cut(value, self.limit, self.number)
        if not isinstance(value, (list, tuple, Mapping)):
            return value
        text = _written(value)
        short = cut(text, self.limit, self.number)
        if short is text and (self.keeps_media or "is not shown]" not in text):
            return value
        return short


def _written(value: JSONValue) -> str:
    match value:
        case str():
            return value
        case list() | tuple() if any(
            isinstance(item, Mapping) and "type" in item for item in value
        ):
            return "\n".join(map(_written, value))
        case Mapping() if is_media(value):
            return media_left_out(value)
        case Mapping() if (said := text_document(value)) is not None:
            return said
        case Mapping() if isinstance(text := value.get("text"), str):
            return text
        case _:
            return json.dumps(value, ensure_ascii=False, default=str)
