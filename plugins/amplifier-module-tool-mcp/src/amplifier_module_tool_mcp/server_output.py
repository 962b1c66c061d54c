"""What a server says beside its messages: its error output, stray output, and its log; passed on up to a size."""

from __future__ import annotations

from collections import deque
from typing import Final

import anyio
import attrs

from amplifier_module_tool_mcp.notices import ServerNotices

__all__ = ["Hearing"]

_LONGEST_LINE: Final = 2000
_WAITING: Final = 50
_TAIL_LINES: Final = 3


@attrs.define(eq=False)
class Hearing:
    """Hears one connection.

    Args:
        server: whose it is.
        teller: takes the lines.
        max_lines: how many are passed on.
    """

    server: str
    teller: ServerNotices
    max_lines: int
    heard: int = 0
    _parts: dict[str, bytearray] = attrs.field(factory=dict)
    _tail: deque[str] = attrs.field(factory=lambda: deque(maxlen=_TAIL_LINES))
    _lines: deque[tuple[str, str]] = attrs.field(factory=lambda: deque(maxlen=_WAITING))
    _news: anyio.Event = attrs.field(factory=anyio.Event)

    def hear(self, level: str, data: bytes) -> None:
        """Take some bytes of output; of a line only the beginning is stored."""
        *ended, rest = data.split(b"\n")
        part = self._parts.setdefault(level, bytearray())
        for piece in ended:
            # A line without an end must not grow in memory.
            part += piece[: max(0, _LONGEST_LINE - len(part))]
            text = part.decode("utf-8", "replace")
            part.clear()
            if text.strip():
                self._tail.append(text)
                self.log(level, text)
        part += rest[: max(0, _LONGEST_LINE - len(part))]

    def log(self, level: str, text: str) -> None:
        """Take a line of the server's log."""
        self.heard += 1
        if self.heard <= self.max_lines:
            self._lines.append((level, text[:_LONGEST_LINE]))
            self._news.set()

    def ending(self) -> str:
        """Return what the server put out last, for the message about its end."""
        for part in self._parts.values():
            if part.strip():
                self._tail.append(part.decode("utf-8", "replace"))
        if self._tail:
            return f"; its last output: {' | '.join(self._tail)}"
        return ""

    async def pass_on(self) -> None:
        """Pass the lines on until cancelled, from when there may be somebody who hears them."""
        # Before the session begins nobody hears what is reported.
        await self.teller.begun.wait()
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            while self._lines:
                await self.teller.log(self.server, *self._lines.popleft())
            if self.heard > self.max_lines:
                await self.teller.log(
                    self.server,
                    "notice",
                    f"more than {self.max_lines} lines: the rest is left out",
                )
                return
