"""Those who wait for changes of sessions: one connection and one thread for all of them.

The server announces a change when it is committed. An announcement that is lost with the connection costs time alone:
who waits reads the session's mark again from time to time.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import anyio
import attrs
import psycopg
from anyio import from_thread
from anyio.lowlevel import EventLoopToken, current_token
from psycopg import sql

from amplifier_module_store_postgres._database import Connection, connect
from amplifier_module_store_postgres._rows import CHANNEL
from amplifier_sdk.errors import StoreError

__all__ = ["StoreFollowers"]

_STEP: Final = 0.2
"""Seconds after which the thread notices that it is to end."""

_RETRY: Final = 1.0
"""Seconds after which a lost connection is made anew."""


@attrs.frozen(eq=False)
class _Waiting:
    """Somebody who waits, and the event loop in which they do."""

    event: anyio.Event
    token: EventLoopToken

    def wake(self) -> None:
        # their loop may have ended without them
        with suppress(RuntimeError):
            from_thread.run_sync(self.event.set, token=self.token)


@attrs.define(eq=False)
class StoreFollowers:
    """Those who wait for changes in a store.

    Args:
        url: where the server is.
    """

    url: str
    _waiting: defaultdict[str, list[_Waiting]] = attrs.field(
        factory=lambda: defaultdict(list)
    )
    _lock: threading.Lock = attrs.field(factory=threading.Lock)
    _thread: threading.Thread | None = None
    _listens: threading.Event = attrs.field(factory=threading.Event)
    _ends: threading.Event = attrs.field(factory=threading.Event)

    def start(self) -> None:
        """Begin to listen; it blocks until the server announces what happens from now on, or refuses to.

        Raises:
            StoreError: the server refuses.
        """
        with self._lock:
            if self._thread is None and not self._ends.is_set():
                connection = _listening(self.url)
                self._thread = threading.Thread(
                    target=self._listen,
                    args=(connection,),
                    name="amplifier-store-followers",
                    daemon=True,
                )
                self._thread.start()

    def stop(self) -> None:
        """End the thread; it blocks for a moment."""
        self._ends.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    @contextmanager
    def waiting(self, key: str) -> Iterator[anyio.Event]:
        """Yield an event that is set at the next change of a session."""
        one = _Waiting(anyio.Event(), current_token())
        with self._lock:
            self._waiting[key].append(one)
        try:
            yield one.event
        finally:
            with self._lock:
                left = [each for each in self._waiting[key] if each is not one]
                if left:
                    self._waiting[key] = left
                else:
                    del self._waiting[key]

    def _listen(self, connection: Connection | None) -> None:
        while not self._ends.is_set():
            try:
                if connection is None:
                    connection = _listening(self.url)
                for notify in connection.notifies(timeout=_STEP):
                    self._wake(notify.payload)
            except (psycopg.Error, StoreError):
                if connection is not None:
                    connection.close()
                connection = None
                self._ends.wait(_RETRY)
        if connection is not None:
            connection.close()

    def _wake(self, key: str) -> None:
        with self._lock:
            woken = list(self._waiting.get(key, ()))
        for one in woken:
            one.wake()


def _listening(url: str) -> Connection:
    connection = connect(url)
    # no limit of time counts while it waits for announcements: no statement runs
    connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(CHANNEL)))
    return connection
