"""The engine in memory passes the suite of engines, and the suite finds what is wrong with one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import anyio
import attrs
import pytest

from amplifier.testing.engines import (
    ENGINE_BEHAVIORS,
    EngineSubject,
    ExecutionEngineTests,
    InMemoryEngine,
    SharedRuns,
)
from amplifier.testing.engines.behavior import settled, working
from amplifier.validation.behaviors import BehaviorFailed
from amplifier_sdk.engines import (
    ExecutionEngine,
    Run,
    RunRequest,
    WorkerOptions,
    Workflow,
    WorkflowContext,
)
from amplifier_sdk.errors import EngineError, RunLostError
from amplifier_sdk.jsontypes import JSONValue


@attrs.frozen
class _InMemory:
    kind: type[InMemoryEngine] = InMemoryEngine
    shared: SharedRuns = attrs.field(factory=SharedRuns)

    async def open(self) -> ExecutionEngine:
        return self.kind(self.shared)

    async def kill(self, engine: ExecutionEngine) -> None:
        assert isinstance(engine, InMemoryEngine)
        self.shared.alive["dead"] = float("-inf")
        for entry in self.shared.entries.values():
            entry.worker = "dead"


class TestInMemoryEngine(ExecutionEngineTests):
    @pytest.fixture
    def subject(self) -> EngineSubject:
        return _InMemory()


class _Repeating(InMemoryEngine):
    """Records no step."""

    async def take_over(self) -> tuple[str, ...]:
        for entry in self.shared.entries.values():
            entry.steps.clear()
        return await super().take_over()


class _Forgetful(InMemoryEngine):
    """Loses an event that comes before somebody waits for it."""

    async def send(self, run_id: str, event: str, value: JSONValue) -> None:
        run = await self.find(run_id)
        if run is None or run.waits_for == event:
            await super().send(run_id, event, value)


class _Last(InMemoryEngine):
    """Takes the last value of an event."""

    async def send(self, run_id: str, event: str, value: JSONValue) -> None:
        await super().send(run_id, event, value)
        self.shared.entries[run_id].events[event] = value


class _Deaf(InMemoryEngine):
    """Wakes nothing at its time."""

    async def take_over(self) -> tuple[str, ...]:
        return ()


class _Uncancelled(InMemoryEngine):
    """Cancels what waits in the queue alone."""

    async def cancel(self, run_id: str) -> None:
        run = await self.find(run_id)
        if run is not None and run.state == "queued":
            await super().cancel(run_id)


class _Keeping(InMemoryEngine):
    """Returns nothing to the queue."""

    async def work(
        self, workflows: Mapping[str, Workflow], options: WorkerOptions
    ) -> None:
        try:
            await super().work(workflows, options)
        finally:
            for entry in self.shared.entries.values():
                if entry.run.state == "queued":
                    entry.change("running")


class _Unfair(InMemoryEngine):
    """Knows no tenants."""

    async def start(self, request: RunRequest) -> None:
        await super().start(attrs.evolve(request, tenant=""))


class _Equal(InMemoryEngine):
    """Knows no priorities."""

    async def start(self, request: RunRequest) -> None:
        await super().start(attrs.evolve(request, priority=0))


class _Twice(InMemoryEngine):
    """Takes the second request of an id for another run."""

    async def start(self, request: RunRequest) -> None:
        self.shared.entries.pop(request.run_id, None)
        await super().start(request)


class _Silent(InMemoryEngine):
    """Loses why a run failed."""

    async def find(self, run_id: str) -> Run | None:
        run = await super().find(run_id)
        if run is None:
            return None
        return attrs.evolve(run, problem=None)


@pytest.mark.parametrize(
    ("kind", "behavior"),
    [
        (_Twice, "run.finishes"),
        (_Silent, "run.fails"),
        (_Repeating, "step.runs-once"),
        (_Keeping, "worker.drains"),
        (_Last, "event.wakes"),
        (_Forgetful, "event.comes-early"),
        (_Deaf, "event.times-out"),
        (_Uncancelled, "run.is-cancelled"),
        (_Equal, "run.by-priority"),
        (_Unfair, "tenant.is-not-starved"),
    ],
)
async def test_a_fault_breaks_a_behaviour(
    kind: type[InMemoryEngine], behavior: str
) -> None:
    (found,) = (each for each in ENGINE_BEHAVIORS if each.id == behavior)

    with pytest.raises((BehaviorFailed, TimeoutError, ExceptionGroup)):
        with anyio.fail_after(1):
            await found.check(_InMemory(kind))


def test_each_behaviour_says_what_is_true_and_what_to_do() -> None:
    ids = [each.id for each in ENGINE_BEHAVIORS]

    assert len(set(ids)) == len(ids)
    assert all(each.says.endswith(".") for each in ENGINE_BEHAVIORS)
    assert all(each.fix.endswith(".") for each in ENGINE_BEHAVIORS)


async def test_old_run_of_low_priority_goes_before_a_new_one_of_a_high_one() -> None:
    order: list[str] = []

    async def workflow(context: WorkflowContext, _: JSONValue) -> JSONValue:
        order.append(context.run_id)
        return None

    engine = InMemoryEngine()
    for run_id, priority in (("old", 20), ("low", 20), ("high", 0)):
        request = RunRequest(run_id=run_id, workflow="w", priority=priority)
        await engine.start(request)
    engine.shared.entries["old"].queued_at -= 20 * 60 + 1
    async with working(engine, {"w": workflow}, max_runs=1):
        await settled(engine, "low")

    assert order == ["old", "high", "low"]


async def test_a_paused_worker_records_nothing() -> None:
    """The step of a worker that was taken over ends after the other worker's."""
    shared, ran = SharedRuns(), list[str]()
    begun, resumed = anyio.Event(), anyio.Event()
    lost = anyio.Event()

    def worker(
        name: str,
    ) -> Callable[[WorkflowContext, JSONValue], Awaitable[JSONValue]]:
        async def workflow(context: WorkflowContext, _: JSONValue) -> JSONValue:
            async def action() -> JSONValue:
                ran.append(name)
                if name == "paused":
                    begun.set()
                    await resumed.wait()
                return name

            try:
                return await context.step("one", action)
            except RunLostError:
                lost.set()
                raise

        return workflow

    engine = InMemoryEngine(shared)
    await engine.start(RunRequest(run_id="r1", workflow="w"))
    async with anyio.create_task_group() as tasks:
        paused = WorkerOptions(name="paused", max_runs=1, period=9)
        tasks.start_soon(engine.work, {"w": worker("paused")}, paused)
        await begun.wait()
        shared.alive["paused"] = float("-inf")
        assert await engine.take_over() == ("r1",)
        other = InMemoryEngine(shared)
        options = WorkerOptions(name="other", max_runs=1)
        tasks.start_soon(other.work, {"w": worker("other")}, options)
        run = await settled(engine, "r1")
        resumed.set()
        await lost.wait()
        tasks.cancel_scope.cancel()

    assert (run.result, ran) == ("other", ["paused", "other"])
    with pytest.raises(EngineError, match="no run 'r2'"):
        await engine.cancel("r2")
