"""Many sessions at once, and what one costs to build."""

from __future__ import annotations

import asyncio  # noqa: TID251  # the floor is a bare asyncio loop
import gc
from statistics import median
from time import perf_counter
from typing import Final

import anyio

from benchmarks import floor
from benchmarks.floor import CALLS, SESSIONS, THINK
from benchmarks.memory import resident
from benchmarks.pairing import Effort
from benchmarks.rows import Row, bar
from benchmarks.subject import Subject, answers, open_subject

__all__ = ["building", "sessions"]

OVER_IDEAL: Final = {"asyncio": 1.9, "trio": 2.5}


def sessions(backend: str, effort: Effort) -> list[Row]:
    """A thousand sessions at once, each with a turn of five calls; the effort has no say in it."""
    wall, kilobytes = anyio.run(_all_at_once, backend=backend)
    ideal = (CALLS + 1) * THINK
    bare = asyncio.run(floor.think_time_turns(SESSIONS, CALLS, THINK))
    what = f"{SESSIONS:,} sessions × {CALLS} calls"
    return [
        bar(
            f"{what}, wall over ideal, {backend}",
            wall / ideal,
            OVER_IDEAL[backend],
            f"{wall:.3g} s, ideal {ideal:.3g} s, bare asyncio {bare:.3g} s",
        ),
        bar(
            f"{what}, memory of each, {backend}",
            kilobytes,
            21.0,
            "resident, after its turn",
            unit=" KB",
        ),
    ]


async def _all_at_once() -> tuple[float, float]:
    """Return the wall time in seconds and what each session keeps in kilobytes."""
    warm = await open_subject()
    warm.model.prepare(answers([1] * CALLS))
    await warm.session.execute(floor.PROMPT)
    gc.collect()
    before = resident()
    subjects = [await open_subject() for _ in range(SESSIONS)]
    # one list for all: a session does not pay for its model's script
    said = answers([1] * CALLS)
    for subject in subjects:
        subject.model.prepare(said)
        subject.model.think = THINK
    gc.collect()
    started = perf_counter()
    async with anyio.create_task_group() as group:
        for subject in subjects:
            group.start_soon(_turn, subject)
    wall = perf_counter() - started
    gc.collect()
    return wall, (resident() - before) / 1024 / SESSIONS


async def _turn(subject: Subject) -> None:
    if await subject.session.execute(floor.PROMPT) != "done":
        raise RuntimeError("a session gave another answer than its model")


def building(backend: str, effort: Effort) -> list[Row]:
    """Building a session and mounting its four modules in a warm process."""
    taken = anyio.run(_build_for, effort.seconds, backend=backend)
    detail = f"median of {len(taken)}, fastest {min(taken) * 1e3:.3g} ms"
    return [
        bar(
            f"building a session, warm, {backend}",
            median(taken) * 1e3,
            3.0,
            detail,
            unit=" ms",
        )
    ]


async def _build_for(seconds: float) -> list[float]:
    await open_subject()
    taken: list[float] = []
    end = perf_counter() + seconds
    while perf_counter() < end:
        gc.collect()
        started = perf_counter()
        subject = await open_subject()
        taken.append(perf_counter() - started)
        await subject.session.cleanup()
    return taken
