"""Images that models take: which kinds and how large; a text stands where one cannot be shown.

An image that a vendor refuses would make it refuse every later request of the conversation. So what tools return is
checked before it is stored.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Final

from amplifier_sdk.content import ImageBlock, TextBlock
from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "IMAGE_HEAD",
    "MAX_IMAGE_CHARACTERS",
    "image_block",
    "image_note",
    "image_type",
    "sound_image",
]

IMAGE_HEAD: Final = 16
"""How many bytes identify an image's kind."""

MAX_IMAGE_CHARACTERS: Final = 5 * 1024 * 1024
"""Characters of base64 that an image may have: what the strictest vendor takes."""

_LINKS: Final = ("https://", "http://")


def image_type(head: bytes) -> str | None:
    """Return the media type of an image that vendors take, by its first `IMAGE_HEAD` bytes; `None` for all else."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def image_block(media_type: str, data: str) -> ImageBlock:
    """Build the block of an image whose data are written as base64."""
    return ImageBlock(source={"type": "base64", "media_type": media_type, "data": data})


def image_note(reason: str) -> TextBlock:
    """Build the text that stands where an image is not shown."""
    return TextBlock(text=f"[an image is not shown: {reason}]")


def sound_image(block: ImageBlock) -> ImageBlock | TextBlock:
    """Return an image that vendors take, or the text that says why there is none.

    The kind that the data show counts before the one that the block names.
    """
    match block.source:
        case {"data": str(data)}:
            return _sound_data(block, "".join(data.split()))
        case {"url": str(url)} if url.startswith("data:"):
            return _sound_data(block, url.partition(",")[2])
        case {"url": str(url)} if url.startswith(_LINKS):
            return _with_source(block, type="url", url=url)
        case {"file_id": str(file_id)}:
            return _with_source(block, type="file", file_id=file_id)
        case _:
            return image_note(
                "its source has neither data nor an address that vendors fetch"
            )


def _sound_data(block: ImageBlock, data: str) -> ImageBlock | TextBlock:
    if len(data) > MAX_IMAGE_CHARACTERS:
        return image_note(
            f"it has {len(data):,} characters as base64, and models take {MAX_IMAGE_CHARACTERS:,}"
        )
    try:
        head = binascii.a2b_base64(data, strict_mode=True)[:IMAGE_HEAD]
    except ValueError:
        return image_note("its data are not base64")
    media_type = image_type(head)
    if media_type is None:
        return image_note(
            f"{_named(block.source)} is not PNG, JPEG, GIF or WebP, which are all that models take"
        )
    return _with_source(block, type="base64", media_type=media_type, data=data)


def _named(source: Mapping[str, JSONValue]) -> str:
    media_type = source.get("media_type")
    if isinstance(media_type, str) and media_type:
        return media_type[:80]
    return "it"


def _with_source(block: ImageBlock, **source: JSONValue) -> ImageBlock:
    detail = block.source.get("detail")
    if isinstance(detail, str):
        source["detail"] = detail
    return ImageBlock(source=source, visibility=block.visibility)
