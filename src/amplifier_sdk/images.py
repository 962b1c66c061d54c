"""Images that models take: which kinds, how large, how many in one request; a text stands where one cannot be shown.

An image that a vendor refuses would make it refuse every later request of the conversation. So what tools return is
checked before it is stored.
"""

from __future__ import annotations

import binascii
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from amplifier_sdk.content import ContentBlock, ImageBlock, TextBlock
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import Message

__all__ = [
    "IMAGE_HEAD",
    "MOST_IMAGE_CHARACTERS",
    "FittedImages",
    "fit_images",
    "has_images",
    "image_block",
    "image_note",
    "image_type",
    "sound_image",
]

IMAGE_HEAD: Final = 16
"""How many bytes identify an image's kind."""

MOST_IMAGE_CHARACTERS: Final = 5 * 1024 * 1024
"""Characters of base64 that an image may have: what the strictest vendor takes."""

_LINKS: Final = ("https://", "http://")


def image_type(head: bytes) -> str | None:
    """Tell the media type of an image that vendors take from its first `IMAGE_HEAD` bytes; `None` for all else."""
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
            return image_note("its source has neither data nor an address that vendors fetch")


def _sound_data(block: ImageBlock, data: str) -> ImageBlock | TextBlock:
    if len(data) > MOST_IMAGE_CHARACTERS:
        return image_note(f"it has {len(data):,} characters as base64, and models take {MOST_IMAGE_CHARACTERS:,}")
    try:
        head = binascii.a2b_base64(data, strict_mode=True)[:IMAGE_HEAD]
    except ValueError:
        return image_note("its data are not base64")
    media_type = image_type(head)
    if media_type is None:
        return image_note(f"{_named(block.source)} is not PNG, JPEG, GIF or WebP, which are all that models take")
    return _with_source(block, type="base64", media_type=media_type, data=data)


def _named(source: Mapping[str, JSONValue]) -> str:
    media_type = source.get("media_type")
    return media_type[:80] if isinstance(media_type, str) and media_type else "it"


def _with_source(block: ImageBlock, **source: JSONValue) -> ImageBlock:
    detail = block.source.get("detail")
    if isinstance(detail, str):
        source["detail"] = detail
    return ImageBlock(source=source, visibility=block.visibility)


@attrs.frozen(kw_only=True)
class FittedImages:
    """The messages of one request, with no more images than it may have, and how many are not shown."""

    messages: Sequence[Message]
    left_out: int = 0


def has_images(messages: Iterable[Message]) -> bool:
    """Tell whether one of the messages has an image."""
    return any(True for _ in _images(messages))


def fit_images(messages: Sequence[Message], *, most: int, most_characters: int) -> FittedImages:
    """Put texts in place of the oldest images of a request that has too many.

    When one more image is too many a quarter of them goes at once, so that what was sent before keeps its form
    for some time and the vendors' caches of prompts hold. A message that is added never brings an image back.

    Args:
        messages: the request's.
        most: images that a request may have; 0 for models that cannot see.
        most_characters: characters of base64 that all of them may have together; the last one is always shown.
    """
    shown, removed = deque[_Shown](), set[tuple[int, int]]()
    size = 0
    for place, block in _images(messages):
        image = _Shown(place, _size(block))
        shown.append(image)
        size += image.size
        if len(shown) > most or size > most_characters:
            while shown and (len(shown) > most - most // 4 or (len(shown) > 1 and size > most_characters * 3 // 4)):
                oldest = shown.popleft()
                size -= oldest.size
                removed.add(oldest.place)
    if not removed:
        return FittedImages(messages=messages)
    note = image_note("this model cannot see" if most == 0 else "newer ones took its place")
    changed = {index for index, _ in removed}
    fitted = [
        _without(message, {at for place, at in removed if place == index}, note) if index in changed else message
        for index, message in enumerate(messages)
    ]
    return FittedImages(messages=fitted, left_out=len(removed))


@attrs.frozen
class _Shown:
    """Where an image stands, and its characters of base64."""

    place: tuple[int, int]
    size: int


def _images(messages: Iterable[Message]) -> Iterable[tuple[tuple[int, int], ImageBlock]]:
    for index, message in enumerate(messages):
        content = message.content
        if not isinstance(content, str):
            yield from (((index, at), block) for at, block in enumerate(content) if isinstance(block, ImageBlock))


def _size(block: ImageBlock) -> int:
    return sum(len(part) for key in ("data", "url") if isinstance(part := block.source.get(key), str))


def _without(message: Message, places: set[int], note: TextBlock) -> Message:
    content: list[ContentBlock] = [note if at in places else block for at, block in enumerate(message.blocks)]
    return attrs.evolve(message, content=content)
