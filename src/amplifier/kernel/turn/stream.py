"""The stream of a running turn: bounded, and nothing lost when the reader is slow.

While there is room every event is an item of its own. When the reader is behind, a delta joins the last
one if it continues it; anything else waits for room, which holds the turn back.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import anyio
import attrs

from amplifier_sdk.streaming import StreamEvent, TextDelta, ThinkingDelta, ToolCallDelta

__all__ = ["TurnStream"]

CAPACITY: Final = 64
"""How many events wait for a slow reader before deltas merge and others hold the turn back."""


@attrs.define(eq=False, repr=False)
class TurnStream:
    """An async iterator over the events of one turn, for one reader."""

    _items: deque[StreamEvent] = attrs.field(factory=deque)
    _error: BaseException | None = None
    _closed: bool = False
    _changed: anyio.Event = attrs.field(factory=anyio.Event)

    def __aiter__(self) -> TurnStream:
        return self

    async def __anext__(self) -> StreamEvent:
        while not self._items:
            self.raise_unseen()
            if self._closed:
                raise StopAsyncIteration
            await self._changed.wait()
        item = self._items.popleft()
        if len(self._items) == CAPACITY - 1:
            self._notify()
        return item

    async def send(self, event: StreamEvent) -> None:
        """Hand an event to the reader; returns at once while there is room or the event can join the last."""
        while not self.take(event):
            await self._changed.wait()

    def take(self, event: StreamEvent) -> bool:
        """Take an event if there is room or it can join the last; tell whether it was. A closed stream takes all."""
        if self._closed:
            return True
        if len(self._items) >= CAPACITY:
            joined = _join(self._items[-1], event)
            if joined is not None:
                self._items[-1] = joined
            return joined is not None
        self._items.append(event)
        if len(self._items) == 1:
            self._notify()
        return True

    def close(self, error: BaseException | None = None) -> None:
        """End the stream; the reader gets what waits, then the error or the end."""
        self._closed = True
        self._error = error or self._error
        self._notify()

    def raise_unseen(self) -> None:
        """Raise what ended the turn, unless the reader has had it already."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def _join(last: StreamEvent, event: StreamEvent) -> StreamEvent | None:
    match last, event:
        case TextDelta(), TextDelta() if last.index == event.index:
            return last.merged(event)
        case ThinkingDelta(), ThinkingDelta() if last.index == event.index:
            return last.merged(event)
        case ToolCallDelta(), ToolCallDelta() if last.id == event.id:
            return last.merged(event)
        case _:
            return None
