"""What every engine guarantees of runs, steps, events and workers."""

from __future__ import annotations

from typing import Final

import anyio
import attrs

from amplifier.testing.engines.behavior import (
    EngineBehavior,
    EngineSubject,
    same,
    settled,
    working,
)
from amplifier.validation.behaviors import BehaviorFailed
from amplifier_sdk.engines import RunRequest, WorkflowContext
from amplifier_sdk.errors import EngineError, StepFailedError
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["RUNS"]


def _request(run_id: str, argument: JSONValue = None, **more: str) -> RunRequest:
    return RunRequest(
        run_id=run_id,
        workflow="check",
        argument=argument,
        tenant=more.get("tenant", ""),
    )


async def _finishes(subject: EngineSubject) -> None:
    async def workflow(context: WorkflowContext, argument: JSONValue) -> JSONValue:
        return [context.run_id, argument]

    client, worker = await subject.open(), await subject.open()
    argument: JSONValue = {"text": "gr\u00fc\u00df", "numbers": [1, 2.5, None]}
    await client.start(_request("r1", argument))
    await client.start(_request("r1", "the second is the first one"))
    async with working(worker, {"check": workflow}):
        run = await settled(client, "r1")
    same("the run", (run.state, run.result), ("finished", ["r1", argument]))
    same("its request", run.request, _request("r1", argument))
    same("no run", await client.find("r2"), None)
    same("all runs", await client.runs("finished", limit=9), (run,))
    await client.aclose()
    await worker.aclose()


async def _fails(subject: EngineSubject) -> None:
    async def workflow(context: WorkflowContext, _: JSONValue) -> JSONValue:
        async def action() -> JSONValue:
            raise ValueError("spilt")

        try:
            await context.step("one", action)
        except StepFailedError as error:
            raise RuntimeError(f"saw {error}") from error
        return "no error"

    engine = await subject.open()
    await engine.start(_request("r1"))
    async with working(engine, {"check": workflow}):
        run = await settled(engine, "r1")
    same("its state", run.state, "failed")
    same("its problem", run.problem, "RuntimeError: saw ValueError: spilt")
    await engine.aclose()


async def _steps_run_once(subject: EngineSubject) -> None:
    """Kill the worker within the third of five steps: two are finished then, and one is in doubt."""
    ran: list[str] = []
    reached = anyio.Event()

    async def workflow(context: WorkflowContext, is_first: JSONValue) -> JSONValue:
        results: list[JSONValue] = []
        for number in range(5):

            async def action(name: str = f"step {number}") -> JSONValue:
                ran.append(name)
                if len(ran) == 3:
                    reached.set()
                    await anyio.sleep_forever()
                return [name, len(ran)]

            results.append(await context.step(f"{number}", action))
        return results

    first = await subject.open()
    await first.start(_request("r1"))
    async with working(first, {"check": workflow}, drain=0.05) as stop:
        await reached.wait()
        await subject.kill(first)
        stop()
    second = await subject.open()
    await second.take_over()
    async with working(second, {"check": workflow}):
        run = await settled(second, "r1")
    names = [f"step {number}" for number in (0, 1, 2, 2, 3, 4)]
    same("steps that ran", ran, names)
    wanted = [[f"step {n}", count] for n, count in enumerate((1, 2, 4, 5, 6))]
    same("the result", run.result, wanted)
    await first.aclose()
    await second.aclose()


async def _drains(subject: EngineSubject) -> None:
    """Stop a worker while one run ends in time, and another one does not."""
    begun: list[str] = []
    is_first = True
    both, free = anyio.Event(), anyio.Event()

    async def workflow(context: WorkflowContext, waits: JSONValue) -> JSONValue:
        begun.append(context.run_id)
        if len(begun) == 2:
            both.set()
        if is_first and waits:
            await anyio.sleep_forever()
        if is_first:
            await free.wait()
        return len(begun)

    first = await subject.open()
    await first.start(_request("slow", "for ever"))
    await first.start(_request("quick"))
    async with working(first, {"check": workflow}, drain=0.5) as stop:
        await both.wait()
        stop()
        free.set()
    quick, slow = await first.find("quick"), await first.find("slow")
    same("the run that ended in time", quick and quick.state, "finished")
    same("the other one", slow and slow.state, "queued")
    is_first = False
    second = await subject.open()
    async with working(second, {"check": workflow}):
        run = await settled(second, "slow")
    same("its result on another worker", run.result, 3)
    await first.aclose()
    await second.aclose()


async def _waits(subject: EngineSubject) -> None:
    """Suspend a run with a worker, send its event without one, and finish it with another one."""
    ran: list[str] = []

    async def workflow(context: WorkflowContext, _: JSONValue) -> JSONValue:
        async def action() -> JSONValue:
            ran.append("before")
            return "before"

        before = await context.step("before", action)
        answer = await context.wait_for_event("answer")
        return [before, answer]

    first = await subject.open()
    await first.start(_request("r1"))
    async with working(first, {"check": workflow}):
        waiting = await settled(first, "r1", "waiting")
    same("what it waits for", waiting.waits_for, "answer")
    second = await subject.open()
    await second.take_over()
    await second.send("r1", "other", "not this")
    same("without the event", await second.runs("waiting", limit=9), (waiting,))
    await second.send("r1", "answer", "allow")
    await second.send("r1", "answer", "deny")
    async with working(second, {"check": workflow}):
        run = await settled(second, "r1")
    same("the result", run.result, ["before", "allow"])
    same("steps that ran", ran, ["before"])
    await first.aclose()
    await second.aclose()


