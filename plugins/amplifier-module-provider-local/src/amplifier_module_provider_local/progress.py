"""What a person sees while the weights are fetched: a bar on a terminal, one line elsewhere."""

from __future__ import annotations

from typing import Final, TextIO

import attrs

__all__ = ["Progress"]

_WIDTH: Final = 30
_MEGABYTE: Final = 1_000_000


@attrs.define(eq=False)
class Progress:
    """Reports one download on a stream.

    Args:
        stream: standard error, as a rule.
        what: what is fetched.
        total: its size in bytes.
    """

    stream: TextIO
    what: str
    total: int
    _shown: str = attrs.field(default="", init=False)

    def start(self) -> None:
        """Say that the download begins."""
        if self.stream.isatty():
            self.show(0)
            return
        self._write(f"Fetching {self.what} (about {_rounded(self.total)} MB, once) …\n")

    def show(self, done: int) -> None:
        """Show how many bytes are there; nothing happens off a terminal or when it would look the same."""
        if not self.stream.isatty():
            return
        part = min(done / self.total, 1.0)
        bar = "#" * int(part * _WIDTH)
        line = f"Fetching {self.what}  [{bar:.<{_WIDTH}}] {int(part * 100):3d} % of {self.total // _MEGABYTE} MB"
        if line != self._shown:
            self._write(f"\r{line}")
            self._shown = line

    def end(self) -> None:
        """Take the bar away."""
        if self._shown:
            self._write(f"\r{' ' * len(self._shown)}\r")
            self._shown = ""

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


def _rounded(size: int) -> int:
    """Return the size in megabytes, to the nearest ten and at least one."""
    return max(round(size, -7) // _MEGABYTE, 1)
