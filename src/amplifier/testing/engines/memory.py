"""An engine in memory: the runs of a test, which end with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from math import inf
from typing import Final

import anyio
import attrs
from anyio.abc import TaskGroup

from amplifier_sdk.engines import (
    Run,
    RunRequest,
    RunState,
    WorkerOptions,
    Workflow,
    WorkflowContext,
)
from amplifier_sdk.errors import (
    EngineError,
    RunLostError,
    RunSuspendedError,
    StepFailedError,
)
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["InMemoryEngine", "SharedRuns"]

_MINUTE: Final = 60.0


@attrs.define(eq=False)
class _Entry:
    """A run and what is recorded of it; `turn` counts who had it, so that an earlier worker's writes are refused."""

    run: Run
    number: int
    queued_at: float = attrs.field(factory=anyio.current_time)
    turn: int = 0
    worker: str | None = None
    wakes: float | None = None
    woke: float = -inf
    steps: dict[str, tuple[JSONValue, str | None]] = attrs.field(factory=dict)
    events: dict[str, JSONValue] = attrs.field(factory=dict)
    deadlines: dict[str, float] = attrs.field(factory=dict)
    scope: anyio.CancelScope | None = None

    def change(
        self,
        state: RunState,
        *,
        result: JSONValue = None,
        problem: str | None = None,
        waits_for: str | None = None,
    ) -> None:
        self.run = Run(
            request=self.run.request,
            state=state,
            result=result,
            problem=problem,
            waits_for=waits_for,
        )


@attrs.define(eq=False)
class SharedRuns:
    """What the workers of an engine in memory share."""

    entries: dict[str, _Entry] = attrs.field(factory=dict)
    alive: dict[str, float] = attrs.field(factory=dict)
    changed: anyio.Event = attrs.field(factory=anyio.Event)

    def notify(self) -> None:
        """Wake everybody who waits for a change."""
        self.changed.set()
        self.changed = anyio.Event()


@attrs.frozen(eq=False)
class _Context:
    """What a function has of its run in memory."""

    shared: SharedRuns
    entry: _Entry
    turn: int

    @property
    def run_id(self) -> str:
        return self.entry.run.request.run_id

    async def step(
        self, name: str, action: Callable[[], Awaitable[JSONValue]]
    ) -> JSONValue:
        self._require_held()
        recorded = self.entry.steps.get(name)
        if recorded is None:
            try:
                recorded = await action(), None
            except Exception as error:  # foreign code
                recorded = None, f"{type(error).__name__}: {error}"
            self._require_held()
            self.entry.steps[name] = recorded
        value, problem = recorded
        if problem is not None:
            raise StepFailedError(problem)
        return value

    async def wait_for_event(
        self, name: str, *, timeout: float | None = None
    ) -> JSONValue:
        self._require_held()
        if name in self.entry.events:
            return self.entry.events[name]
        deadline = None
        if timeout is not None:
            now = anyio.current_time()
            deadline = self.entry.deadlines.setdefault(name, now + timeout)
            if deadline <= now:
                # recorded, so that an event that comes too late changes nothing
                return self.entry.events.setdefault(name, None)
        self.entry.wakes = deadline
        self.entry.change("waiting", waits_for=name)
        raise RunSuspendedError(f"Run {self.run_id!r} waits for {name!r}")

    async def sleep(self, name: str, seconds: float) -> None:
        await self.wait_for_event(name, timeout=seconds)

    def _require_held(self) -> None:
        if self.entry.turn != self.turn or self.entry.run.is_over:
            raise RunLostError(f"Run {self.run_id!r} is another worker's, or over")


