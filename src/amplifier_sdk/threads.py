"""Blocking functions in worker threads, and an account of the threads that outlive their cancellation.

A thread cannot be killed. When a call is cancelled or passes its deadline, its thread is left behind and
runs on; `abandoned` names every one that still does, so that nobody waits for it unknowingly.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Final, Generic, TypeVar, cast

import attrs
from anyio import Event, RunFinishedError, current_time, from_thread, to_thread
from anyio.lowlevel import current_token

__all__ = ["AbandonedThread", "SharedCall", "abandoned", "run_blocking"]

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


class SharedCall(Generic[T]):
    """A blocking function in a thread of its own, for any number of tasks.

    It runs from here on, whether or not other threads are free. All who wait are tasks
    of this event loop. When none does any more, the thread is listed in `abandoned`
    until its function returns. Context variables are those of whoever makes it.

    Args:
        function: takes no arguments; bind them with `functools.partial`.
        name: how the thread is named in reports.
    """

    __slots__ = (
        "_context",
        "_ended",
        "_entry",
        "_error",
        "_function",
        "_result",
        "_token",
        "_waiting",
        "begun_at",
        "is_over",
        "name",
    )

    def __init__(self, function: Callable[[], T], *, name: str) -> None:
        self.name: str = name
        self.is_over: bool = False
        self.begun_at: float = current_time()
        self._function = function
        # a thread of its own starts without the caller's context variables
        self._context = copy_context()
        self._ended = Event()
        self._entry: AbandonedThread | None = None
        self._error: BaseException | None = None
        self._result: T | None = None
        self._token = current_token()
        self._waiting = 0
        # a daemon, since a function that hangs must not keep the process from ending
        threading.Thread(target=self._run, name=name, daemon=True).start()

    async def wait(self) -> T:
        """Wait for the function, and return or raise what it did."""
        self._waiting += 1
        try:
            await self._ended.wait()
        finally:
            self._waiting -= 1
            # after the last one nobody learns what becomes of the thread
            if not self._waiting:
                self._leave()
        return self.result

    @property
    def result(self) -> T:
        """What the function returned or raised, once it `is_over`."""
        if self._error is not None:
            raise self._error
        return cast("T", self._result)

    def _run(self) -> None:
        try:
            self._result = self._context.run(self._function)
        except BaseException as error:  # it is raised where the function is waited for
            self._error = error
        with _LOCK:
            self.is_over = True
            if self._entry is not None:
                _ABANDONED.discard(self._entry)
        # the event loop has ended, and with it all who waited
        with suppress(RunFinishedError):
            from_thread.run_sync(self._ended.set, token=self._token)

    def _leave(self) -> None:
        """List the thread if it still runs."""
        # whoever leaves at this moment must not list a thread that has just ended
        with _LOCK:
            if not self.is_over and self._entry is None:
                self._entry = AbandonedThread(self.name, time.monotonic())
                _ABANDONED.add(self._entry)


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
            # It waited for a free thread while its caller was cancelled: what nobody
            # wants any more must not happen.
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
