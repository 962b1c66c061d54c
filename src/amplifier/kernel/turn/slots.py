"""Slots: how many tool calls of one answer run at once.

A call that waits for a child session does nothing itself, and its child has a limit of
its own. So the call gives its slot to another one meanwhile, and takes one again before
it continues.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import attrs

from amplifier.kernel.spans import current_span

__all__ = ["CallSlot", "call_slot_released"]


@attrs.define(eq=False, repr=False)
class CallSlot:
    """The slot of one call.

    Args:
        slots: those of all calls beside it.
        start_next: is called when the slot is free for the time of a delegation.
    """

    slots: anyio.Semaphore
    start_next: Callable[[], None]
    _children: int = 0
    _is_held: bool = False

    async def __aenter__(self) -> None:
        await self.slots.acquire()
        self._is_held = True

    async def __aexit__(self, *_: object) -> None:
        self._release()

    @asynccontextmanager
    async def released(self) -> AsyncIterator[None]:
        """Be without the slot; several children at once may be waited for."""
        self._children += 1
        if self._is_held:
            self._release()
            # the semaphore is free now, but every worker is busy: one more takes it
            self.start_next()
        try:
            yield
        finally:
            self._children -= 1
            # the last child to end takes the slot again for the call
            if not self._children:
                await self._take_again()

    async def _take_again(self) -> None:
        await self.slots.acquire()
        if self._children or self._is_held:  # of other children, begun since
            self.slots.release()
        else:
            self._is_held = True

    def _release(self) -> None:
        if self._is_held:
            self._is_held = False
            self.slots.release()


@asynccontextmanager
async def call_slot_released() -> AsyncIterator[None]:
    """Give the slot of the call that the running code is part of to another call."""
    span = current_span.get()
    if span is None or span.release_slot is None:
        yield
        return
    async with span.release_slot():
        yield
