"""A process that is killed, or refused by the system, at any call of a turn: nothing promised is lost.

`nox -s kill_points` does so at every call, with every loop, on both backends and in both durabilities; otherwise a few
places stand for all.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal, TypeAlias

import anyio
import attrs
import pytest

from amplifier.testing import ScriptedProvider
from amplifier_sdk import JSONValue
from amplifier_sdk.kit.appendlog import Expected, LogFile
from tests.reliability.histories import objection
from tests.reliability.turn import LOOPS, session

EVERYWHERE: Final = "AMPLIFIER_KILL_POINTS" in os.environ
CALLS: Final = "mkdir,openat,write,fsync,fdatasync,ftruncate,rename,unlink,close"
OPENING: Final = 0.2
"""Seconds in which a conversation opens after a crash."""

Place: TypeAlias = Literal["history", "effects"]

pytestmark = [
    pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace"),
    pytest.mark.timeout(120),
]
if EVERYWHERE:
    pytestmark.append(pytest.mark.slow)


@attrs.frozen
class Point:
    """The n-th of a system call on some files."""

    place: Place
    call: str
    number: int

    def __str__(self) -> str:
        return f"{self.place}-{self.call}-{self.number}"


SAMPLE: Final = (
    ("basic", "written", Point("history", "write", 4)),
    ("streaming", "written", Point("effects", "write", 2)),
)


def traced(
    folder: Path, place: Place, *options: str, backend: str, durability: str, loop: str = "basic"
) -> subprocess.CompletedProcess[str]:
    """Run the turn under strace, which looks at the calls on some files alone."""
    history = folder / "sessions" / "kept" / "context-messages.jsonl"
    paths = {
        "history": [history.parent.parent, history.parent, history, history.with_name(f"{history.name}.lock")],
        "effects": [folder / "effects"],
    }[place]
    return subprocess.run(
        [
            *("strace", "-f", "-qq", "-e", f"trace={CALLS}", *options),
            *(word for path in paths for word in ("-P", str(path))),
            *(sys.executable, "-m", "tests.reliability.turn", str(folder), backend, durability, loop, "Go."),
        ],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@cache
def may_trace() -> bool:
    """Tell whether this system lets one process look at another."""
    return subprocess.run(["strace", "-qq", "true"], capture_output=True, check=False).returncode == 0


@cache
def points(durability: str) -> tuple[Point, ...]:
    """Return every point of a turn, counted in one that nobody disturbs."""
    found: list[Point] = []
    for place in ("history", "effects"):
        with TemporaryDirectory() as folder:
            log = Path(folder).resolve() / "trace"
            done = traced(Path(folder).resolve(), place, "-o", str(log), backend="asyncio", durability=durability)
            assert done.stdout == "Done.\n", done.stderr
            counts = Counter(re.findall(r"^\d+ +(\w+)\(", log.read_text("utf-8"), re.MULTILINE))
        found += [Point(place, call, number) for call in sorted(counts) for number in range(1, counts[call] + 1)]
    return tuple(found)


def cases() -> tuple[tuple[str, str, Point], ...]:
    """Return where a turn is killed: loop, durability and point."""
    if not EVERYWHERE or shutil.which("strace") is None or not may_trace():
        return SAMPLE
    runs = [*((loop, "written") for loop in LOOPS), ("basic", "sync")]
    return tuple((loop, durability, point) for loop, durability in runs for point in points(durability))


def promised(folder: Path) -> list[JSONValue]:
    path = folder / "acknowledged"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def effects(folder: Path) -> list[str]:
    path = folder / "effects"
    return path.read_text("utf-8").splitlines() if path.exists() else []


def stored(folder: Path) -> list[JSONValue]:
    path = folder / "sessions" / "kept" / "context-messages.jsonl"
    if not path.exists():
        return []
    log = LogFile.open(path, Expected(holds="context-messages"))
    log.close()
    return [record.data for record in log.records]


async def go_on(folder: Path, loop: str) -> ScriptedProvider:
    """Go on with the session, in this process, and return the provider with what it was asked."""
    provider = ScriptedProvider("I go on.")
    made = session(folder, provider, "written", loop, is_resumed=True)
    began = anyio.current_time()
    async with made:
        assert anyio.current_time() - began < OPENING * 10  # the first one imports
        assert await made.execute("Continue.") == "I go on."
    return provider


async def check(folder: Path, loop: str = "basic") -> None:
    """Whatever happened: nothing promised is lost, nothing is done twice, and a vendor takes what is left."""
    before, done = promised(folder), effects(folder)
    kept = stored(folder)
    assert kept[: len(before)] == before
    assert len(kept) <= len(before) + 1

    provider = await go_on(folder, loop)

    asked = [message.to_dict() for message in provider.requests[0].messages]
    assert objection(asked) is None
    assert asked[-1]["content"] == "Continue."
    assert effects(folder) == done
    assert len(set(done)) == len(done)
    for name in done:  # what was done is told as done, or as something whose end nobody knows
        call = {"one": "c1", "two": "c2", "three": "c3"}[name]
        (result,) = [message for message in asked if message.get("tool_call_id") == call]
        metadata = result.get("metadata")
        is_made_up = isinstance(metadata, dict) and bool(metadata.get("synthesized"))
        assert is_made_up or result["content"] == f"did {name}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    if not may_trace():
        pytest.skip("this system lets no process trace another")
    folder = tmp_path.resolve() / "home"
    folder.mkdir()
    return folder


def name_of(backend: object) -> str:
    return str(backend[0] if isinstance(backend, tuple) else backend)


@pytest.mark.parametrize(
    ("loop", "durability", "point"),
    [pytest.param(*case, id="-".join(map(str, case))) for case in cases()],
)
async def test_a_kill_loses_nothing_that_was_promised(
    folder: Path, anyio_backend: object, loop: str, durability: str, point: Point
) -> None:
    kill = ("-o", os.devnull, "-e", f"inject={point.call}:signal=SIGKILL:when={point.number}")
    backend = name_of(anyio_backend)
    await anyio.to_thread.run_sync(
        lambda: traced(folder, point.place, *kill, backend=backend, durability=durability, loop=loop)
    )

    await check(folder, loop)


FULL: Final = tuple(Point("history", "write", number) for number in (range(1, 9) if EVERYWHERE else (3,)))


@pytest.mark.parametrize("error", ["ENOSPC", "EIO", "EFBIG"] if EVERYWHERE else ["ENOSPC"])
@pytest.mark.parametrize(
    ("durability", "point"),
    [
        pytest.param(durability, point, id=f"{durability}-{point}")
        for durability in (("written", "sync") if EVERYWHERE else ("written",))
        for point in (
            *FULL,
            *((Point("history", "fdatasync", 1), Point("history", "fdatasync", 3)) if EVERYWHERE else ()),
        )
    ],
)
async def test_a_refused_write_is_told_and_the_session_goes_on_later(
    folder: Path, anyio_backend: object, durability: str, point: Point, error: str
) -> None:
    refuse = f"inject={point.call}:error={error}:when={point.number}+"
    backend = name_of(anyio_backend)
    done = await anyio.to_thread.run_sync(
        lambda: traced(folder, point.place, "-o", os.devnull, "-e", refuse, backend=backend, durability=durability)
    )

    reason = {"ENOSPC": "No space left on device", "EIO": "Input/output error", "EFBIG": "File too large"}[error]
    assert done.stdout == "Done.\n" or reason in done.stderr
    await check(folder)
