"""Where the events of a running turn go: to a function in the turn's own task, or to a reader in another.

A function gets each event as it happens. Of a reader's stream nothing is lost when the reader is slow: while there is
room every event is an item of its own; when the reader is behind, a delta joins the last one if it continues it, and
anything else waits for room, which holds the turn back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeAlias, TypeVar, cast

import anyio
import attrs

from amplifier_sdk.streaming import StreamEvent, TextDelta, ThinkingDelta, ToolCallDelta

__all__ = ["EventFunction", "EventFunctionSink", "EventSink", "TurnStream"]

_DeltaT = TypeVar("_DeltaT", TextDelta, ThinkingDelta, ToolCallDelta)

EventFunction: TypeAlias = Callable[[StreamEvent], Awaitable[object] | None]
"""Gets each event of a turn; what it returns, if anything, is awaited and holds the turn back."""

CAPACITY: Final = 64
"""How many events wait for a slow reader before deltas merge and others hold the turn back."""


class EventSink(Protocol):
    """Takes the events of one turn."""

    def offer(self, event: StreamEvent, /) -> Awaitable[object] | None:
        """Hand over an event; what is returned, if anything, has to be awaited before the turn continues."""
        ...

    async def send(self, event: StreamEvent, /) -> None:
        """Hand over an event, and wait until the turn may continue."""
        ...


@attrs.frozen(eq=False)
class EventFunctionSink:
    """Hands each event to a function, in the task in which it happens."""

    offer: EventFunction

    async def send(self, event: StreamEvent, /) -> None:
        """Hand over an event and wait for what the function returns, if anything."""
        waiting = self.offer(event)
        if waiting is not None:
            await waiting


@attrs.define(eq=False, repr=False)
class TurnStream:
    """An async iterator over the events of one turn, for one reader."""

    _items: deque[StreamEvent] = attrs.field(factory=deque)
    _behind: list[StreamEvent] = attrs.field(factory=list)  # continues the last item
    _error: BaseException | None = None
    _closed: bool = False
    _waiting: anyio.Event | None = None  # for items, or for room

    def __aiter__(self) -> TurnStream:
        return self

    async def __anext__(self) -> StreamEvent:
        while not self._items:
            self.raise_unseen()
            if self._closed:
                raise StopAsyncIteration
            await self._wait()
        if len(self._items) == 1:
            self._merge()
        item = self._items.popleft()
        # only the first free place wakes the sender: it may wait for nothing else
        if len(self._items) == CAPACITY - 1:
            self._notify()
        return item

    async def send(self, event: StreamEvent) -> None:
        """Hand an event to the reader; returns at once while there is room or the event can join the last."""
        while not self.take(event):
            await self._wait()

    def offer(self, event: StreamEvent) -> Awaitable[None] | None:
        """Take an event if there is room or it can join the last; else return what waits for room."""
        if self.take(event):
            return None
        return self.send(event)

    def take(self, event: StreamEvent) -> bool:
        """Take an event if there is room or it can join the last; return whether it was. A closed stream takes all."""
        if self._closed:
            return True
        if len(self._items) >= CAPACITY:
            if not _continues(self._items[-1], event):
                return False
            self._behind.append(event)
            return True
        self._merge()
        self._items.append(event)
        # a reader waits only while there is nothing
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

    def _merge(self) -> None:
        """Let the last item be all that continues it: once, since each time would copy all of the text."""
        if self._behind:
            # of one kind, since they continue each other
            deltas = cast("list[TextDelta]", [self._items[-1], *self._behind])
            self._items[-1] = _merged(deltas)
            self._behind.clear()

    async def _wait(self) -> None:
        """Wait for the next change; an event is made only by whoever waits, since most deltas find nobody waiting."""
        if self._waiting is None:
            self._waiting = anyio.Event()
        await self._waiting.wait()

    def _notify(self) -> None:
        if self._waiting is not None:
            self._waiting.set()
            self._waiting = None


def _continues(last: StreamEvent, event: StreamEvent) -> bool:
    match last, event:
        case TextDelta(), TextDelta():
            return last.index == event.index
        case ThinkingDelta(), ThinkingDelta():
            return last.index == event.index
        case ToolCallDelta(), ToolCallDelta():
            return last.id == event.id
        case _:
            return False


def _merged(deltas: Sequence[_DeltaT]) -> _DeltaT:
    """Return one delta of several that continue each other; halves are joined, so that little is copied often."""
    middle = len(deltas) // 2
    if middle == 0:
        return deltas[0]
    return _merged(deltas[:middle]).merged(_merged(deltas[middle:]))
