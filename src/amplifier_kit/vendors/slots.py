"""A limit on what is under way at once, first come, first served."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator
from typing import Final

import anyio
import attrs

__all__ = ["SIGN_OF_LIFE", "Slots"]

SIGN_OF_LIFE: Final = 5.0
"""Seconds after which who waits shows that it lives."""


@attrs.define(eq=False)
class Slots:
    """Hands out so many slots.

    Args:
        number: how many; `None` is without limit.
    """

    number: int | None
    _taken: int = attrs.field(default=0, init=False)
    _queue: deque[anyio.Event] = attrs.field(factory=deque, init=False)

    async def take(self) -> AsyncGenerator[None, None]:
        """Take a slot; while none is free something is yielded every few seconds.

        The slot is the caller's when the iteration ends by itself, who then gives it back.
        """
        if self.number is None or self._taken < self.number:
            self._taken += 1
            return
        turn = anyio.Event()
        self._queue.append(turn)
        try:
            while not turn.is_set():
                with anyio.move_on_after(SIGN_OF_LIFE):
                    await turn.wait()
                if not turn.is_set():
                    yield
        except BaseException:
            if turn.is_set():
                self.give_back()
            else:
                self._queue.remove(turn)
            raise

    def give_back(self) -> None:
        """Give a slot to whoever waits longest."""
        if self._queue:
            self._queue.popleft().set()
        else:
            self._taken -= 1
