"""Following the events of sessions: one task reads the store for all readers that this process has of a session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Final

import anyio
import attrs
from anyio.abc import TaskGroup

from amplifier.server.retries import Retries
from amplifier.serving.event_log import EventLog, frame_of
from amplifier.serving.limits import ServerLimits
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import LogEntry, SessionStore

__all__ = ["FollowedSession", "Followers", "StoredLog"]

_POLL: Final = 30.0
_RETRY: Final = 1.0
_LONGEST: Final = 5.0
_MAX_PIECE: Final = 65_536
_MAX_EARLIER: Final = 4096


@attrs.define(eq=False)
class FollowedSession:
    """A session whose events somebody reads, at least one.

    Args:
        store: where it is.
        session_id: its id.
        log: its last events; what is older stands in the store alone.
        follow: runs this, which nobody does once the last reader left.
    """

    store: SessionStore
    session_id: str
    log: StoredLog
    follow: Callable[[FollowedSession], None]
    is_left: bool = False
    _readers: int = 0
    _scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)

    @contextmanager
    def reader(self) -> Iterator[None]:
        """Count a reader for a block; without any, nobody follows."""
        if self.is_left:  # while this one was on its way
            self.is_left = False
            self._scope = anyio.CancelScope()
            self.follow(self)
        self._readers += 1
        try:
            yield
        finally:
            self._readers -= 1
            if not self._readers:
                self.is_left = True
                self._scope.cancel()

    async def run(self) -> None:
        """Read what is new whenever the session changes, until nobody wants it or the session is gone."""
        seen, retries = "", Retries("server.events_not_read", _RETRY, _LONGEST)
        with self._scope:
            while True:
                try:
                    seen = await self.store.wait_for_change(
                        self.session_id, seen, max_wait=_POLL
                    )
                    await self._read()
                    retries.succeed()
                except (AmplifierError, OSError) as error:
                    # readers wait; what they miss meanwhile stands in the store
                    seen = ""  # what changed was not read
                    await retries.wait(error, session=self.session_id)
                if self.log.recent.is_ended:
                    return

    async def _read(self) -> None:
        recent, before = self.log.recent, self.log.last
        log = await self.store.read_log(self.session_id, "events", after=before)
        for number, entry in enumerate(log.entries, before + 1):
            # one that was left may have read meanwhile what it had asked for
            if number > recent.last:
                recent.append(_event(entry))
        if await self.store.read_record(self.session_id) is None:
            recent.end()


@attrs.define(eq=False)
class StoredLog:
    """The events of a session: the last ones in memory, all of them in the store.

    Args:
        store: where they are.
        session_id: the session.
        recent: the last ones.
    """

    store: SessionStore
    session_id: str
    recent: EventLog
    _read: tuple[int, tuple[LogEntry, ...]] = (0, ())

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self.recent.last

    def wake(self) -> None:
        """Let readers send a comment, where they wait for an event."""
        self.recent.wake()

    async def read(self, after: int) -> tuple[int, bytes] | None:
        """Wait for events after a number; see `EventLog.read`. None is ever missing."""
        recent = self.recent
        if after >= recent.first - 1:
            await recent.wait(after)
        # more may have come at once than memory has room for
        if after >= recent.first - 1:
            return recent.read_nowait(after)
        pieces, size = list[bytes](), 0
        for number, entry in enumerate(await self._earlier(after), after + 1):
            pieces.append(frame_of(number, _event(entry)))
            size += len(pieces[-1])
            if size >= _MAX_PIECE:
                break
        if not pieces:  # the session was deleted
            return None
        return after + len(pieces), b"".join(pieces)

    async def _earlier(self, after: int) -> Iterable[LogEntry]:
        """Return events after a number; the store is read once for many pieces of them."""
        first, entries = self._read
        if not first <= after < first + len(entries):
            log = await self.store.read_log(self.session_id, "events", after=after)
            first, entries = self._read = after, log.entries[:_MAX_EARLIER]
        return islice(entries, after - first, None)


@attrs.define(eq=False)
class Followers:
    """The sessions that readers of this process follow.

    Args:
        group: where they are followed.
        limits: the server's.
    """

    group: TaskGroup
    limits: ServerLimits
    _followed: dict[tuple[str, str], FollowedSession] = attrs.field(factory=dict)

    async def follow(
        self, tenant: str, store: SessionStore, session_id: str
    ) -> FollowedSession:
        """Return a session that is followed as long as somebody is in its `reader`."""
        key = (tenant, session_id)
        known = self._followed.get(key)
        if known is None or known.is_left:
            count = len((await store.read_log(session_id, "events")).entries)
            # somebody else may have come meanwhile, and who was left have gone
            known = self._followed.get(key)
            if known is None or known.is_left:
                limits = self.limits
                recent = EventLog(limits.max_events, limits.max_event_bytes, last=count)
                log = StoredLog(store, session_id, recent)
                start = partial(self._start, key)
                known = FollowedSession(store, session_id, log, start)
                self._followed[key] = known
                start(known)
        return known

    def _start(self, key: tuple[str, str], followed: FollowedSession) -> None:
        self.group.start_soon(self._run, key, followed)

    async def _run(self, key: tuple[str, str], followed: FollowedSession) -> None:
        try:
            await followed.run()
        finally:
            # one that ended since its session did is of no use to others either
            is_over = followed.is_left or followed.log.recent.is_ended
            if is_over and self._followed.get(key) is followed:
                del self._followed[key]


def _event(entry: LogEntry) -> JSONObject:
    assert isinstance(entry.data, dict)
    return entry.data
