"""Sessions that run for long, in which now and then something goes wrong: nothing breaks, and nothing grows.

`nox -s soak` runs 10,000 turns; otherwise a hundred stand for them. `AMPLIFIER_SOAK_SEED` repeats a run.
"""

from __future__ import annotations

import gc
import os
import random
import shutil
import threading
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Final

import anyio
import pytest
import structlog
from structlog.testing import capture_logs

from amplifier import AmplifierSession
from amplifier_sdk import Limits
from amplifier_sdk.errors import LLMError, TurnCancelled
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.threads import abandoned
from tests.reliability.figures import note_figure, note_seconds
from tests.reliability.histories import objection
from tests.reliability.soak import Life, refusing_disk

# on each backend
TURNS: Final = int(os.environ.get("AMPLIFIER_SOAK_TURNS", "120")) // 2
SEED: Final = int(os.environ.get("AMPLIFIER_SOAK_SEED", "20261121"))
SHARE: Final = 0.01
"""How many of the turns have a fault, for each kind of fault."""
LIFE: Final = 20  # turns of one session
SITTING: Final = 7  # turns until it is closed and opened again
WARM: Final = 0.3
"""The part of the turns after which nothing may grow any more."""
GROWTH: Final = 8.0
"""MiB in 10,000 turns: a person who works for eight hours has as many, and an MiB an hour is the most."""

LONG: Final = 5_000
"""Turns from which on memory is judged: in fewer of them it has not settled."""

pytestmark = [pytest.mark.anyio, pytest.mark.process, pytest.mark.timeout(120 + TURNS)]
if TURNS >= LONG:
    pytestmark.append(pytest.mark.slow)


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Name the backend, whose debug mode would take most of the time."""
    return str(request.param)


def resident() -> float:
    """Return the process's resident memory in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def one_turn(
    life: Life, session: AmplifierSession, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Run one turn, and say how it ended; whatever it may do, it ends in one of these ways."""
    life.prepare(SHARE)
    stop = life.stop
    assert stop is not None
    outcome = ""
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                await stop.wait()
                if "cancel-twice" in life.faults:
                    await session.cancel()
                await session.cancel(immediate=True)

            group.start_soon(watch)
            with refusing_disk(life, monkeypatch):
                try:
                    await session.execute(f"Turn {life.number}.")
                    outcome = "answered"
                except TurnCancelled:
                    outcome = "cancelled"
                except LLMError:
                    outcome = "provider failed"
                except OSError:
                    outcome = "disk refused"
            group.cancel_scope.cancel()
    if outcome == "cancelled":
        assert life.cancel_at > 0
    if outcome == "disk refused":
        assert "disk" in life.faults
    return outcome


async def settled(session: AmplifierSession, life: Life) -> list[MessageDict]:
    """Check what a turn left, and return the history."""
    messages = list(await session.coordinator.context.get_messages())
    assert objection(messages) is None, (SEED, life.number, life.faults)
    assert set(life.done) <= life.allowed, (SEED, life.number, life.faults)
    assert len(set(life.done)) == len(life.done), (SEED, life.number, life.faults)
    return messages


def tear(life: Life) -> None:
    """Leave behind the history what a process does that is killed while it writes."""
    (path,) = life.folder.rglob("context-messages.jsonl")
    with path.open("ab") as file:
        file.write(
            life.dice.choice(
                [b'{"seq": 1, "da', b"\0" * 40, b"\xf0\x9f", b"nonsense\n"]
            )
        )


async def live(
    life: Life, turns: int, monkeypatch: pytest.MonkeyPatch, ends: Counter[str]
) -> None:
    """Run a session's turns, in sittings."""
    before: list[MessageDict] = []
    while life.number < turns:
        async with life.open(is_resumed=life.number > 0) as session:
            assert (
                list(await session.coordinator.context.get_messages())[: len(before)]
                == before
            )
            for _ in range(min(SITTING, turns - life.number)):
                began = perf_counter()
                ends[await one_turn(life, session, monkeypatch)] += 1
                note_seconds("turn of the soak", perf_counter() - began)
                ends["faults"] += len(life.faults)
                before = await settled(session, life)
        if life.dice.random() < 0.3:
            tear(life)


async def test_nothing_breaks_and_nothing_grows(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    anyio_backend_name: str,
) -> None:
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "home"))
    dice = random.Random(f"{SEED}-{anyio_backend_name}")
    ends: Counter[str] = Counter()
    samples: list[tuple[int, float]] = []
    handles = tasks = threads = 0
    done = 0
    was_configured = structlog.is_configured()
    began = perf_counter()
    while done < TURNS:
        folder = tmp_path / f"life-{done}"
        (folder / "work").mkdir(parents=True)
        with capture_logs() as logs:
            life = Life(folder, dice)
            await live(life, min(LIFE, TURNS - done), monkeypatch, ends)
            logs.clear()
            caplog.clear()
        done += life.number
        shutil.rmtree(folder)
        if done >= TURNS * WARM:
            gc.collect()
            samples.append((done, resident()))
            if not handles:
                handles, tasks, threads = (
                    open_handles(),
                    len(anyio.get_running_tasks()),
                    threading.active_count(),
                )
    if not was_configured:
        structlog.reset_defaults()

    grown = slope(samples) * 10_000
    growth = f", {grown:+.1f} MiB in 10,000 turns" if TURNS >= LONG else ""
    note_figure(
        f"soak on {anyio_backend_name}",
        f"{done} turns in {perf_counter() - began:.0f} s, seed {SEED}, {dict(ends)}; {samples[-1][1]:.0f} MiB{growth};"
        f" {open_handles()} handles, {handles} before; {threading.active_count()} threads, {threads} before",
    )
    assert ends["answered"] > TURNS / 2
    assert open_handles() <= handles
    assert len(anyio.get_running_tasks()) == tasks
    # idle ones are kept for the next calls
    assert threading.active_count() <= threads + Limits().parallel_tools
    assert not abandoned()
    if TURNS >= LONG:
        assert grown < GROWTH


def slope(samples: list[tuple[int, float]]) -> float:
    """Return how fast the second of each pair grows with the first, by least squares."""
    middle = sum(x for x, _ in samples) / len(samples)
    height = sum(y for _, y in samples) / len(samples)
    spread = sum((x - middle) ** 2 for x, _ in samples)
    return (
        sum((x - middle) * (y - height) for x, y in samples) / spread if spread else 0.0
    )


def open_handles() -> int:
    return len(os.listdir("/proc/self/fd"))
