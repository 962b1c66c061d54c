"""What is true of every module when it is released: nothing of it is left, however its session ended."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import anyio.lowlevel

from amplifier.validation.behaviors._cancelling import cancel_after
from amplifier.validation.behaviors._module_settings import own_handlers
from amplifier.validation.behaviors._stage import Stage, open_stage, skip_unless
from amplifier.validation.behaviors._use import use
from amplifier.validation.behaviors.behavior import Suite, require
from amplifier.validation.behaviors.subject import Subject
from amplifier.validation.leftovers import Leftovers, settle
from amplifier_sdk.threads import abandoned

MODULE: Final = Suite("module")

CLEANUP_LIMIT: Final = 2.0
"""Seconds that one clean-up may take here; a session gives it 5."""


async def _clean_up(stage: Stage) -> None:
    """Run the module's own clean-ups, last registered first, and let what they raise through."""
    for cleanup in reversed(stage.cleanups):
        answer = cleanup()
        if inspect.isawaitable(answer):
            await answer


@MODULE.behavior(fix="Let the clean-up expect whatever state the module is in.")
async def cleans_up_without_failing(subject: Subject) -> None:
    """Its clean-ups raise nothing after the module was used."""
    async with open_stage(subject) as stage:
        skip_unless(stage.cleanups, "it registers no clean-up")
        await use(subject, stage)
        await _clean_up(stage)


@MODULE.behavior(fix="Let the clean-up expect a module that was mounted and never used.")
async def cleans_up_unused(subject: Subject) -> None:
    """Its clean-ups raise nothing when the module was never used."""
    async with open_stage(subject) as stage:
        skip_unless(stage.cleanups, "it registers no clean-up")
        await _clean_up(stage)


@MODULE.behavior(fix="Remember that everything is released, and return at once the second time.")
async def cleans_up_twice(subject: Subject) -> None:
    """Its clean-ups may run a second time and then do nothing."""
    async with open_stage(subject) as stage:
        skip_unless(stage.cleanups, "it registers no clean-up")
        await use(subject, stage)
        await _clean_up(stage)
        await _clean_up(stage)


@MODULE.behavior(
    fix="Close without waiting for others; end processes with a short grace and then kill them.", is_timed=True
)
async def cleans_up_soon(subject: Subject) -> None:
    """Its clean-ups end within two seconds."""
    async with open_stage(subject) as stage:
        skip_unless(stage.cleanups, "it registers no clean-up")
        await use(subject, stage)
        with anyio.move_on_after(CLEANUP_LIMIT) as scope:
            await _clean_up(stage)
    require(not scope.cancel_called, f"The clean-ups took longer than {CLEANUP_LIMIT:g} s")


@MODULE.behavior(fix="Let the clean-up close what the instance holds instead of looking it up by its mount point.")
async def cleans_up_after_it_was_unmounted(subject: Subject) -> None:
    """Its clean-ups raise nothing when the application has unmounted it before."""
    async with open_stage(subject) as stage:
        skip_unless(stage.cleanups, "it registers no clean-up")
        await use(subject, stage)
        for name in [*stage.tools] if subject.kind == "tool" else []:
            await stage.coordinator.unmount("tools", name)
        for name in [*stage.coordinator.providers] if subject.kind == "provider" else []:
            await stage.coordinator.unmount("providers", name)
        await _clean_up(stage)


@MODULE.behavior(fix="Keep what register returns and call it in the clean-up, or mark methods with @on.")
async def leaves_no_handlers(subject: Subject) -> None:
    """When its session has ended none of its handlers is registered any more."""
    async with open_stage(subject) as stage:
        await use(subject, stage)
    require(not own_handlers(stage), f"Still registered: {', '.join(own_handlers(stage))}")


@MODULE.behavior(
    fix="Close in the clean-up what the module opened: files, sockets, clients, processes, threads.", is_timed=True
)
async def leaves_nothing_open(subject: Subject) -> None:
    """When its session has ended no file, thread, task or process of it is left."""
    await _leaves_nothing(subject, lambda stage: use(subject, stage))


@MODULE.behavior(fix="Open what the module needs when it is first used, and close it in the clean-up.", is_timed=True)
async def leaves_nothing_open_when_unused(subject: Subject) -> None:
    """A session that mounts it and does nothing leaves no file, thread, task or process behind."""
    await _leaves_nothing(subject, _idle)


async def _idle(stage: Stage) -> None:
    """Do nothing with the module."""


async def _leaves_nothing(subject: Subject, work: Callable[[Stage], Awaitable[None]]) -> None:
    async with open_stage(subject) as stage:
        await work(stage)  # what a process opens once, such as a random source, is open from here on
    before = Leftovers.baseline()
    async with open_stage(subject) as stage:
        await work(stage)
    left = await settle(before)
    require(not left, f"Left are {', '.join(left)}")


@MODULE.behavior(
    fix="Release in 'finally' or in a registered clean-up, both of which run under a cancellation.", is_timed=True
)
async def leaves_nothing_open_when_cancelled(subject: Subject) -> None:
    """When the task that holds its session is cancelled no file, thread, task or process of it is left."""
    async with open_stage(subject) as stage:
        await use(subject, stage)
    before = Leftovers.baseline()
    with anyio.CancelScope() as scope:
        async with open_stage(subject) as stage:
            await use(subject, stage)
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    left = await settle(before)
    require(scope.cancelled_caught, "The cancellation was swallowed")
    require(not left, f"Left are {', '.join(left)}")
    require(not own_handlers(stage), f"Still registered: {', '.join(own_handlers(stage))}")


@MODULE.behavior(
    fix="Release what mount has opened so far when it is cancelled, and raise the cancellation on.", is_timed=True
)
async def may_be_cancelled_while_it_mounts(subject: Subject) -> None:
    """When mounting is cancelled, at whatever step, it ends at once and leaves nothing."""

    async def mount() -> None:
        async with open_stage(subject):
            pass

    await mount()
    before = Leftovers.baseline()
    for steps in range(4):
        await cancel_after(steps, mount, "Mounting")
    left = await settle(before)
    require(not left, f"Left are {', '.join(left)}")


@MODULE.behavior(fix="Let blocking work end by itself soon after its call is cancelled.")
async def leaves_no_thread_running(subject: Subject) -> None:
    """No worker thread goes on when its session has ended."""
    known = set(abandoned())
    async with open_stage(subject) as stage:
        await use(subject, stage)
    left = [entry.name for entry in abandoned() if entry not in known]
    require(not left, f"Still running: {', '.join(left)}")
