"""Markdown that comes in pieces, cut into blocks: each can be shown when it is whole, and never changes afterwards."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import attrs

__all__ = ["MarkdownBlocks"]

_FENCE: Final = re.compile(r"[ \t]*(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)")
_ITEM: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_TAIL: Final = 4000


@attrs.define(eq=False)
class MarkdownBlocks:
    """Takes a text in pieces and hands on its blocks: paragraphs, headings, lists, tables, fences.

    Every line of the text is in one block, in its order; what is lost are blank lines between blocks.
    """

    _lines: list[str] = attrs.field(factory=list)
    _begun: list[str] = attrs.field(factory=list)
    _fence: str = ""

    @property
    def tail(self) -> str:
        """The last part of the incomplete block: all of it, of a long one the last 4,000 characters."""
        begun = _last_of(self._begun, "")
        return _last_of([*self._lines[-_TAIL:], *([begun] if begun else [])], "\n")

    def feed(self, text: str) -> list[str]:
        """Take a piece, and return the blocks that are whole by now."""
        # Joined once at the line's end: adding each piece to the text so far would be
        # quadratic.
        if "\n" not in text:
            self._begun.append(text)
            return []
        *lines, begun = "".join([*self._begun, text]).split("\n")
        self._begun = [begun]
        return [block for line in lines for block in self._line(line)]

    def end(self) -> list[str]:
        """Return what is left; the next piece begins another text."""
        begun = "".join(self._begun)
        if begun:
            blocks = self._line(begun)
        else:
            blocks = []
        self._begun = []
        self._fence = ""
        return [*blocks, *self._close()]

    def _line(self, line: str) -> list[str]:
        """Take a line, and return the blocks that it ends."""
        if self._fence:
            return self._fenced(line)
        found = _FENCE.match(line)
        if found is not None and not (
            # CommonMark: a line with backticks after the fence is inline code.
            found["fence"][0] == "`" and "`" in found["info"]
        ):
            return self._open_fence(line, found["fence"])
        if not line.strip():
            return self._blank()
        if _HEADING.match(line):
            blocks = self._close()
            self._lines.append(line)
            return [*blocks, *self._close()]
        if self._is_over(line):
            blocks = self._close()
        else:
            blocks = []
        self._lines.append(line)
        return blocks

    def _fenced(self, line: str) -> list[str]:
        self._lines.append(line)
        if line.strip().startswith(self._fence) and not line.strip().strip(
            self._fence[0]
        ):
            self._fence = ""
            # A fence inside a list ends with its item, not with the block.
            if _FENCE.match(self._lines[0]):
                return self._close()
        return []

    def _open_fence(self, line: str, fence: str) -> list[str]:
        """Begin code: in a list it belongs to the item above it, else it is a block of its own."""
        is_inside = self._is_list and line[:1] in " \t"
        if is_inside:
            blocks = []
        else:
            blocks = self._close()
        self._lines.append(line)
        self._fence = fence
        return blocks

    def _blank(self) -> list[str]:
        if not self._is_list:
            return self._close()
        self._lines.append("")  # the next line decides whether the list goes on
        return []

    def _is_over(self, line: str) -> bool:
        """Tell whether a line behind a blank one is no part of the list before it."""
        if not self._lines or self._lines[-1]:
            return False
        return not (_ITEM.match(line) or line[:2].isspace() or line[:1] == "\t")

    @property
    def _is_list(self) -> bool:
        return bool(self._lines) and _ITEM.match(self._lines[0]) is not None

    def _close(self) -> list[str]:
        while self._lines and not self._lines[-1].strip():
            self._lines.pop()
        block, self._lines = "\n".join(self._lines), []
        if block:
            return [block]
        return []


def _last_of(parts: Sequence[str], between: str) -> str:
    """Join the last parts, as many as it takes for so many characters."""
    size, first = 0, len(parts)
    while first and size < _TAIL:
        first -= 1
        size += len(parts[first]) + len(between)
    return between.join(parts[first:])[-_TAIL:]
