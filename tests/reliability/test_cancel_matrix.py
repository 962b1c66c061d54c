"""A turn that is cancelled, wherever it is: it ends at once, nothing of it is left, and what it did is known.

`nox -s cancel_matrix` does so twenty times at each place with each loop; otherwise once with one of the loops. Every
second run is cancelled twice: first to start nothing new, then at once.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Final

import anyio
import pytest

from amplifier import AmplifierSession
from amplifier_sdk.errors import TurnCancelled
from amplifier_sdk.threads import abandoned
from tests.reliability.figures import note_seconds
from tests.reliability.histories import objection
from tests.reliability.places import PLACES, Place, Run, build, text_answer
from tests.reliability.turn import LOOPS

RUNS: Final = int(os.environ.get("AMPLIFIER_CANCEL_RUNS", "1"))
SOON: Final = 2.0
"""Seconds after which nothing of a cancelled turn may be left, in one of a few runs."""
ATTEMPTS: Final = 3
TIMEOUT: Final = 20.0
"""Seconds to wait for what has to be so at some time."""

_MARKS: Final = count(1)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.process,
    pytest.mark.timeout(60 + 10 * RUNS),
]
if RUNS > 1:
    pytestmark.append(pytest.mark.slow)


def alive(mark: str) -> list[str]:
    """The command lines of the live processes that have a mark."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = (
                Path(f"/proc/{pid}/cmdline")
                .read_bytes()
                .replace(b"\0", b" ")
                .decode(errors="replace")
            )
        except OSError:
            continue
        if mark in line:
            found.append(line)
    return found


async def until(condition: Callable[[], bool], seconds: float) -> None:
    """Wait until something is so."""
    with anyio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110  # what other processes and threads do has no event
            await anyio.sleep(0.01)


async def reach(place: Place, run: Run) -> None:
    """Wait until the turn is where it is to be cancelled."""
    if place == "an MCP call":
        await until(lambda: any("sleep" in line for line in alive(run.mark)), TIMEOUT)
        return
    with anyio.fail_after(TIMEOUT):
        await run.reached.wait()
    if place == "bash with grandchildren":
        await until(
            lambda: sum(line.startswith("sleep") for line in alive(run.mark)) >= 5,
            TIMEOUT,
        )
    if place in ("a hook", "an async tool", "a thread tool"):
        await anyio.wait_all_tasks_blocked()


async def cancel(session: AmplifierSession, *, twice: bool) -> None:
    if twice:
        await session.cancel()
        await anyio.lowlevel.checkpoint()
    await session.cancel(immediate=True)


async def is_cancelled_soon(
    place: Place, loop: str, folder: Path, *, twice: bool
) -> bool:
    """Run one turn to a place, cancel it, and look at what is left; then another turn, which has to work.

    Return whether that took no longer than it may: a machine that is busy elsewhere makes a run long now and then.
    """
    run = Run(folder, f"{300 + next(_MARKS)}.{os.getpid()}")
    session = build(place, loop, run)
    began = 0.0
    async with session:
        async with anyio.create_task_group() as group:

            async def stop() -> None:
                nonlocal began
                await reach(place, run)
                began = perf_counter()
                await cancel(session, twice=twice)

            group.start_soon(stop)
            with pytest.raises(TurnCancelled):
                await session.execute("Go.")
            took = perf_counter() - began
        note_seconds(f"cancelled in {place}", took)
        began = perf_counter()
        if place == "bash with grandchildren":  # a server lives as long as its session
            await until(lambda: not alive(run.mark), TIMEOUT)
        took = max(took, perf_counter() - began)
        run.release.set()
        await until(lambda: not abandoned(), TIMEOUT)

        messages = list(await session.coordinator.context.get_messages())
        assert objection(messages) is None
        results = {
            message.get("tool_call_id"): message["content"]
            for message in messages
            if message["role"] == "tool"
        }
        if run.keeps_quick:
            assert results.pop("q") == "quick result"
            assert len(results) == 1
            assert "cancelled" in str(results.popitem()[1])
        run.transport.steps[:] = [text_answer("Here again.")]
        assert await session.execute("And now?") == "Here again."
    began = perf_counter()
    await until(lambda: not alive(run.mark), TIMEOUT)
    return max(took, perf_counter() - began) < SOON


def cases() -> Iterator[tuple[Place, str]]:
    for number, place in enumerate(PLACES):
        for loop in LOOPS if RUNS > 1 else (list(LOOPS)[number % len(LOOPS)],):
            yield place, loop


@pytest.mark.parametrize(
    ("place", "loop"),
    [pytest.param(*case, id="-".join(case).replace(" ", "-")) for case in cases()],
)
async def test_a_cancelled_turn_ends_at_once_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Place, loop: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "home"))
    first = PLACES.index(place) // len(LOOPS) + list(LOOPS).index(loop)
    await is_cancelled_soon(place, loop, made(tmp_path, "warm"), twice=False)
    handles, tasks = open_handles(), len(anyio.get_running_tasks())
    temporary = set(os.listdir(tmp_path))
    names: list[str] = []
    for number in range(RUNS):
        for attempt in range(ATTEMPTS):
            names.append(f"run-{number}-{attempt}")
            folder = made(tmp_path, names[-1])
            if await is_cancelled_soon(
                place, loop, folder, twice=(first + number) % 2 == 1
            ):
                break
        else:
            pytest.fail(f"each of {ATTEMPTS} runs took longer than {SOON:g} s to end")

    await until(
        lambda: open_handles() <= handles and len(anyio.get_running_tasks()) == tasks,
        TIMEOUT,
    )
    assert set(os.listdir(tmp_path)) - temporary == set(names)


def open_handles() -> int:
    return len(os.listdir("/proc/self/fd"))


def made(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder
