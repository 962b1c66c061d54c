"""A worker: threads of DBOS take segments from the queue, and each runs its function in the worker's event loop."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock
from typing import Final, ParamSpec, TypeVar

import anyio
import attrs
from anyio import from_thread, lowlevel, to_thread
from dbos import DBOS, DBOSConfig

from amplifier_module_engine_dbos._json import JSONSerializer, pickles_refused
from amplifier_module_engine_dbos._runs import APPLICATION, SEGMENT, VERSION, Held, Runs
from amplifier_module_engine_dbos._tables import UnreachableError
from amplifier_sdk.engines import WorkerOptions, Workflow, WorkflowContext
from amplifier_sdk.errors import (
    EngineError,
    RunLostError,
    RunSuspendedError,
    StepFailedError,
)
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["EngineWorker"]

P = ParamSpec("P")
T = TypeVar("T")

_RETRY: Final = 0.5
"""Seconds before a database that did not answer is retried."""

_LOGGER: Final = logging.getLogger("dbos")

_POLLING: Final = 0.1
"""Seconds between two queries of the queue, and of what was cancelled."""

_PROCESS: Final = Lock()
"""Held while DBOS is launched, which is one to a process."""


async def _persist(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call what uses the database, again until that answers: a worker must not lose what a step returned.

    Whoever took the run over meanwhile is found out then, by `RunLostError`. Calls change nothing the second time.
    """
    call = partial(function, *args, **kwargs)
    while True:
        try:
            return await to_thread.run_sync(call)
        except UnreachableError:
            await anyio.sleep(_RETRY)


@contextmanager
def _alone() -> Iterator[None]:
    """Let no other worker of this process work in a block.

    Raises:
        EngineError: one does.
    """
    if not _PROCESS.acquire(blocking=False):
        raise EngineError(
            "A worker works in this process already; DBOS is one to a process"
        )
    try:
        yield
    finally:
        _PROCESS.release()


@attrs.frozen(eq=False)
class _Context:
    """What a function has of its run."""

    runs: Runs
    held: Held

    @property
    def run_id(self) -> str:
        return self.held.request.run_id

    async def step(
        self, name: str, action: Callable[[], Awaitable[JSONValue]]
    ) -> JSONValue:
        outcome = await _persist(self.runs.step, self.held, name)
        if outcome is None:
            try:
                outcome = await action(), None
            except Exception as error:  # foreign code
                outcome = None, f"{type(error).__name__}: {error}"
            await _persist(self.runs.record, self.held, name, outcome)
        value, problem = outcome
        if problem is not None:
            raise StepFailedError(problem)
        return value

    async def wait_for_event(
        self, name: str, *, timeout: float | None = None
    ) -> JSONValue:
        found = await _persist(self.runs.event, self.held, name, timeout)
        if found is None:
            raise RunSuspendedError(f"Run {self.run_id!r} waits for {name!r}")
        return found[0]

    async def sleep(self, name: str, seconds: float) -> None:
        await self.wait_for_event(name, timeout=seconds)


@attrs.define(eq=False)
class EngineWorker:
    """A worker of this process.

    Args:
        runs: the runs it takes.
        workflows: the functions by name.
        options: how it works.
    """

    runs: Runs
    workflows: Mapping[str, Workflow]
    options: WorkerOptions
    _running: dict[int, tuple[Held, anyio.CancelScope]] = attrs.field(factory=dict)
    _is_stopping: bool = False
    _ended: anyio.Event = attrs.field(factory=anyio.Event)

    async def work(self) -> None:
        """Work until the caller cancels this."""
        token = lowlevel.current_token()

        def segment(namespace: str, run_id: str, number: int) -> None:
            assert namespace == self.runs.namespace  # it has a queue of its own
            from_thread.run(self._run, run_id, number, token=token)

        # one for its heartbeat alone, which must not wait for a thread behind the runs
        own_thread = anyio.CapacityLimiter(1)
        call = partial(to_thread.run_sync, limiter=own_thread)
        with _alone(), pickles_refused():
            await call(self._launch, segment)
            try:
                while True:
                    with suppress(UnreachableError):
                        for held in await call(self._maintain):
                            self._cancel(held)
                    await anyio.sleep(_POLLING)
            finally:
                self._is_stopping = True
                with anyio.CancelScope(shield=True):
                    await self._drain()
                    await call(DBOS.destroy)
                    # without the database others take its runs when its period is over
                    with suppress(UnreachableError):
                        await call(self.runs.leave, self.options.name)

    def _launch(self, segment: Callable[[str, str, int], None]) -> None:
        self.runs.beat(self.options.name, self.options.period)
        config: DBOSConfig = {
            "name": APPLICATION,
            "system_database_engine": self.runs.database.engine,
            "executor_id": self.options.name,
            "application_version": VERSION,
            "serializer": JSONSerializer(),
            "log_level": "CRITICAL",
            "use_listen_notify": False,
            "notification_listener_polling_interval_sec": _POLLING,
        }
        # An earlier worker's handlers write to a stream that may be closed by now, and
        # DBOS flushes them.
        for handler in [*_LOGGER.handlers]:
            _LOGGER.removeHandler(handler)
        DBOS.destroy(destroy_registry=True)
        DBOS(config=config)
        DBOS.workflow(name=SEGMENT, max_recovery_attempts=None)(segment)
        DBOS.listen_queues([self.runs.queue])
        DBOS.launch()
        DBOS.register_queue(
            self.runs.queue,
            worker_concurrency=self.options.max_runs,
            partition_concurrency=self.options.max_tenant_runs,
            polling_interval_sec=_POLLING,
            on_conflict="always_update",
        )

    def _maintain(self) -> list[Held]:
        """Say that this worker lives, do what the elected one does, and return the runs that it has no more."""
        if self.runs.beat(self.options.name, self.options.period):
            self.runs.take_over()
        held = [held for held, _ in [*self._running.values()]]
        return [each for each in held if not self.runs.is_held(each)]

    def _cancel(self, held: Held) -> None:
        found = self._running.get(held.number)
        if found is not None and found[0] is held:
            found[1].cancel()

    async def _run(self, run_id: str, number: int) -> None:
        """Run a segment, in a task of this worker's loop and a thread of DBOS."""
        if self._is_stopping:
            return
        name = self.options.name
        held = await _persist(self.runs.take, run_id, number, name)
        if held is None:
            return
        # shielded: a run has time to end when its worker is cancelled
        scope = anyio.CancelScope(shield=True)
        self._running[held.number] = held, scope
        try:
            with scope:
                await self._call(held)
        finally:
            del self._running[held.number]
            self._ended.set()
            self._ended = anyio.Event()

    async def _call(self, held: Held) -> None:
        request = held.request
        context: WorkflowContext = _Context(self.runs, held)
        result, problem = None, None
        try:
            workflow = self.workflows.get(request.workflow)
            if workflow is None:
                raise EngineError(f"No workflow {request.workflow!r} on this worker")
            result = await workflow(context, request.argument)
        except (RunSuspendedError, RunLostError):
            return
        except Exception as error:  # foreign code
            problem = f"{type(error).__name__}: {error}"
        await _persist(self.runs.end, held, result=result, problem=problem)

    async def _drain(self) -> None:
        with anyio.move_on_after(self.options.drain):
            while self._running:
                await self._ended.wait()
        for _, scope in self._running.values():
            scope.cancel()
        while self._running:
            await self._ended.wait()
