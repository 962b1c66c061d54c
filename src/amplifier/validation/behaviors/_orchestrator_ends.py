"""A loop stops when it is told to, and works afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import attrs

from amplifier.validation.behaviors._cancelling import ends_in_time
from amplifier.validation.behaviors._orchestrator_steps import require_closed
from amplifier.validation.behaviors._parts import Worker
from amplifier.validation.behaviors._stage import Setting, Stage, open_stage
from amplifier.validation.behaviors.behavior import BehaviorFailed, Suite, require
from amplifier.validation.behaviors.subject import Subject
from amplifier_kit.scripted import Step, answer, call
from amplifier_sdk.errors import TurnCancelled

ORCHESTRATOR: Final = Suite("orchestrator")


@attrs.define(eq=False)
class _Gate:
    """What a tool waits at: says when somebody is there, and how they left."""

    reached: anyio.Event = attrs.field(factory=anyio.Event)
    opened: anyio.Event = attrs.field(factory=anyio.Event)
    passed: bool = False

    async def work(self, text: str) -> str:
        self.reached.set()
        await self.opened.wait()
        self.passed = True
        return text


async def _cancel(stage: Stage, when: Callable[[], Awaitable[object]], then: Callable[[], Awaitable[object]]) -> None:
    """Run a turn, wait for a moment, cancel it, and wait until it has said so."""

    async def run() -> None:
        try:
            text = await stage.turn()
        except TurnCancelled:
            return
        raise BehaviorFailed(f"The cancelled turn returned {text!r:.200}")

    with ends_in_time("The turn", "it was cancelled"):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await when()
            await then()


async def _cancel_while_asking(subject: Subject, *more: Step) -> None:
    """Cancel a turn while the model has begun its answer; run another turn if there are more steps."""
    async with open_stage(subject, None, answer("Well, ", anyio.Event(), "yes."), *more) as stage:
        await _cancel(stage, stage.model.wait_for_request, lambda: stage.session.cancel(immediate=True))
        await require_closed(stage)
        if more:
            text = await stage.turn("And now?")
            require(text == "Back again.", f"The next turn returned {text!r:.200}")


@ORCHESTRATOR.behavior(
    fix="Let the cancellation pass; await nothing under a shield but the release of resources.", is_timed=True
)
async def ends_at_once_while_the_model_answers(subject: Subject) -> None:
    """A turn that is cancelled at once while the model answers ends within two seconds as TurnCancelled."""
    await _cancel_while_asking(subject)


@ORCHESTRATOR.behavior(fix="Keep no state of a cancelled turn.", is_timed=True)
async def works_after_a_cancel(subject: Subject) -> None:
    """After a turn that was cancelled the next one is like any other."""
    await _cancel_while_asking(subject, "Back again.")


async def _cancel_in_tool(subject: Subject, *, immediate: bool) -> tuple[Stage, _Gate]:
    gate = _Gate()
    steps = (answer(call("work", {"text": "a"})), "Done.")
    async with open_stage(subject, Setting(tools=(Worker(work=gate.work),)), *steps) as stage:

        async def stop() -> None:
            await stage.session.cancel(immediate=immediate)
            gate.opened.set()

        await _cancel(stage, gate.reached.wait, stop)
        await require_closed(stage)
    return stage, gate


@ORCHESTRATOR.behavior(
    fix="Let the cancellation reach the running tool: run tools in the turn's own tasks.", is_timed=True
)
async def ends_at_once_while_a_tool_runs(subject: Subject) -> None:
    """A turn that is cancelled at once while a tool runs ends the tool, and the history is valid."""
    _, gate = await _cancel_in_tool(subject, immediate=True)
    require(not gate.passed, "The tool went on to its end")


@ORCHESTRATOR.behavior(fix="Start no step once cancellation.is_cancelled; the host refuses to as well.", is_timed=True)
async def finishes_the_running_tool_when_asked_gently(subject: Subject) -> None:
    """A turn that is cancelled gracefully lets the running tool finish, stores its result and asks no more."""
    stage, gate = await _cancel_in_tool(subject, immediate=False)
    require(gate.passed, "The tool was not let finish")
    require([text for _, text in stage.memory.results] == ["a"], f"Stored results: {stage.memory.results}")
    require(len(stage.model.requests) == 1, f"The model was asked {len(stage.model.requests)} times")


@ORCHESTRATOR.behavior(
    fix="Run the calls of one answer in one task group and let the cancellation reach them all.", is_timed=True
)
async def ends_all_tools_that_run_at_once(subject: Subject) -> None:
    """A turn that is cancelled at once while several tools run leaves each call with a result."""
    gate = _Gate()
    steps = (answer(*(call("work", {"text": text}) for text in "abc")), "Done.")
    async with open_stage(subject, Setting(tools=(Worker(work=gate.work),)), *steps) as stage:
        await _cancel(stage, gate.reached.wait, lambda: stage.session.cancel(immediate=True))
        await require_closed(stage)
        require(len(stage.memory.results) == 3, f"Of three calls {len(stage.memory.results)} have results")


@ORCHESTRATOR.behavior(fix="Let the cancellation pass when the one who reads the turn leaves.", is_timed=True)
async def ends_when_its_reader_leaves(subject: Subject) -> None:
    """When the one who reads the turn leaves in the middle the turn ends within two seconds."""
    with ends_in_time("The turn", "its reader had left"):
        async with open_stage(subject, None, answer("Well, ", anyio.Event(), "yes.")) as stage:
            async with stage.session.stream("Begin.") as events:
                async for _ in events:
                    break
            await require_closed(stage)


@ORCHESTRATOR.behavior(fix="Let the cancellation of the caller's own task pass.")
async def ends_with_its_callers_task(subject: Subject) -> None:
    """When the caller's own task is cancelled the turn ends, and the history is valid."""
    gate = _Gate()
    steps = (answer(call("work", {"text": "a"})), "Done.")
    async with open_stage(subject, Setting(tools=(Worker(work=gate.work),)), *steps) as stage:
        async with anyio.create_task_group() as group:
            group.start_soon(stage.turn)
            await gate.reached.wait()
            group.cancel_scope.cancel()
        await require_closed(stage)
    require(not gate.passed, "The tool went on to its end")