@attrs.frozen(eq=False)
class InMemoryEngine:
    """An engine whose runs are in memory; engines with the same `shared` are workers of one."""

    shared: SharedRuns = attrs.field(factory=SharedRuns)

    async def start(self, request: RunRequest) -> None:
        """See `ExecutionEngine.start`."""
        entries = self.shared.entries
        if request.run_id not in entries:
            run = Run(request=request, state="queued")
            entries[request.run_id] = _Entry(run, len(entries))
            self.shared.notify()

    async def send(self, run_id: str, event: str, value: JSONValue) -> None:
        """See `ExecutionEngine.send`."""
        entry = self._entry(run_id)
        entry.events.setdefault(event, value)
        if entry.run.state == "waiting" and entry.run.waits_for == event:
            entry.change("queued")
        self.shared.notify()

    async def cancel(self, run_id: str) -> None:
        """See `ExecutionEngine.cancel`."""
        entry = self._entry(run_id)
        if not entry.run.is_over:
            entry.change("cancelled")
            if entry.scope is not None:
                entry.scope.cancel()
        self.shared.notify()

    async def find(self, run_id: str) -> Run | None:
        """See `ExecutionEngine.find`."""
        entry = self.shared.entries.get(run_id)
        return None if entry is None else entry.run

    async def runs(self, state: RunState, *, limit: int) -> tuple[Run, ...]:
        """See `ExecutionEngine.runs`."""
        runs = [each.run for each in self.shared.entries.values()]
        return tuple(run for run in runs if run.state == state)[:limit]

    async def work(
        self, workflows: Mapping[str, Workflow], options: WorkerOptions
    ) -> None:
        """See `ExecutionEngine.work`."""
        shared, mine = self.shared, dict[str, anyio.CancelScope]()
        try:
            async with anyio.create_task_group() as tasks:
                try:
                    await self._take_runs(tasks, workflows, options, mine)
                finally:
                    with anyio.CancelScope(shield=True):
                        await self._drain(options, mine)
        finally:
            shared.alive.pop(options.name, None)
            for entry in shared.entries.values():
                if entry.worker == options.name and entry.run.state == "running":
                    entry.change("queued")
            shared.notify()

    async def take_over(self) -> tuple[str, ...]:
        """See `ExecutionEngine.take_over`."""
        now, woken = anyio.current_time(), list[str]()
        for run_id, entry in self.shared.entries.items():
            is_due = entry.run.state == "waiting" and (
                entry.wakes is not None and entry.wakes <= now
            )
            is_orphan = entry.run.state == "running" and (
                self.shared.alive.get(entry.worker or "", now) <= now
            )
            if is_due or is_orphan:
                entry.change("queued")
                entry.turn += 1
                entry.woke = now if is_due else -inf
                woken.append(run_id)
        if woken:
            self.shared.notify()
        return tuple(woken)

    async def aclose(self) -> None:
        """See `ExecutionEngine.aclose`."""

    def _entry(self, run_id: str) -> _Entry:
        entry = self.shared.entries.get(run_id)
        if entry is None:
            raise EngineError(f"There is no run {run_id!r}")
        return entry

    async def _take_runs(
        self,
        tasks: TaskGroup,
        workflows: Mapping[str, Workflow],
        options: WorkerOptions,
        mine: dict[str, anyio.CancelScope],
    ) -> None:
        while True:
            now = anyio.current_time()
            self.shared.alive[options.name] = now + options.period
            changed = self.shared.changed
            await self.take_over()
            entry = None
            if len(mine) < options.max_runs:
                entry = self._next(workflows, options)
            if entry is None:
                with anyio.move_on_after(options.period / 3):
                    await changed.wait()
                continue
            entry.change("running")
            entry.worker = options.name
            entry.turn += 1
            # shielded: a run has time to end when its worker is cancelled
            entry.scope = anyio.CancelScope(shield=True)
            mine[entry.run.request.run_id] = entry.scope
            tasks.start_soon(self._run, entry, entry.scope, workflows, mine)

    def _next(
        self, workflows: Mapping[str, Workflow], options: WorkerOptions
    ) -> _Entry | None:
        """Choose what runs next: of the tenant with the fewest runs, by age, from which its priority is taken."""
        busy, waiting = Counter[str](), list[_Entry]()
        for entry in self.shared.entries.values():
            request = entry.run.request
            if entry.run.state == "running":
                busy[request.tenant] += 1
            if entry.run.state == "queued" and request.workflow in workflows:
                waiting.append(entry)
        ready = [
            entry
            for entry in waiting
            if busy[entry.run.request.tenant] < options.max_tenant_runs
            and not self._is_for_others(entry, options)
        ]

        def order(entry: _Entry) -> tuple[int, float, int]:
            request = entry.run.request
            counts_from = entry.queued_at + _MINUTE * request.priority
            return busy[request.tenant], counts_from, entry.number

        return min(ready, key=order, default=None)

    def _is_for_others(self, entry: _Entry, options: WorkerOptions) -> bool:
        """Whether a run that slept is left to other workers for now: they all look at the same moments."""
        now = anyio.current_time()
        is_own = entry.worker == options.name and now - entry.woke < options.period / 3
        return is_own and any(
            name != options.name and expires > now
            for name, expires in self.shared.alive.items()
        )

    async def _run(
        self,
        entry: _Entry,
        scope: anyio.CancelScope,
        workflows: Mapping[str, Workflow],
        mine: dict[str, anyio.CancelScope],
    ) -> None:
        request, turn = entry.run.request, entry.turn
        context: WorkflowContext = _Context(self.shared, entry, turn)
        try:
            with scope:
                result = await workflows[request.workflow](context, request.argument)
                if entry.turn == turn and entry.run.state == "running":
                    entry.change("finished", result=result)
        except (RunSuspendedError, RunLostError):
            pass
        except Exception as error:  # foreign code
            if entry.turn == turn and not entry.run.is_over:
                problem = f"{type(error).__name__}: {error}"
                entry.change("failed", problem=problem)
        finally:
            del mine[request.run_id]
            self.shared.notify()

    async def _drain(
        self, options: WorkerOptions, mine: Mapping[str, anyio.CancelScope]
    ) -> None:
        with anyio.move_on_after(options.drain):
            while mine:
                await self.shared.changed.wait()
        for scope in mine.values():
            scope.cancel()
