"""Standard error while a chat runs: what modules, logs and notices write to it goes above the prompt, line by line."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable

__all__ = ["LineStream"]


class LineStream(io.TextIOBase):
    """A text stream that hands on whole lines; may be written to from any thread.

    Args:
        take: takes lines with their ends.
        is_terminal: what `isatty` says.
    """

    encoding: str = "utf-8"
    errors: str | None = "backslashreplace"

    def __init__(self, take: Callable[[str], None], *, is_terminal: bool) -> None:
        super().__init__()
        self._take = take
        self._is_terminal = is_terminal
        self._begun = ""
        self._lock = threading.RLock()

    def writable(self) -> bool:
        """Say that it can be written to."""
        return True

    def isatty(self) -> bool:
        """Say whether a terminal shows what is written."""
        return self._is_terminal

    def write(self, text: str, /) -> int:
        """Hand on the lines that are whole by now."""
        with self._lock:
            whole, end, self._begun = (self._begun + text).rpartition("\n")
        # Outside the lock: `take` has one of its own, and whoever holds that may write
        # here.
        if end:
            self._take(whole + end)
        return len(text)

    def finish(self) -> None:
        """Hand on a line that is left without its end."""
        with self._lock:
            begun, self._begun = self._begun, ""
        if begun:
            self._take(f"{begun}\n")
