"""The output of git in bounded memory: its records, which end with NUL."""

from __future__ import annotations

from typing import Final

__all__ = ["Records"]

_MAX_BYTES: Final = 4096


class Records:
    """Takes output as it comes; keeps the first records, each up to 4,096 bytes, and counts all.

    Args:
        most: how many are stored.
        end: the byte that ends one.
    """

    def __init__(self, most: int, end: bytes = b"\0") -> None:
        self.count: int = 0
        self._most = most
        self._end = end
        self._kept: list[bytes] = []
        self._open = b""

    def write(self, data: bytes) -> None:
        """Take a piece of output."""
        *ended, rest = data.split(self._end)
        for piece in ended:
            self._take(self._open + piece)
            self._open = b""
        # A record without an end must not grow in memory.
        self._open = (self._open + rest)[:_MAX_BYTES]

    @property
    def texts(self) -> list[str]:
        """The stored records; bytes that are no UTF-8 are replaced."""
        return [record.decode("utf-8", "replace") for record in self._kept]

    @property
    def paths(self) -> list[str]:
        """The stored records, as paths to be opened."""
        return [record.decode("utf-8", "surrogateescape") for record in self._kept]

    def _take(self, record: bytes) -> None:
        self.count += 1
        if len(self._kept) < self._most:
            self._kept.append(record[:_MAX_BYTES])
