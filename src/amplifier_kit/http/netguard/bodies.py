"""What servers send, unpacked by pieces and no further than asked, so that a small bomb stays small."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, Iterator
from typing import Final, Protocol

import anyio
import attrs

__all__ = ["ACCEPTED", "Body", "Unpacker", "read_body", "unpacker_of"]

ACCEPTED: Final = "gzip, deflate"
"""What requests say in `Accept-Encoding`: what is unpacked here."""

_PIECE: Final = 1 << 16
_HEAD: Final = 2
_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS
_BARE: Final = -zlib.MAX_WBITS


@attrs.frozen(kw_only=True)
class Body:
    """What was read of a body.

    Args:
        data: the bytes, unpacked.
        is_whole: whether that is all of it.
        is_broken: whether it ended before its end.
        is_late: whether it is not all because there was no more time.
    """

    data: bytes
    is_whole: bool = True
    is_broken: bool = False
    is_late: bool = False


class Unpacker(Protocol):
    """Unpacks a body by pieces."""

    @property
    def is_open(self) -> bool:
        """Whether more has to come."""

    def unpack(self, data: bytes) -> Iterator[bytes]:
        """Yield what the data hold, in pieces of bounded size.

        Raises:
            ValueError: the data are not packed as they should be.
        """


def unpacker_of(encoding: str) -> Unpacker:
    """Return what unpacks a `Content-Encoding`.

    Raises:
        ValueError: it is not one of those that were asked for.
    """
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return _Plain()
    if name in ("gzip", "x-gzip", "deflate"):
        return _Inflating()
    raise ValueError(
        f"it is packed with {encoding.strip()!r:.60}, and only gzip and deflate are unpacked"
    )


async def read_body(
    chunks: AsyncIterable[bytes],
    unpacker: Unpacker,
    max_bytes: int,
    seconds: float | None = None,
) -> Body:
    """Read a body up to a size, counted after unpacking, and up to a time, and stop there.

    Raises:
        ValueError: the data are not packed as they should be.
    """
    data = bytearray()
    with anyio.move_on_after(seconds):
        async for chunk in chunks:
            for piece in unpacker.unpack(chunk):
                # one byte more than asked shows that there is more, without
                # unpacking the rest
                data += piece[: max_bytes + 1 - len(data)]
                if len(data) > max_bytes:
                    return Body(data=bytes(data[:max_bytes]), is_whole=False)
        return Body(data=bytes(data), is_broken=unpacker.is_open)
    return Body(data=bytes(data), is_whole=False, is_late=True)


class _Plain:
    is_open = False

    def unpack(self, data: bytes) -> Iterator[bytes]:
        yield data


@attrs.define(eq=False)
class _Inflating:
    """Gzip, also of several members, and both things that servers call deflate.

    Two bytes tell which of them it is; what comes alone is held back.
    """

    _inflater: zlib._Decompress = attrs.field(
        factory=lambda: zlib.decompressobj(_GZIP_OR_ZLIB)
    )
    _is_fresh: bool = True
    _held: bytes = b""

    @property
    def is_open(self) -> bool:
        return bool(self._held) or (not self._inflater.eof and not self._is_fresh)

    def unpack(self, data: bytes) -> Iterator[bytes]:
        data, self._held = self._held + data, b""
        if self._is_fresh and len(data) < _HEAD:
            self._held = data
            return
        while data:
            # members of gzip may follow one another, and are one body
            if self._inflater.eof:
                if not data.strip(b"\0"):  # padding behind the last member
                    return
                self._inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
            yield self._inflate(data)
            data = self._inflater.unconsumed_tail or self._inflater.unused_data
        # what zlib still holds back when all input was taken
        while not self._inflater.eof and (rest := self._inflate(b"")):
            yield rest

    def _inflate(self, data: bytes) -> bytes:
        try:
            piece = self._inflater.decompress(data, _PIECE)
        except zlib.error as error:
            # only the first bytes decide what it is: later damage is damage
            if not self._is_fresh:
                raise ValueError(
                    f"its compressed data are damaged ({error})"
                ) from error
            piece = self._inflate_bare(data)
        self._is_fresh = False
        return piece

    def _inflate_bare(self, data: bytes) -> bytes:
        # "deflate" means zlib's format, and many servers send it without its
        # header
        self._inflater = zlib.decompressobj(_BARE)
        try:
            return self._inflater.decompress(data, _PIECE)
        except zlib.error as error:
            raise ValueError(
                f"its data are not compressed as it says ({error})"
            ) from error
