"""A loop says what it does: every turn's events are whole, however the turn ends."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import anyio

from amplifier.validation.behaviors._parts import Worker
from amplifier.validation.behaviors._stage import Setting, Stage, open_stage
from amplifier.validation.behaviors.behavior import Suite, require
from amplifier.validation.behaviors.subject import Subject
from amplifier_kit.scripted import answer, call
from amplifier_sdk.errors import TurnCancelled

ORCHESTRATOR: Final = Suite("orchestrator")


async def _plain_turn(subject: Subject) -> Stage:
    steps = (answer(call("work", {"text": "a"})), "Done.")
    async with open_stage(subject, Setting(tools=(Worker(),)), *steps) as stage:
        await stage.turn("Do it.")
    return stage


async def _failed_turn(subject: Subject) -> Stage:
    async with open_stage(subject, None, OSError("the line went dead")) as stage:
        with suppress(OSError):
            await stage.turn()
    return stage


async def _cancelled_turn(subject: Subject) -> Stage:
    async with open_stage(subject, None, answer("Well, ", anyio.Event(), "yes.")) as stage:

        async def run() -> None:
            with suppress(TurnCancelled):
                await stage.turn()

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await stage.model.wait_for_request()
            await stage.session.cancel(immediate=True)
    return stage


def _require_counts(stage: Stage, **counts: int) -> None:
    for name, count in counts.items():
        event = name.replace("_", ":", 1)
        require(len(stage.all(event)) == count, f"{event} was heard {len(stage.all(event))} times, not {count}")


@ORCHESTRATOR.behavior(fix="Emit prompt:submit once, before anything else of the turn.")
async def announces_the_prompt(subject: Subject) -> None:
    """A turn begins with one prompt:submit, before the model is asked."""
    stage = await _plain_turn(subject)
    _require_counts(stage, prompt_submit=1)
    events = stage.events
    require(events.index("prompt:submit") < events.index("provider:request"), f"The order is {events}")
    require(stage.all("prompt:submit")[0].get("prompt") == "Do it.", "prompt:submit carries another prompt")


@ORCHESTRATOR.behavior(fix="Emit prompt:complete with the answer when the turn has one.")
async def announces_the_answer(subject: Subject) -> None:
    """A turn that has its answer is told by one prompt:complete with it."""
    stage = await _plain_turn(subject)
    _require_counts(stage, prompt_complete=1)
    require(stage.all("prompt:complete")[0].get("response") == "Done.", "prompt:complete carries another answer")


@ORCHESTRATOR.behavior(fix="Ask through the host, which emits provider:request and provider:response.")
async def announces_each_request(subject: Subject) -> None:
    """Each request is announced by provider:request and ended by provider:response."""
    stage = await _plain_turn(subject)
    heard = [name for name in stage.events if name in ("provider:request", "provider:response")]
    require(heard == ["provider:request", "provider:response"] * 2, f"For two requests were heard {heard}")


@ORCHESTRATOR.behavior(fix="Ask through the host, which emits provider:error.")
async def announces_a_failed_request(subject: Subject) -> None:
    """A request that fails is ended by provider:error."""
    stage = await _failed_turn(subject)
    _require_counts(stage, provider_request=1, provider_response=0, provider_error=1)


@ORCHESTRATOR.behavior(fix="Emit execution:start and execution:end once a turn, the latter in 'finally'.")
async def announces_its_work(subject: Subject) -> None:
    """A turn is framed by one execution:start and one execution:end."""
    _require_counts(await _plain_turn(subject), execution_start=1, execution_end=1)


@ORCHESTRATOR.behavior(fix="Emit execution:end in 'finally'.")
async def announces_the_end_of_its_work_after_an_error(subject: Subject) -> None:
    """A turn that fails is framed by one execution:start and one execution:end as well."""
    _require_counts(await _failed_turn(subject), execution_start=1, execution_end=1)


@ORCHESTRATOR.behavior(fix="Emit execution:end in 'finally', under a shield with a limit.")
async def announces_the_end_of_its_work_after_a_cancel(subject: Subject) -> None:
    """A turn that is cancelled is framed by one execution:start and one execution:end as well."""
    _require_counts(await _cancelled_turn(subject), execution_start=1, execution_end=1)


@ORCHESTRATOR.behavior(fix="Emit orchestrator:complete once a turn with the status 'success'.")
async def reports_success(subject: Subject) -> None:
    """A turn that has its answer ends with one orchestrator:complete of the status success."""
    await _reports(await _plain_turn(subject), "success")


@ORCHESTRATOR.behavior(fix="Emit orchestrator:complete in 'finally', with the status 'error' after an exception.")
async def reports_an_error(subject: Subject) -> None:
    """A turn that fails ends with one orchestrator:complete of the status error, and without prompt:complete."""
    stage = await _failed_turn(subject)
    await _reports(stage, "error")
    _require_counts(stage, prompt_complete=0)


@ORCHESTRATOR.behavior(fix="Emit orchestrator:complete in 'finally', with the status 'cancelled', under a shield.")
async def reports_a_cancel(subject: Subject) -> None:
    """A turn that is cancelled ends with one orchestrator:complete of the status cancelled."""
    await _reports(await _cancelled_turn(subject), "cancelled")


async def _reports(stage: Stage, status: str) -> None:
    _require_counts(stage, orchestrator_complete=1)
    told = stage.all("orchestrator:complete")[0].get("status")
    require(told == status, f"orchestrator:complete has the status {told!r}, not {status!r}")


@ORCHESTRATOR.behavior(fix="Leave session:* and cancel:* to the kernel, which emits each once.")
async def leaves_the_sessions_events_to_the_kernel(subject: Subject) -> None:
    """The events of the session and of its cancel are heard once."""
    stage = await _cancelled_turn(subject)
    _require_counts(stage, session_start=1, session_end=1, cancel_requested=1, cancel_completed=1)
