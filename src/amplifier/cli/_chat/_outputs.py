"""What tools put out in a chat: of each a few lines are shown, and all of it can be opened."""

from __future__ import annotations

from collections import deque
from typing import Final

import attrs

__all__ = ["ToolOutput", "ToolOutputs"]

_MAX_OUTPUTS: Final = 20
_MAX_CHARACTERS: Final = 200_000


@attrs.define(eq=False)
class ToolOutput:
    """What one call put out: its beginning, as long as a person may read.

    Args:
        title: which call it was.
    """

    title: str
    _parts: list[str] = attrs.field(factory=list)
    _size: int = 0

    def add(self, text: str) -> None:
        """Add a piece."""
        if self._size < _MAX_CHARACTERS:
            self._parts.append(text[: _MAX_CHARACTERS - self._size])
        self._size += len(text)

    @property
    def text(self) -> str:
        """What is there of it, and how much is not."""
        text = "".join(self._parts)
        if self._size > _MAX_CHARACTERS:
            left = self._size - _MAX_CHARACTERS
            return f"{text}\n... {left:,} more characters"
        return text


@attrs.define(eq=False)
class ToolOutputs:
    """The latest calls of a chat that put something out, the last one at the end."""

    _latest: deque[ToolOutput] = attrs.field(
        factory=lambda: deque[ToolOutput](maxlen=_MAX_OUTPUTS)
    )

    def __len__(self) -> int:
        return len(self._latest)

    def add(self, output: ToolOutput) -> None:
        """Remember an output."""
        self._latest.append(output)

    def latest(self, number: int) -> ToolOutput:
        """Return the last output, or one before it; the last one is number 1."""
        return self._latest[-number]
