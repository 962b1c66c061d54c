"""The output of a command in bounded memory: its head, its tail, its true size, and all of it in a file."""

from __future__ import annotations

import codecs
import os
from contextlib import suppress
from typing import Final

import attrs

from amplifier_kit.files.open_flags import NEW

__all__ = ["Capture"]

_MODE: Final = 0o600


@attrs.define(eq=False)
class Capture:
    """Takes output as it comes; `close` closes the file.

    Args:
        limit: bytes that stay in memory and are shown; the first half and the last.
        spill: the path of the file that takes the whole output once it is longer than that; `None` for none.
        max_spill: bytes that the file holds at most.
    """

    # type checkers without attrs's plugin take the fields' own names for arguments
    _limit: int = attrs.field(alias="limit")
    _spill: str | None = attrs.field(default=None, alias="spill")
    _max_spill: int = attrs.field(default=1 << 30, alias="max_spill")
    total: int = attrs.field(default=0, init=False)
    spill_error: str | None = attrs.field(default=None, init=False)
    _head: bytearray = attrs.field(factory=bytearray, init=False)
    _tail: bytearray = attrs.field(factory=bytearray, init=False)
    _file: int | None = attrs.field(default=None, init=False)
    _spilled: int = attrs.field(default=0, init=False)

    @property
    def is_cut(self) -> bool:
        """Whether there is more than is shown."""
        return self.total > self._limit

    @property
    def spilled(self) -> str | None:
        """The path of the file that holds the output, as far as it may; `None` when there is none."""
        if self._spilled:
            return self._spill
        return None

    def write(self, data: bytes) -> None:
        """Take a piece of output."""
        self._keep_file(data)
        self.total += len(data)
        room = self._limit // 2 - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        limit = self._limit - self._limit // 2
        # cutting each time would copy the tail for every piece
        if len(self._tail) > 2 * limit:
            del self._tail[:-limit]

    def text(self) -> str:
        """Return the output as text, with a mark where a part of it is left out; what is no UTF-8 is replaced."""
        if not self.is_cut:
            return bytes(self._head + self._tail).decode("utf-8", "replace")
        tail = self._tail[-(self._limit - self._limit // 2) :]
        left_out = self.total - len(self._head) - len(tail)
        # Half a character at the cut is left out with the rest.
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(
            bytes(self._head)
        )
        start = next(
            (index for index, byte in enumerate(tail[:4]) if byte & 0xC0 != 0x80), 0
        )
        where = ""
        if self._spilled >= self.total:
            where = f"; all of it is in {self.spilled}"
        elif self._spilled:
            where = f"; the first {self._spilled} are in {self.spilled}"
        mark = (
            f"\n[... {left_out} of {self.total} bytes are left out here{where} ...]\n"
        )
        return head + mark + bytes(tail[start:]).decode("utf-8", "replace")

    def close(self) -> None:
        """Close the file; it stays."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _keep_file(self, data: bytes) -> None:
        """Write the output to the file from the moment on when it is too long to be shown."""
        if (
            self._spill is None
            or self.spill_error is not None
            or self.total + len(data) <= self._limit
        ):
            return
        try:
            if self._file is None:
                self._file = os.open(self._spill, NEW, _MODE)
                data = bytes(self._head + self._tail) + data
            piece = data[: self._max_spill - self._spilled]
            while piece:
                written = os.write(self._file, piece)
                self._spilled += written
                piece = piece[written:]
        except OSError as error:  # a full disk must not end the command
            self.spill_error = error.strerror
            with suppress(OSError):
                self.close()
