"""Server-sent events: bytes as they arrive become events, however the network cuts them.

Lines end with a line feed, a carriage return or both, and with nothing else: a line separator of Unicode
inside JSON text is no line end. An event that the stream leaves unfinished is not delivered. Source: the
WHATWG HTML standard, section 9.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import attrs

__all__ = ["Comment", "EventDecoder", "EventTooLongError", "LineDecoder", "ServerEvent"]

_MAX_BYTES: Final = 16 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"
_FEED: Final = 0x0A
_LINE_END: Final = re.compile(rb"[\r\n]")
_MAX_DIGITS: Final = 15


@attrs.frozen(kw_only=True)
class ServerEvent:
    """One event: its name (`message` when it has none), its data, and the last id that was seen."""

    data: str
    event: str = "message"
    id: str | None = None


@attrs.frozen(kw_only=True)
class Comment:
    """A comment line: servers send them to show that they live."""

    text: str


class EventTooLongError(ValueError):
    """One event is longer than the reader takes."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        super().__init__(f"an event of the stream is longer than {max_bytes:,} bytes")


@attrs.define(eq=False)
class EventDecoder:
    """Turns pieces of a stream into events.

    Args:
        max_bytes: the longest line, and the longest data of one event.
    """

    max_bytes: int = _MAX_BYTES
    _pending: bytearray = attrs.field(factory=bytearray, init=False)
    _searched: int = attrs.field(default=0, init=False)
    _after_return: bool = attrs.field(default=False, init=False)
    _at_start: bool = attrs.field(default=True, init=False)
    _data: list[str] = attrs.field(factory=list, init=False)
    _size: int = attrs.field(default=0, init=False)
    _event: str = attrs.field(default="", init=False)
    _id: str | None = attrs.field(default=None, init=False)
    _retry: int | None = attrs.field(default=None, init=False)

    @property
    def last_id(self) -> str | None:
        """The last id that was seen, that of an event without data as well: where a new connection goes on."""
        return self._id

    @property
    def retry(self) -> int | None:
        """The milliseconds that the server wants a client to wait before it connects again; `None` until it says so."""
        return self._retry

    def feed(self, piece: bytes) -> Iterator[ServerEvent | Comment]:
        """Take the next bytes and yield what they complete; iterate to the end before the next call.

        Raises:
            EventTooLongError: a line or an event passes `max_bytes`.
        """
        self._pending += piece
        for line in self._lines():
            item = self._read(line)
            if item is not None:
                yield item
        # a line without an end would otherwise fill the memory
        if len(self._pending) > self.max_bytes:
            raise EventTooLongError(self.max_bytes)

    def _lines(self) -> Iterator[bytes]:
        while True:
            # A line feed that comes with the next piece belongs to the carriage
            # return before it, and is no empty line, which would end the event.
            if self._after_return and self._pending:
                self._after_return = False
                if self._pending[0] == _FEED:
                    del self._pending[0]
            end = self._line_end()
            if end < 0:
                return
            line = bytes(self._pending[:end])
            self._after_return = self._pending[end] != _FEED
            del self._pending[: end + 1]
            if self._at_start:
                self._at_start = False
                line = line.removeprefix(_BOM)
            yield line

    def _line_end(self) -> int:
        """Return where the first line ends, searching only new bytes; -1 if it does not."""
        found = _LINE_END.search(self._pending, self._searched)
        if found is None:
            self._searched = len(self._pending)
            return -1
        self._searched = 0
        return found.start()

    def _read(self, line: bytes) -> ServerEvent | Comment | None:
        if not line:
            return self._dispatch()
        self._size += len(line)
        if self._size > self.max_bytes:
            raise EventTooLongError(self.max_bytes)
        field, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        match field:
            case "":
                # comments keep a connection alive for hours, and are no part of
                # an event
                self._size -= len(line)
                return Comment(text=value)
            case "data":
                self._data.append(value)
            case "event":
                self._event = value
            # the standard ignores an id with NUL, and one that is no number of
            # milliseconds
            case "id" if "\0" not in value:
                self._id = value
            case "retry" if (
                value.isascii() and value.isdigit() and len(value) <= _MAX_DIGITS
            ):
                self._retry = int(value)
            case _:  # unknown fields are skipped
                pass
        return None

    def _dispatch(self) -> ServerEvent | None:
        data, event = self._data, self._event
        # the id stays for all that follow, as the standard says; the rest is the
        # event's
        self._data, self._event, self._size = [], "", 0
        if data:
            return ServerEvent(
                data="\n".join(data), event=event or "message", id=self._id
            )
        return None


@attrs.define(eq=False)
class LineDecoder:
    """Turns pieces of a stream into events, one for each line that is not blank.

    Args:
        max_bytes: the longest line.
    """

    max_bytes: int = 16 * 1024 * 1024
    _pending: bytearray = attrs.field(factory=bytearray, init=False)

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """Take the next bytes and yield the lines that they complete.

        Raises:
            EventTooLongError: a line passes `max_bytes`.
        """
        searched = len(self._pending)
        self._pending += piece
        while (end := self._pending.find(b"\n", searched)) >= 0:
            line = bytes(self._pending[:end])
            del self._pending[: end + 1]
            searched = 0
            if len(line) <= self.max_bytes and (
                text := line.decode("utf-8", "replace").strip()
            ):
                yield ServerEvent(data=text)
            elif len(line) > self.max_bytes:
                raise EventTooLongError(self.max_bytes)
        if len(self._pending) > self.max_bytes:
            raise EventTooLongError(self.max_bytes)

    def finish(self) -> Iterator[ServerEvent]:
        """Yield the last line, which needs no line feed behind it."""
        if text := self._pending.decode("utf-8", "replace").strip():
            yield ServerEvent(data=text)
        self._pending.clear()
