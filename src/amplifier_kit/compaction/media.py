"""Media in stored messages: how many tokens they take, and what stands for them where they are left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeGuard

from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "IMAGE",
    "is_media",
    "media_left_out",
    "media_tokens",
    "media_words",
    "text_document",
]

IMAGE: Final = 1_600
"""Tokens that an image takes at most with the vendors that publish a figure; other media take at least as many."""

_IMAGES: Final = frozenset({"image", "image_url", "input_image"})
_CHARACTERS: Final[Mapping[str, int]] = {
    "document": 24,  # a page of 50 kB takes about 2,500 tokens
    "audio": 800,  # a second of MP3 has 21,000 characters and takes about 25 tokens
    "video": 800,
}
"""Characters of base64 that take a token."""


def is_media(block: JSONValue) -> TypeGuard[Mapping[str, JSONValue]]:
    """Return whether a block is no text: an image, or other media whose data or address it has."""
    if not isinstance(block, Mapping):
        return False
    if block.get("type") in _IMAGES:
        return True
    return (
        block.get("type") in _CHARACTERS
        and isinstance(block.get("source"), Mapping)
        and text_document(block) is None
    )


def text_document(block: Mapping[str, JSONValue]) -> str | None:
    """Return the text of a document that is one; `None` for any other block."""
    match block:
        case {"type": "document", "source": {"type": "text", "data": str(text)}}:
            return text
        case _:
            return None


def media_tokens(block: Mapping[str, JSONValue]) -> int:
    """Estimate the tokens that media take, by the kind and the size."""
    per_token, source = _CHARACTERS.get(str(block.get("type"))), block.get("source")
    if per_token is None or not isinstance(source, Mapping):
        return IMAGE
    data = source.get("data")
    return max(IMAGE, len(data) // per_token if isinstance(data, str) else 0)


def media_words(text: str) -> int:
    """Count the words in a value written as Python that may name media in it."""
    return text.count("image") + sum(text.count(f"'{kind}'") for kind in _CHARACTERS)


def media_left_out(block: Mapping[str, JSONValue]) -> str:
    """Return the text that stands for media which are left out."""
    kind = str(block.get("type"))
    if kind in _IMAGES:
        return "[an image is not shown]"
    return f"[{'an' if kind == 'audio' else 'a'} {kind} is not shown]"
