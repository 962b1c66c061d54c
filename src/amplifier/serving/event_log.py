"""The last events of a turn, for any number of readers: each begins after an event it knows and waits for more."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

import anyio
import attrs

from amplifier.serving.json_answers import json_bytes
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["Encode", "EventLog", "frame_of"]

Encode: TypeAlias = Callable[[int, JSONObject], bytes]
"""Writes an event, with its number, as server-sent events; as none where the protocol has no word for it."""

_KEEP_ALIVE: Final = b": keep-alive\n\n"
_MAX_PIECE: Final = 65_536
"""Bytes after which a reader gets its next piece: a server stores what a slow reader does not take."""


def frame_of(number: int, event: JSONObject) -> bytes:
    """Write an event of the stream; JSON in ASCII has no line end in it, so nothing in it ends the frame."""
    return b"id: %d\ndata: %b\n\n" % (number, json_bytes(event))


@attrs.define(eq=False)
class EventLog:
    """The events of a turn, numbered from 1, as server-sent events; at most so many are stored.

    An event is written once, whoever reads it. A reader that is slower than the turn holds nothing back.
    """

    max_events: int
    max_bytes: int
    encode: Encode = frame_of
    is_ended: bool = False
    last: int = 0
    _frames: deque[bytes] = attrs.field(factory=deque)
    _bytes: int = 0
    _changed: anyio.Event | None = None
    _event_class: type[anyio.Event] = anyio.Event

    @property
    def first(self) -> int:
        """The number of the first event that is stored; that of the next one where none is."""
        return self.last - len(self._frames) + 1

    def append(self, event: JSONObject) -> None:
        """Add an event; the first ones are dropped where there are too many."""
        self.last += 1
        frame = self.encode(self.last, event)
        self._frames.append(frame)
        self._bytes += len(frame)
        # the newest one stays, however large it is
        while len(self._frames) > self.max_events or (
            self._bytes > self.max_bytes and len(self._frames) > 1
        ):
            self._bytes -= len(self._frames.popleft())
        self._notify()

    def end(self) -> None:
        """Say that there are no more."""
        self.is_ended = True
        self._notify()

    async def read(self, after: int) -> tuple[int, bytes] | None:
        """Wait for events after a number; return the number of the last one and all that are there.

        What is not stored any more is a `gap` event, whose number is that of the last event that is missing.

        Args:
            after: the number of the last event that the reader has.

        Returns:
            `None` where the turn has ended and the reader has everything.
        """
        # as `wait` does, without another coroutine for each event
        if after >= self.last and not self.is_ended:
            await self._wait()
        return self.read_nowait(after)

    async def wait(self, after: int) -> None:
        """Wait until there is something for a reader that has the events up to a number."""
        if after >= self.last and not self.is_ended:
            await self._wait()

    def read_nowait(self, after: int) -> tuple[int, bytes] | None:
        """Return what `read` does without waiting; a comment where there is nothing."""
        dropped = self.first - 1
        if after < dropped:
            gap: JSONObject = {"type": "gap", "first": after + 1, "last": dropped}
            return dropped, self.encode(dropped, gap)
        if after < self.last:
            return self._piece(after)
        if self.is_ended:
            return None
        return after, _KEEP_ALIVE

    def wake(self) -> None:
        """Let readers send a comment, where they wait for an event."""
        self._notify()

    async def wait_for_end(self) -> None:
        """Wait until there are no more."""
        while not self.is_ended:
            await self._wait()

    def _piece(self, after: int) -> tuple[int, bytes]:
        """Return the events after a number, as many as a reader gets at once."""
        # counted from the right, where a deque is fast
        first = after - self.last
        if first == -1:
            return self.last, self._frames[-1]
        new, size = list[bytes](), 0
        for index in range(first, 0):
            frame = self._frames[index]
            new.append(frame)
            size += len(frame)
            if size >= _MAX_PIECE:
                break
        return after + len(new), b"".join(new)

    async def _wait(self) -> None:
        """Wait for a change."""
        if self._changed is None:
            self._changed = self._event_class()
            # `Event()` looks up the backend each time; its class makes one without
            self._event_class = type(self._changed)
        await self._changed.wait()

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None
