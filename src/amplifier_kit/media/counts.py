"""How many images one request has: texts take the place of the oldest where a vendor takes no more."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import attrs

from amplifier_sdk.content import ContentBlock, ImageBlock, TextBlock
from amplifier_sdk.media import media_note
from amplifier_sdk.messages import Message

__all__ = ["FittedImages", "fit_images"]


@attrs.frozen(kw_only=True)
class FittedImages:
    """The messages of one request, with no more images than it may have, and how many are not shown."""

    messages: Sequence[Message]
    left_out: int = 0


def fit_images(
    messages: Sequence[Message], *, max_images: int, max_characters: int
) -> FittedImages:
    """Put texts in place of the oldest images of a request that has too many.

    When one more image is too many a quarter of them goes at once, so that what was sent before keeps its form
    for some time and the vendors' caches of prompts hold. A message that is added never brings an image back.

    Args:
        messages: the request's.
        max_images: images that a request may have; 0 for models that cannot see.
        max_characters: characters of base64 that all of them may have together; the last one is always shown.
    """
    shown, removed = deque[_Shown](), set[tuple[int, int]]()
    size = 0
    count_after, size_after = max_images - max_images // 4, max_characters * 3 // 4
    for place, block in _images(messages):
        image = _Shown(place, _size(block))
        shown.append(image)
        size += image.size
        # down to three quarters at once: each removal changes what was sent
        # before, and the vendor's cache of the prompt is lost
        if len(shown) > max_images or size > max_characters:
            while shown and (
                len(shown) > count_after or (len(shown) > 1 and size > size_after)
            ):
                oldest = shown.popleft()
                size -= oldest.size
                removed.add(oldest.place)
    if not removed:
        return FittedImages(messages=messages)
    note = media_note(
        "image",
        "this model cannot see" if max_images == 0 else "newer ones took its place",
    )
    changed = {index for index, _ in removed}
    fitted = [
        _without(message, {at for place, at in removed if place == index}, note)
        if index in changed
        else message
        for index, message in enumerate(messages)
    ]
    return FittedImages(messages=fitted, left_out=len(removed))


@attrs.frozen
class _Shown:
    """Where an image stands, and its characters of base64."""

    place: tuple[int, int]
    size: int


def _images(
    messages: Iterable[Message],
) -> Iterable[tuple[tuple[int, int], ImageBlock]]:
    for index, message in enumerate(messages):
        yield from (
            ((index, at), block)
            for at, block in enumerate(message.blocks)
            if isinstance(block, ImageBlock)
        )


def _size(block: ImageBlock) -> int:
    return sum(
        len(part)
        for key in ("data", "url")
        if isinstance(part := block.source.get(key), str)
    )


def _without(message: Message, places: set[int], note: TextBlock) -> Message:
    content: list[ContentBlock] = [
        note if at in places else block for at, block in enumerate(message.blocks)
    ]
    return attrs.evolve(message, content=content)
