"""A virtual clock: sleeps and deadlines pass at once, in their order, on asyncio and on trio.

Time stands still while a task has something to do. When every task waits, the clock jumps to the next
deadline; so a test of an hour's time-out takes as long as what happens in that hour, and its outcome does not
depend on the machine. While a function runs in a worker thread, whose end is no matter of the clock, time
passes as it does outside.

This is the one file of the runtime that imports asyncio and trio: anyio has no clock of its own.
"""

from __future__ import annotations

import asyncio  # noqa: TID251  # its event loop is the clock
import selectors
import time
from collections.abc import Awaitable, Callable
from contextvars import Context
from math import inf
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple, Unpack

import anyio
from anyio import to_thread

if TYPE_CHECKING:
    from trio.lowlevel import Task  # noqa: TID251  # for types
    from trio.testing import MockClock  # noqa: TID251  # for types

__all__ = ["VirtualClock"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class VirtualClock:
    """Makes event loops whose time jumps; `anyio.current_time()` starts at 0 in each.

    ```python
    VirtualClock().run(main, backend="trio")
    ```

    A test asks for the fixture `virtual_clock`.

    Args:
        threshold: real seconds for which every task must have waited before time jumps. With 0 it jumps at
            once: right unless the code under test waits for something real, such as a process or a socket.
    """

    def __init__(self, *, threshold: float = 0.0) -> None:
        self.threshold: float = threshold

    def run(
        self,
        function: Callable[[Unpack[Ts]], Awaitable[T]],
        *args: *Ts,
        backend: str = "asyncio",
    ) -> T:
        """Run an async function in an event loop with virtual time, and return what it returns."""
        name, options = self.backend(backend)
        return anyio.run(function, *args, backend=name, backend_options=options)

    def backend(self, name: str = "asyncio") -> tuple[str, dict[str, object]]:
        """Return a backend with virtual time, for one run.

        The pair is what `anyio.run` takes as `backend` and `backend_options`, and what a fixture `anyio_backend`
        may return.

        Raises:
            ValueError: there is no such backend.
        """
        if name == "asyncio":
            return name, {"loop_factory": self._loop}
        if name == "trio":
            from trio.testing import MockClock  # noqa: TID251  # trio need not be installed

            clock = MockClock(autojump_threshold=self.threshold)
            return name, {
                "clock": clock,
                "instruments": [_ThreadWatch(clock, self.threshold)],
            }
        raise ValueError(
            f"No virtual clock for the backend {name!r}; there is one for 'asyncio' and 'trio'"
        )

    @staticmethod
    def is_running() -> bool:
        """Whether the event loop that runs the caller has virtual time."""
        try:
            return isinstance(asyncio.get_running_loop(), _JumpingLoop)
        except RuntimeError:  # then the caller runs on trio, or nowhere
            from trio.lowlevel import current_clock  # noqa: TID251  # trio need not be installed
            from trio.testing import MockClock  # noqa: TID251  # likewise

            return isinstance(current_clock(), MockClock)

    def _loop(self) -> asyncio.AbstractEventLoop:
        return _JumpingLoop(self.threshold)


class _JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is that of its selector."""

    def __init__(self, threshold: float) -> None:
        self._time = _JumpingSelector(threshold)
        super().__init__(self._time)

    def time(self) -> float:
        return self._time.now

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        # asyncio would wake up for it once a day, and days are short here
        if when == inf:
            return asyncio.TimerHandle(when, callback, args, self, context)
        return super().call_at(when, callback, *args, context=context)


class _JumpingSelector(selectors.DefaultSelector):
    """A selector that, instead of waiting for a timer, says that its time has come."""

    def __init__(self, threshold: float) -> None:
        super().__init__()
        self.now: float = 0.0
        self._threshold = threshold

    def select(  # type: ignore[explicit-any]  # a selector key holds whatever was registered
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        # nothing to jump to, or a task is ready: time stands still
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        # A thread takes real time. To jump now would let a deadline pass that it keeps.
        if to_thread.current_default_thread_limiter().borrowed_tokens:
            started = time.monotonic()
            events = super().select(timeout)
            self.now += time.monotonic() - started
            return events
        # what is real, such as a socket, has this long to report before time jumps
        events = super().select(min(self._threshold, timeout))
        if not events:
            self.now += timeout
        return events


class _ThreadWatch:
    """An instrument of trio that lets time pass as it does outside while a worker thread runs."""

    def __init__(self, clock: MockClock, threshold: float) -> None:
        self._clock = clock
        self._threshold = threshold
        self._is_busy = False

    def after_task_step(self, _: Task) -> None:
        from trio.to_thread import current_default_thread_limiter  # noqa: TID251  # trio runs already

        is_busy = current_default_thread_limiter().borrowed_tokens > 0
        # only at a change: to set the rate has the clock count from here
        if is_busy is not self._is_busy:
            self._is_busy = is_busy
            if is_busy:
                self._clock.rate = 1.0
            else:
                self._clock.rate = 0.0
            if is_busy:
                self._clock.autojump_threshold = inf
            else:
                self._clock.autojump_threshold = self._threshold
