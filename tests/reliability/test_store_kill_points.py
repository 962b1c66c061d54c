"""A process that is killed, or refused by the system, at any call of a turn whose session the store keeps.

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
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

import anyio
import attrs
import pytest

from amplifier.app.store.reading import read_history
from amplifier.app.store.repairing import diagnose
from amplifier_sdk.messages import MessageDict
from tests.reliability.figures import note_seconds
from tests.reliability.histories import objection
from tests.reliability.store_turn import composition, install, record, store_of, take_turn

EVERYWHERE: Final = "AMPLIFIER_KILL_POINTS" in os.environ
LOOPS: Final = ("basic", "streaming", "events")
WRITES: Final = "write,pwrite64,fsync,fdatasync,ftruncate,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat"
"""What may change a file; opening and closing one does not."""
OPENING: Final = 0.2
"""Seconds in which a session opens after a crash."""

pytestmark = [
    pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace"),
    pytest.mark.timeout(120),
]
if EVERYWHERE:
    pytestmark.append(pytest.mark.slow)


@attrs.frozen
class Point:
    """The n-th of a system call on the files of the session, its folder and the effects."""

    call: str
    number: int

    def __str__(self) -> str:
        return f"{self.call}-{self.number}"


def watched(folder: Path) -> list[Path]:
    """Return the files that strace looks at; new files of the record are named by chance, and seen by their folder."""
    kept = store_of(folder).folder("kept")
    names = ("journal.jsonl", "transcript.jsonl")
    files = [kept / f"{name}{suffix}" for name in names for suffix in ("", ".lock", ".new")]
    return [kept.parent, kept, kept / "metadata.json", kept / "config.md", *files, folder / "effects"]


def traced(folder: Path, *options: str, backend: str, durability: str, loop: str) -> subprocess.CompletedProcess[str]:
    """Run the turn under strace."""
    path = [str(folder / "site"), *sys.path]
    return subprocess.run(
        [
            *("strace", "-f", "-qq", "-e", f"trace={WRITES}", *options),
            *(word for file in watched(folder) for word in ("-P", str(file))),
            *(sys.executable, "-m", "tests.reliability.store_turn"),
            *(str(folder), backend, durability, loop, "Go."),
        ],
        cwd=Path(__file__).parents[2],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
            "AMPLIFIER_TEST_FOLDER": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
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
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        install(folder)
        log = folder / "trace"
        done = traced(folder, "-o", str(log), backend="asyncio", durability=durability, loop="basic")
        assert done.stdout == "Done.\n", done.stderr
        counts = Counter(re.findall(r"^\d+ +(\w+)\(", log.read_text("utf-8"), re.MULTILINE))
    return tuple(Point(call, number) for call in sorted(counts) for number in range(1, counts[call] + 1))


SAMPLE: Final = (("basic", "written", Point("write", 9)),)


def cases() -> tuple[tuple[str, str, Point], ...]:
    """Return where a turn is killed: loop, durability and point."""
    if not EVERYWHERE or shutil.which("strace") is None or not may_trace():
        return SAMPLE
    runs = [*((loop, "written") for loop in LOOPS), ("basic", "sync")]
    return tuple((loop, durability, point) for loop, durability in runs for point in points(durability))


def acknowledged(folder: Path) -> list[dict[str, object]]:
    path = folder / "acknowledged"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def effects(folder: Path) -> list[str]:
    path = folder / "effects"
    return path.read_text("utf-8").splitlines() if path.exists() else []


def promised(folder: Path) -> Iterator[MessageDict]:
    """Return what must be there again: prompts, answers with their calls, and results."""
    for line in acknowledged(folder):
        match line:
            case {"TurnStarted": {"prompt": str() as prompt}}:
                yield {"role": "user", "content": prompt}
            case {"MessageWritten": {"message": dict() as message}}:
                yield message
            case {"CallFinished": {"call_id": str() as call, "output": str() as output}}:
                yield {"role": "tool", "tool_call_id": call, "name": "act", "content": output}
            case _:  # the start and the end of something
                pass


def check(folder: Path) -> None:
    """Whatever happened: nothing promised is lost, nothing is done twice, and a vendor takes what is left."""
    store, done = store_of(folder), effects(folder)
    if acknowledged(folder):
        assert store.find("kept").record.working_dir == "/work"
    told = read_history(store.folder("kept")).messages
    for message in promised(folder):
        assert message in told
    assert objection(told) is None
    assert len(set(done)) == len(done)
    for name in done:  # what was done is told as done, or as something whose end nobody knows
        call = {"one": "c1", "two": "c2", "three": "c3"}[name]
        (result,) = [message for message in told if message.get("tool_call_id") == call]
        is_in_doubt = "is not known" in str(result["content"]) and result.get("metadata") == {"synthesized": True}
        assert is_in_doubt or result["content"] == f"did {name}"


async def check_and_go_on(folder: Path, loop: str) -> None:
    """Look at what is there, and go on with it in this process."""
    check(folder)
    store, done = store_of(folder), effects(folder)
    before = read_history(store.folder("kept")).messages
    made = composition(folder, loop, "written", ["I go on."])
    began = perf_counter()
    async with store.open(record()) as kept:
        took = perf_counter() - began
        assert kept.messages == before
    note_seconds("the store opens after a crash", took)
    assert took < OPENING * 10  # the first one imports, and the machine is shared
    assert await take_turn(made, "Continue.") == "I go on."
    after = read_history(store.folder("kept")).messages
    assert after[: len(before)] == before
    assert [message["role"] for message in after[len(before) :]] == ["user", "assistant"]
    assert objection(after) is None
    assert effects(folder) == done
    assert diagnose(store, "kept").is_sound


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if not may_trace():
        pytest.skip("this system lets no process trace another")
    folder = tmp_path.resolve() / "place"
    folder.mkdir()
    monkeypatch.syspath_prepend(install(folder))
    monkeypatch.setenv("AMPLIFIER_TEST_FOLDER", str(folder))
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
    await anyio.to_thread.run_sync(lambda: traced(folder, *kill, backend=backend, durability=durability, loop=loop))

    await check_and_go_on(folder, loop)


def refusals() -> tuple[tuple[str, str, Point], ...]:
    """Return what is refused: the error, the durability and from which call on."""
    if not EVERYWHERE or shutil.which("strace") is None or not may_trace():
        return (("ENOSPC", "written", Point("write", 9)),)
    kinds = ("write", "fdatasync", "fsync", "renameat", "rename")
    found = [(durability, point) for durability in ("written", "sync") for point in points(durability)]
    return tuple(
        (error, durability, point)
        for error in ("ENOSPC", "EIO", "EFBIG")
        for durability, point in found
        if point.call in kinds and (error != "EFBIG" or point.call == "write")
    )


@pytest.mark.parametrize(
    ("error", "durability", "point"),
    [pytest.param(*case, id="-".join(map(str, case))) for case in refusals()],
)
async def test_a_refused_call_is_told_and_the_session_goes_on_later(
    folder: Path, anyio_backend: object, error: str, durability: str, point: Point
) -> None:
    refuse = ("-o", os.devnull, "-e", f"inject={point.call}:error={error}:when={point.number}+")
    backend = name_of(anyio_backend)
    done = await anyio.to_thread.run_sync(
        lambda: traced(folder, *refuse, backend=backend, durability=durability, loop="basic")
    )

    reason = {"ENOSPC": "No space left on device", "EIO": "Input/output error", "EFBIG": "File too large"}[error]
    assert done.stdout == "Done.\n" or reason in done.stderr
    await check_and_go_on(folder, "basic")


# -- the order on the disk


async def test_a_record_is_on_the_disk_before_what_depends_on_it(folder: Path, anyio_backend: object) -> None:
    log = folder / "trace"
    backend = name_of(anyio_backend)
    done = await anyio.to_thread.run_sync(
        lambda: traced(folder, "-y", "-o", str(log), backend=backend, durability="sync", loop="basic")
    )
    assert done.stdout == "Done.\n", done.stderr
    lines = log.read_text("utf-8").splitlines()
    effect = [number for number, line in enumerate(lines) if "/effects>" in line and " write(" in line]
    assert len(effect) == 3
    dirty = False
    for line in lines:
        if "journal.jsonl>" in line and " write(" in line:
            dirty = True
        elif "journal.jsonl>" in line and " fdatasync(" in line:
            dirty = False
        elif "/effects>" in line and " write(" in line:
            assert not dirty, "an effect came before its mark was on the disk"
    assert not dirty
    folder_synced = next(number for number, line in enumerate(lines) if " fsync(" in line and line.count("kept>") == 1)
    assert folder_synced < effect[0]
