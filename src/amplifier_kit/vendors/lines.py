"""Answers of one JSON text a line: bytes as they arrive become events, however the network cuts them."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from amplifier_kit.http.sse import EventTooLongError, ServerEvent

__all__ = ["LineDecoder"]


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
