"""Media of a prompt, made of files, bytes and addresses: `["Describe", Image.file(path)]`."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final, Generic, TypeVar

from amplifier_kit.media.headers import HEADER, pixel_size
from amplifier_sdk.content import AudioBlock, DocumentBlock, ImageBlock, VideoBlock
from amplifier_sdk.errors import MediaError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.media import (
    MAX_IMAGE_CHARACTERS,
    MAX_MEDIA_CHARACTERS,
    MEDIA_HEAD,
    MediaBlock,
    kind_of,
    media_type,
)

__all__ = [
    "Audio",
    "Document",
    "Image",
    "Video",
    "media_data",
    "media_file",
    "most_bytes",
]

BlockT = TypeVar("BlockT", ImageBlock, AudioBlock, DocumentBlock, VideoBlock)

_BLOCKS: Final[Mapping[str, type[MediaBlock]]] = {
    "image": ImageBlock,
    "audio": AudioBlock,
    "document": DocumentBlock,
    "video": VideoBlock,
}
_LINKS: Final = ("https://", "http://")
_LONGEST_ADDRESS: Final = 8_192


class _Media(Generic[BlockT]):
    kind: ClassVar[str]

    @classmethod
    def file(cls, path: str | os.PathLike[str]) -> BlockT:
        """Read a file; its kind follows from its bytes, whatever its name ends in.

        Raises:
            MediaError: it cannot be read, is too large, is not of this kind, or claims to be a larger image than any
                model takes. What is too large is not read.
        """
        data, name = _read(Path(path))
        return cls._made(data, name, repr(os.fspath(path)))

    @classmethod
    def data(cls, data: bytes, name: str | None = None) -> BlockT:
        """Take bytes; `name` is what the model and the person call them by.

        Raises:
            MediaError: as `file`.
        """
        return cls._made(data, name, repr(name) if name else "The data")

    @classmethod
    def url(cls, address: str) -> BlockT:
        """Name what the vendor fetches itself.

        Raises:
            MediaError: the address is none of the web.
        """
        if not address.startswith(_LINKS) or len(address) > _LONGEST_ADDRESS:
            raise MediaError(
                f"expected an address that begins with https:// or http://; got {address!r:.200}"
            )
        return cls._block({"type": "url", "url": address})

    @classmethod
    def _made(cls, data: bytes, name: str | None, message: str) -> BlockT:
        return cls._block(_source(cls.kind, data, name, message))

    @classmethod
    def _block(cls, source: JSONObject) -> BlockT:
        return _BLOCKS[cls.kind](source=source)  # type: ignore[return-value]  # the block of its kind


class Image(_Media[ImageBlock]):
    """An image: PNG, JPEG, GIF or WebP."""

    kind = "image"


class Audio(_Media[AudioBlock]):
    """A recording: WAV, MP3, FLAC, Ogg or M4A."""

    kind = "audio"


class Document(_Media[DocumentBlock]):
    """A document: PDF, or text in UTF-8."""

    kind = "document"


class Video(_Media[VideoBlock]):
    """A video: MP4, MOV or WebM."""

    kind = "video"


def media_file(path: str | os.PathLike[str]) -> MediaBlock:
    """Read a file of any kind that models take; what is none of the others is a document.

    Raises:
        MediaError: as `Image.file`.
    """
    data, name = _read(Path(path))
    kind = kind_of(media_type(data[:MEDIA_HEAD]) or "text/plain")
    return _BLOCKS[kind](source=_source(kind, data, name, repr(os.fspath(path))))


def media_data(data: bytes, name: str) -> MediaBlock:
    """Make a block of the bytes of a file; otherwise as `media_file`.

    Raises:
        MediaError: as `Image.data`.
    """
    kind = kind_of(media_type(data[:MEDIA_HEAD]) or "text/plain")
    return _BLOCKS[kind](source=_source(kind, data, name, repr(name)))


def most_bytes(kind: str) -> int:
    """Return how many bytes media of a kind may have: base64 makes four characters of three."""
    if kind == "image":
        return MAX_IMAGE_CHARACTERS // 4 * 3
    return MAX_MEDIA_CHARACTERS // 4 * 3


def _read(path: Path) -> tuple[bytes, str]:
    shown = repr(str(path))
    try:
        # a pipe without a writer would keep `open` for ever
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(handle, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise MediaError(f"{shown} is no regular file")
            head = file.read(HEADER)
            kind = kind_of(media_type(head) or "text/plain")
            limit = most_bytes(kind)
            if status.st_size > limit:
                raise MediaError(
                    f"{shown} has {status.st_size:,} bytes, and models take {limit:,} of this kind ({kind})"
                )
            # it may grow while it is read
            data = head + file.read(limit + 1 - len(head))
    except (OSError, ValueError) as error:
        if isinstance(error, MediaError):
            raise
        raise MediaError(
            f"{shown} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from error
    return data, path.name


def _source(kind: str, data: bytes, name: str | None, message: str) -> JSONObject:
    """Make the source of a block of a kind.

    Raises:
        MediaError: the bytes are not of the kind, or too many.
    """
    found = media_type(data[:MEDIA_HEAD])
    named: JSONObject = {"name": name} if name else {}
    if len(data) > most_bytes(kind):
        raise MediaError(
            f"{message} has more than the {most_bytes(kind):,} bytes that models take of this kind ({kind})"
        )
    if found is None and kind == "document":
        text = _text(data, message)
        return {"type": "text", "media_type": "text/plain", "data": text, **named}
    if found is None or kind_of(found) != kind:
        raise MediaError(
            f"{message} is no {kind} that models take: by its bytes it is {found or 'nothing known'}"
        )
    size = pixel_size(data[:HEADER])
    if size is not None and not size.is_sane:
        raise MediaError(f"{message} claims to have {size}, which no model takes")
    written = base64.b64encode(data).decode("ascii")
    return {"type": "base64", "media_type": found, "data": written, **named}


def _text(data: bytes, message: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise MediaError(f"{message} is neither a PDF nor text in UTF-8")
    return text
