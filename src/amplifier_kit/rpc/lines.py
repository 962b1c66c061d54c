"""Messages in lines, of bounded size: what is too long is not stored, but counted, with the request that it answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, Self, TypeAlias

import attrs

__all__ = ["LineSplitter", "RequestId", "TooLong", "answered_id", "asked_id"]

_KEPT: Final = 4096
_ID: Final = rb'(-?[0-9]{1,18}|"(?:[^"\\]|\\.){0,200}")'
_VERSION: Final = rb'"jsonrpc"\s*:\s*"2\.0"'
_ANSWER: Final = rb'"(?:result|error)"\s*:'
# What stands before the first value that may nest is the message's own, and so is what stands right before the brace
# that ends it.
_ID_FIRST: Final = re.compile(
    rb"\s*\{\s*(?:"
    + _VERSION
    + rb'\s*,\s*)?"id"\s*:\s*'
    + _ID
    + rb"\s*,\s*(?:"
    + _VERSION
    + rb"\s*,\s*)?"
    + _ANSWER
)
_ASKED: Final = re.compile(
    rb"\s*\{\s*(?:"
    + _VERSION
    + rb'\s*,\s*)?(?:"method"\s*:\s*"[^"\\]{0,200}"\s*,\s*)?"id"\s*:\s*'
    + _ID
    + rb"\s*[,}]"
)
_IS_ANSWER: Final = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ANSWER)
_ID_LAST: Final = re.compile(
    rb"(?:,\s*"
    + _VERSION
    + rb')?\s*,\s*"id"\s*:\s*'
    + _ID
    + rb"\s*(?:,\s*"
    + _VERSION
    + rb"\s*)?\}\s*\Z"
)

RequestId: TypeAlias = int | str


@attrs.frozen
class TooLong:
    """A line that was too long: its size in bytes, its beginning and its end."""

    size: int
    head: bytes
    tail: bytes

    @classmethod
    def of(cls, line: bytes) -> Self:
        """Make one of a line that is there whole."""
        return cls(len(line), line[:_KEPT], line[-_KEPT:])


@attrs.define(eq=False)
class LineSplitter:
    """Makes lines of pieces.

    Args:
        max_bytes: the longest line that is stored.
    """

    max_bytes: int
    _line: bytearray = attrs.field(factory=bytearray, init=False)
    _dropped: int = attrs.field(default=0, init=False)
    _head: bytes = attrs.field(default=b"", init=False)

    def feed(self, data: bytes) -> Iterator[bytes | TooLong]:
        """Take a piece and yield the lines that it ends; empty ones are left out."""
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._add(piece)
            line = self._take()
            if line:
                yield line
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        self._line += piece
        # From here on only the beginning and the end stay in memory.
        if not self._dropped and len(self._line) > self.max_bytes:
            self._head = bytes(self._line[:_KEPT])
        if self._head:
            over = max(0, len(self._line) - _KEPT)
            self._dropped += over
            del self._line[:over]

    def _take(self) -> bytes | TooLong:
        line = bytes(self._line)
        found = (
            TooLong(self._dropped + len(line), self._head, line) if self._head else line
        )
        self._line, self._dropped, self._head = bytearray(), 0, b""
        return found


def answered_id(line: TooLong) -> RequestId | None:
    """Return the id of the request that a message answers; `None` when it is no answer, or the id is unknown."""
    found = _ID_FIRST.match(line.head)
    # In between, an `"id"` may stand inside the result, where the server can write
    # anything.
    if found is None and _IS_ANSWER.match(line.head):
        found = _ID_LAST.search(line.tail)
    return _id_in(found)


def asked_id(line: TooLong) -> RequestId | None:
    """Return the id of a request that stands at its beginning; `None` where it does not."""
    return _id_in(_ASKED.match(line.head))


def _id_in(found: re.Match[bytes] | None) -> RequestId | None:
    if found is None:
        return None
    try:
        value: RequestId = json.loads(found[1])
    except ValueError:  # an escape that is none
        return None
    return value