async def _early_event(subject: EngineSubject) -> None:
    async def workflow(context: WorkflowContext, _: JSONValue) -> JSONValue:
        return await context.wait_for_event("answer")

    engine = await subject.open()
    await engine.start(_request("r1"))
    await engine.send("r1", "answer", {"ok": True})
    async with working(engine, {"check": workflow}):
        run = await settled(engine, "r1")
    same("the result", run.result, {"ok": True})
    try:
        await engine.send("unknown", "answer", None)
    except EngineError:
        await engine.aclose()
        return
    raise BehaviorFailed("an event to a run that there is not was accepted")


async def _times(subject: EngineSubject) -> None:
    async def workflow(context: WorkflowContext, _: JSONValue) -> JSONValue:
        await context.sleep("nap", 0.1)
        return [await context.wait_for_event("answer", timeout=0.1)]

    engine = await subject.open()
    await engine.start(_request("r1"))
    async with working(engine, {"check": workflow}, period=0.3):
        run = await settled(engine, "r1")
    same("the result", run.result, [None])
    await engine.aclose()


async def _cancels(subject: EngineSubject) -> None:
    begun, left = anyio.Event(), anyio.Event()
    ended: list[str] = []

    async def workflow(context: WorkflowContext, waits: JSONValue) -> JSONValue:
        if waits:
            await context.wait_for_event("answer")
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(context.run_id)
            left.set()
        return None

    engine = await subject.open()
    await engine.start(_request("queued"))
    await engine.cancel("queued")
    await engine.start(_request("running"))
    await engine.start(_request("waiting", "for an answer"))
    async with working(engine, {"check": workflow}, period=0.3, drain=0.2):
        await begun.wait()
        await settled(engine, "waiting", "waiting")
        await engine.cancel("waiting")
        await engine.send("waiting", "answer", "too late")
        await engine.cancel("running")
        await left.wait()
    for run_id in ("queued", "running", "waiting"):
        run = await engine.find(run_id)
        same(f"the state of {run_id}", run and run.state, "cancelled")
    same("functions that were left", ended, ["running"])
    await engine.cancel("running")
    await engine.aclose()


async def _by_priority(subject: EngineSubject) -> None:
    """Queue runs of one tenant, the better priority last."""
    order: list[str] = []

    async def workflow(context: WorkflowContext, _: JSONValue) -> JSONValue:
        order.append(context.run_id)
        return None

    engine = await subject.open()
    for run_id, priority in (("low", 20), ("1st", 10), ("2nd", 10), ("high", 0)):
        await engine.start(attrs.evolve(_request(run_id), priority=priority))
    async with working(engine, {"check": workflow}, max_runs=1, max_tenant_runs=1):
        await settled(engine, "low")
    same("the order", order, ["high", "1st", "2nd", "low"])
    await engine.aclose()


async def _takes_turns(subject: EngineSubject) -> None:
    """Let one tenant queue much before another one queues a little."""
    order: list[str] = []

    async def workflow(context: WorkflowContext, _: JSONValue) -> JSONValue:
        order.append(context.run_id)
        return None

    engine = await subject.open()
    for number in range(6):
        await engine.start(_request(f"big {number}", tenant="big"))
    await engine.start(_request("small", tenant="small"))
    async with working(engine, {"check": workflow}, max_runs=2, max_tenant_runs=1):
        for run_id in [f"big {number}" for number in range(6)] + ["small"]:
            await settled(engine, run_id)
    if order.index("small") > 2:
        raise BehaviorFailed(f"a tenant's only run waited for another's six: {order}")
    await engine.aclose()


# A row: what is done; what is true of a good one; what its author does when it is not.
# fmt: off
RUNS: Final = (
    EngineBehavior(id="run.finishes", check=_finishes,
        says="A run is begun once, by whoever starts it, and its result is plain JSON.",
        fix="Compare the run's id in the same step in which it is queued."),
    EngineBehavior(id="run.fails", check=_fails,
        says="An error of a step or of the function is the run's problem, with its type and text.",
        fix="Record what was raised, and raise `StepFailedError` for a step."),
    EngineBehavior(id="step.runs-once", check=_steps_run_once,
        says="After the death of a worker no finished step runs again, and an unfinished one does.",
        fix="Record what a step returned before the next one begins."),
    EngineBehavior(id="worker.drains", check=_drains,
        says="A worker that is stopped ends what it can in time and returns the rest to the queue.",
        fix="Take nothing more, wait for `drain` seconds, cancel, and queue what is left."),
    EngineBehavior(id="event.wakes", check=_waits,
        says="A run that waits outlives its worker, and the first value of its event wakes it, once.",
        fix="Store the event, and queue the run in the same step."),
    EngineBehavior(id="event.comes-early", check=_early_event,
        says="An event that comes before the run waits for it is not lost.",
        fix="Look for the event before the run is suspended, and once more after."),
    EngineBehavior(id="event.times-out", check=_times,
        says="A sleep ends, and an event that does not come in time is `None`, whoever runs it.",
        fix="Store the deadline when it is first asked for, and wake what is due in `take_over`."),
    EngineBehavior(id="run.is-cancelled", check=_cancels,
        says="A cancelled run does not begin, does not wake, and is cancelled where it runs.",
        fix="Compare the state in each step, and cancel the function's scope."),
    EngineBehavior(id="run.by-priority", check=_by_priority,
        says="Of a tenant's runs the one of the lowest priority begins first, then the oldest.",
        fix="Order the queue by when a run was queued, and its priority in minutes after that."),
    EngineBehavior(id="tenant.is-not-starved", check=_takes_turns,
        says="A tenant with one run does not wait for all of another tenant's.",
        fix="Choose the next run by tenant before you choose it by age."),
)
