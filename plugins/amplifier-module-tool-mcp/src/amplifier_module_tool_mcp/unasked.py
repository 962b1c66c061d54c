"""How much of what a server sends unasked is taken."""

from __future__ import annotations

from typing import Final

import anyio
import attrs

__all__ = ["Unasked"]

_MOST: Final = 200
"""Messages in a second that answer nothing."""


@attrs.define(eq=False)
class Unasked:
    """Counts what a server sends that answers nothing."""

    _second: float = 0.0
    _count: int = 0

    def is_too_much(self) -> bool:
        """Count a message; true for those beyond 200 in a second, which are dropped."""
        now = anyio.current_time()
        # Seconds are counted from the first message of each, which needs no timer.
        if now - self._second >= 1.0:
            self._second, self._count = now, 0
        self._count += 1
        return self._count > _MOST
