"""How every module behaves in the process that it shares: its events, what it prints, what it changes, how it waits."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio
import anyio.lowlevel

from amplifier.validation.behaviors._payloads import REQUIRED
from amplifier.validation.behaviors._stage import open_stage, skip_unless
from amplifier.validation.behaviors._use import use
from amplifier.validation.behaviors.behavior import Suite, require
from amplifier.validation.behaviors.subject import Subject

MODULE: Final = Suite("module")

LONGEST_HOLD: Final = 1.0
"""Seconds for which nothing may hold the event loop; far above what a busy machine does by itself."""

_EVENT_NAME: Final = r"[a-z0-9_\-]+(:[a-z0-9_\-]+)+"


@MODULE.behavior(fix="Return names such as 'my-module:started' from the contributor of observability.events.")
async def declares_events_by_name(subject: Subject) -> None:
    """What it contributes to observability.events are lists of names with a colon in them."""
    async with open_stage(subject) as stage:
        declared = await stage.coordinator.collect_contributions("observability.events")
    skip_unless(declared, "it declares no events")
    for names in declared:
        good = isinstance(names, (list, tuple)) and all(
            isinstance(name, str) and re.fullmatch(_EVENT_NAME, name) for name in names
        )
        require(good, f"Declared is {names!r:.200}")


@MODULE.behavior(fix="Register a contributor for 'observability.events' that lists the events the module emits.")
async def emits_only_declared_events(subject: Subject) -> None:
    """Every event that is heard while it works is canonical or declared."""
    async with open_stage(subject) as stage:
        await use(subject, stage)
        contributions = await stage.coordinator.collect_contributions("observability.events")
    declared = {name for names in contributions if isinstance(names, (list, tuple)) for name in names}
    strays = [name for name in stage.unknown_events if name not in declared]
    require(not strays, f"Emitted and declared nowhere: {', '.join(strays)}")


@MODULE.behavior(fix="Emit canonical events with their payload's constructor, such as ToolPre(tool_name=…).")
async def emits_canonical_events_whole(subject: Subject) -> None:
    """A canonical event that is heard while it works carries the keys its readers rely on."""
    async with open_stage(subject) as stage:
        await use(subject, stage)
    for event, data in stage.heard:
        missing = sorted(REQUIRED.get(event, frozenset()) - set(data))
        require(not missing, f"{event} lacks {', '.join(missing)}; it has {sorted(data)}")


@MODULE.behavior(fix="Write to a logger or emit an event; standard output belongs to the application.")
async def prints_nothing(subject: Subject) -> None:
    """Nothing is written to standard output, which belongs to the application."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        async with open_stage(subject) as stage:
            await use(subject, stage)
    require(not out.getvalue(), f"Printed: {out.getvalue()!r:.200}")


async def _unchanged(subject: Subject, what: str, look: Callable[[], object]) -> None:
    before = look()
    async with open_stage(subject) as stage:
        await use(subject, stage)
        during = look()
    after = look()
    require(before == during == after, f"{what} changed")


@MODULE.behavior(fix="Use absolute paths instead of os.chdir.")
async def keeps_the_working_directory(subject: Subject) -> None:
    """The process's working directory stays what it was."""
    await _unchanged(subject, "The working directory", Path.cwd)


@MODULE.behavior(fix="Pass settings as arguments, and to child processes in an environment of their own.")
async def keeps_the_environment(subject: Subject) -> None:
    """The process's environment variables stay what they were."""
    await _unchanged(subject, "The environment", lambda: dict(os.environ))


@MODULE.behavior(fix="Import by name; leave sys.path to the application.")
async def keeps_the_import_path(subject: Subject) -> None:
    """The list of folders from which Python imports stays what it was."""
    await _unchanged(subject, "sys.path", lambda: list(sys.path))


@MODULE.behavior(fix="Leave signals to the application; be told of a cancel by the coordinator.")
async def keeps_signal_handlers(subject: Subject) -> None:
    """The process's handlers for interrupts and termination stay what they were."""
    kinds = (signal.SIGINT, signal.SIGTERM)
    await _unchanged(subject, "A signal handler", lambda: [signal.getsignal(kind) for kind in kinds])


@MODULE.behavior(fix="Log to a logger of the module's own name; leave handlers and levels to the application.")
async def keeps_the_root_logger(subject: Subject) -> None:
    """The root logger's level and handlers stay what they were."""
    root = logging.getLogger()
    await _unchanged(subject, "The root logger", lambda: (root.level, list(root.handlers)))


@MODULE.behavior(
    fix="Await, or run what blocks in a worker thread with amplifier_sdk.threads.run_blocking.", is_timed=True
)
async def does_not_hold_the_event_loop(subject: Subject) -> None:
    """Other tasks run while the module is mounted and used."""
    longest = 0.0

    async def beat() -> None:
        nonlocal longest
        while True:
            before = time.perf_counter()
            await anyio.sleep(0.01)
            longest = max(longest, time.perf_counter() - before)

    async with anyio.create_task_group() as group:
        group.start_soon(beat)
        await anyio.lowlevel.checkpoint()
        async with open_stage(subject) as stage:
            await use(subject, stage)
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    require(longest < LONGEST_HOLD, f"Nothing else ran for {longest:.1f} s")
