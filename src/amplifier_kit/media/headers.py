"""How large an image says it is, read from the first bytes of the file and without decoding it."""

from __future__ import annotations

import struct
from typing import Final

import attrs

from amplifier_sdk.media import media_type

__all__ = ["HEADER", "MOST_PIXELS", "MOST_SIDE", "PixelSize", "pixel_size"]

HEADER: Final = 65_536
"""Bytes in which the size of an image is looked for; photographs carry a preview in front of theirs."""

MOST_SIDE: Final = 30_000
"""Pixels that one side of an image may have."""

MOST_PIXELS: Final = 100_000_000
"""Pixels that an image may have: a small file may claim more than any memory holds."""

_JPEG_SIZES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE: Final = frozenset({0x01, *range(0xD0, 0xD9)})


@attrs.frozen
class PixelSize:
    """The sides of an image, in pixels."""

    width: int
    height: int

    def __str__(self) -> str:
        return f"{self.width} x {self.height} pixels"

    @property
    def is_sane(self) -> bool:
        """Whether a model may get the image."""
        return self.width > 0 < self.height and not self.is_huge

    @property
    def is_huge(self) -> bool:
        """Whether it claims more than any model takes."""
        return (
            max(self.width, self.height) > MOST_SIDE
            or self.width * self.height > MOST_PIXELS
        )


def pixel_size(head: bytes) -> PixelSize | None:
    """Return the size that an image's header claims, or `None` where the header has none.

    Args:
        head: the first `HEADER` bytes of the file, or all of a smaller one.
    """
    try:
        match media_type(head):
            case "image/png":
                return PixelSize(*struct.unpack_from(">II", head, 16))
            case "image/gif":
                return PixelSize(*struct.unpack_from("<HH", head, 6))
            case "image/jpeg":
                return _jpeg(head)
            case "image/webp":
                return _webp(head)
            case _:
                return None
    except struct.error:  # the header is cut
        return None


def _jpeg(head: bytes) -> PixelSize | None:
    """Step from segment to segment up to the one with the size."""
    at = 2
    while True:
        mark, kind = struct.unpack_from(">BB", head, at)
        if mark != 0xFF:
            return None
        if kind == 0xFF:  # a byte that fills
            at += 1
        elif kind in _JPEG_BARE:
            at += 2
        elif kind in _JPEG_SIZES:
            height, width = struct.unpack_from(">HH", head, at + 5)
            return PixelSize(width, height)
        else:
            (length,) = struct.unpack_from(">H", head, at + 2)
            at += 2 + max(length, 2)


def _webp(head: bytes) -> PixelSize | None:
    match head[12:16]:
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", head, 26)
            return PixelSize(width & 0x3FFF, height & 0x3FFF)
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", head, 21)
            return PixelSize((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8X":
            low, high = struct.unpack_from("<IH", head, 24)
            return PixelSize(
                (low & 0xFFFFFF) + 1, (low >> 24 | (high & 0xFFFF) << 8) + 1
            )
        case _:
            return None
