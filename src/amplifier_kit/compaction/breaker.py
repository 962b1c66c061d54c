"""The breaker that ends a compaction which runs away: one after the other, each of no avail."""

from __future__ import annotations

from typing import Final

import attrs

__all__ = ["RunawayBreaker"]

OFTEN: Final = 4
"""A compaction with fewer new messages than this since the one before it comes too often."""


@attrs.define(eq=False)
class RunawayBreaker:
    """Counts compactions in a row that missed their target or came right after another.

    Args:
        limit: how many there may be before the breaker opens.
    """

    limit: int
    _in_a_row: int = 0
    _last: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether views are compacted only when they are larger than the whole budget."""
        return self._in_a_row >= self.limit

    def record(self, messages: int, *, reached: bool) -> bool:
        """Take in a compaction, or the try of one.

        Args:
            messages: the length of the history.
            reached: whether the view is as small as it should be now.

        Returns:
            Whether the breaker opened by it.
        """
        was_open = self.is_open
        often = self._last is not None and messages - self._last < OFTEN
        self._last = messages
        if reached and not often:
            self._in_a_row = 0
        else:
            self._in_a_row = self._in_a_row + 1
        return self.is_open and not was_open
