"""Blocking functions in worker threads, and an account of the threads that outlive their cancellation.

A thread cannot be killed. When a call is cancelled or passes its deadline, its thread is left behind and
runs on; `abandoned` names every one that still does, so that nobody waits for it unknowingly.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import attrs
from anyio import to_thread

__all__ = ["AbandonedThread", "abandoned", "run_blocking"]

T = TypeVar("T")


@attrs.frozen(eq=False)
class AbandonedThread:
    """A thread whose caller is gone: what it runs and since when (`time.monotonic` seconds)."""

    name: str
    since: float


_ABANDONED: Final[set[AbandonedThread]] = set()
_LOCK: Final = threading.Lock()


def abandoned() -> tuple[AbandonedThread, ...]:
    """Return the abandoned threads that still run, the oldest first."""
    with _LOCK:
        return tuple(sorted(_ABANDONED, key=lambda entry: entry.since))


async def run_blocking(function: Callable[[], T], *, name: str) -> T:
    """Run a blocking function in a worker thread.

    When the caller is cancelled this ends at once and the thread is listed in `abandoned` until its
    function returns. Context variables are those of the caller.

    Args:
        function: takes no arguments; bind them with `functools.partial`.
        name: how the thread is named in reports.
    """
    call = _Call(function)
    try:
        return await to_thread.run_sync(call.run, abandon_on_cancel=True)
    finally:
        call.leave(name)


@attrs.define(eq=False, repr=False)
class _Call(Generic[T]):
    """One function on its way through a thread."""

    function: Callable[[], T]
    started: bool = False
    ended: bool = False
    left: bool = False
    entry: AbandonedThread | None = None

    def run(self) -> T:
        with _LOCK:
            if self.left:
                raise RuntimeError(
                    "The caller left before the thread began, so the function is not run"
                )
            self.started = True
        try:
            return self.function()
        finally:
            with _LOCK:
                self.ended = True
                if self.entry is not None:
                    _ABANDONED.discard(self.entry)

    def leave(self, name: str) -> None:
        """List the thread if it still runs; called by the task that waited for it."""
        with _LOCK:
            self.left = True
            if self.started and not self.ended:
                self.entry = AbandonedThread(name, time.monotonic())
                _ABANDONED.add(self.entry)
