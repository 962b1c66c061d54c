"""The worker: a thread that ends spans, so that no exporter is waited for in a turn."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from queue import SimpleQueue

import attrs

from amplifier_sdk.threads import run_blocking

__all__ = ["JobWorker"]


@attrs.define(eq=False)
class JobWorker:
    """Runs jobs one after the other, beside the turn.

    The thread begins with the first job and ends with `aclose`, or when the program ends. `dropped` counts the jobs
    that found the queue full, `failed` those that raised; `problem` is what the last of these raised.
    """

    queue_size: int
    timeout: float  # seconds that `flush` and `aclose` wait
    dropped: int = 0
    failed: int = 0
    problem: str | None = None
    _queue: SimpleQueue[Callable[[], None] | None] = attrs.field(factory=SimpleQueue)
    _thread: threading.Thread | None = None
    _is_stuck: bool = False

    def put(self, job: Callable[[], None]) -> None:
        """Hand a job to the thread; never waits."""
        # A collector that hangs must cost spans, not memory without bounds.
        if self._queue.qsize() >= self.queue_size:
            self.dropped += 1
            return
        self._queue.put(job)
        # Lazily: a session that records nothing needs no thread.
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._work, args=(self._queue,), name="telemetry", daemon=True
            )
            self._thread.start()
            atexit.register(self._finish)

    async def flush(self) -> None:
        """Wait until the jobs that were handed over are done, for some seconds at most."""
        if self._thread is not None:
            done = threading.Event()
            self._queue.put(done.set)
            self._is_stuck = not await run_blocking(
                lambda: done.wait(self.timeout), name="flush of the telemetry"
            )

    async def aclose(self) -> None:
        """Do what is left, and end the thread; one that does not come to its end is left behind."""
        if self._thread is not None:
            await run_blocking(self._finish, name="end of the telemetry")

    def _finish(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            # It had its time in `flush` already.
            thread.join(0 if self._is_stuck else self.timeout)
            atexit.unregister(self._finish)
            self._queue = SimpleQueue()  # a thread that hangs keeps its own

    def _work(self, queue: SimpleQueue[Callable[[], None] | None]) -> None:
        while (job := queue.get()) is not None:
            try:
                job()
            except Exception as error:  # foreign code: processors, exporters, redactors
                self.failed += 1
                self.problem = type(error).__name__
