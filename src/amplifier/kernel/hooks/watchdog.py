"""The watchdog: names the handler in which an event has been waiting for long.

Nothing ends an observer, and a blocking one keeps the event loop from noticing anything. So a
thread looks, once for all sessions: an emit writes down which handler it is in, which costs two operations
on a dict, and starts the thread when there is none. The thread ends when it has met nobody in a handler
twice in a row.
"""

from __future__ import annotations

import threading
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Final, TypeAlias

from amplifier.kernel.reports import report

if TYPE_CHECKING:
    from amplifier.kernel.hooks.registrations import Registration

__all__ = ["WAITING", "Wait", "Watchdog", "watchdog"]

Wait: TypeAlias = "tuple[Registration, str, dict[str, object], float]"
"""A handler that runs, its event, the data it was given, and since when (`perf_counter` seconds)."""

WAITING: Final[dict[int, Wait]] = {}
"""The handlers that run now, by the identity of the data that each was given."""

INTERVAL: Final = 1.0
"""Seconds between two looks: each takes the interpreter from the event loop for a moment."""

IDLE_LOOKS: Final = 2
"""After so many idle polls the thread ends."""


class Watchdog:
    """The thread that polls `WAITING`; `is_awake` while it runs."""

    def __init__(self) -> None:
        self.is_awake: bool = False
        self._lock = threading.Lock()

    def wake(self) -> None:
        """Start the thread unless it runs."""
        with self._lock:
            if not self.is_awake:
                self.is_awake = True
                threading.Thread(
                    target=self.watch, name="amplifier-watchdog", daemon=True
                ).start()

    def watch(self) -> None:
        """Look again and again, until nobody was in a handler for a while."""
        idle = 0
        try:
            while idle < IDLE_LOOKS or self._is_needed():
                sleep(INTERVAL)
                if self.look():
                    idle = 0
                else:
                    idle = idle + 1
        finally:
            self.is_awake = False

    def look(self) -> bool:
        """Report every wait that is too long; return whether there was any wait."""
        waits = WAITING.copy().values()
        now = perf_counter()
        for registration, event, data, started in waits:
            waited = now - started
            if waited >= registration.warn_after and event not in registration.warned:
                registration.warned |= {event}
                report(
                    "hook.waiting",
                    handler=registration.name,
                    hook_event=event,
                    seconds=round(waited, 1),
                    session_id=data.get("session_id"),
                )
        return bool(waits)

    def _is_needed(self) -> bool:
        """Announce that the thread ends; it continues when an emit came just before and relies on it."""
        with self._lock:
            self.is_awake = False
            self.is_awake = bool(WAITING)
            return self.is_awake


watchdog: Final = Watchdog()
"""The process's watchdog."""
