"""A process that is killed, or refused by the system, at any call of a turn whose session the store keeps.

`nox -s kill_points` does so at every call, with every loop, on both backends and in both durabilities; otherwise a few
places stand for all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Final

import anyio
import pytest

from amplifier.app.store.reader import read_history
from amplifier.app.store.repair import diagnose
from amplifier_sdk.messages import MessageDict
from tests.reliability.figures import note_seconds
from tests.reliability.histories import objection
from tests.reliability.store_turn import (
    composition,
    install,
    record,
    store_of,
    take_turn,
)
from tests.reliability.traced import (
    MARKS,
    Point,
    TracedTurn,
    each,
    effects_of,
    may_trace,
    on,
)

LOOPS: Final = ("basic", "streaming", "events")
WRITES: Final = "write,pwrite64,fsync,fdatasync,ftruncate,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat"
"""What may change a file; opening and closing one does not."""
KEPT: Final = "state/sessions/kept"
JOURNAL: Final = f"{KEPT}/journal.jsonl"
TRANSCRIPT: Final = f"{KEPT}/transcript.jsonl"
WATCHED: Final = (
    *("state/sessions", KEPT, f"{KEPT}/metadata.json", f"{KEPT}/config.md", "effects"),
    *(
        f"{log}{suffix}"
        for log in (JOURNAL, TRANSCRIPT)
        for suffix in ("", ".lock", ".new")
    ),
)
"""The files at which strace looks; new files of the record are named by chance, and seen by their folder."""

OPENING: Final = 0.2
"""Seconds in which a session opens after a crash."""

pytestmark = MARKS


def prepare(folder: Path) -> Mapping[str, str]:
    """Make the turn's tool a module that plans can name."""
    return {"PYTHONPATH": str(install(folder)), "AMPLIFIER_TEST_FOLDER": str(folder)}


TURN: Final = TracedTurn(
    module="tests.reliability.store_turn",
    calls=WRITES,
    watched=WATCHED,
    spares=lambda _, point: point.file == "effects",  # a tool's failure is a result
    prepare=prepare,
)
KILLED: Final = (("basic", "written", Point("write", 9, JOURNAL)),)
REFUSED: Final = (("ENOSPC", "written", Point("write", 9, JOURNAL)),)


def acknowledged(folder: Path) -> list[dict[str, object]]:
    path = folder / "acknowledged"
    return (
        [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        if path.exists()
        else []
    )


def promised(folder: Path) -> Iterator[MessageDict]:
    """Return what must be there again: prompts, answers with their calls, and results."""
    for line in acknowledged(folder):
        match line:
            case {"TurnStarted": {"prompt": str() as prompt}}:
                yield {"role": "user", "content": prompt}
            case {"MessageWritten": {"message": dict() as message}}:
                yield message
            case {
                "CallFinished": {"call_id": str() as call, "output": str() as output}
            }:
                yield {
                    "role": "tool",
                    "tool_call_id": call,
                    "name": "act",
                    "content": output,
                }
            case _:  # the start and the end of something
                pass


def check(folder: Path) -> None:
    """Whatever happened: nothing promised is lost, nothing is done twice, and a vendor takes what is left."""
    store, done = store_of(folder), effects_of(folder)
    if acknowledged(folder):
        assert store.find("kept").record.working_dir == "/work"
    reported = read_history(store.folder("kept")).messages
    for message in promised(folder):
        assert message in reported
    assert objection(reported) is None
    assert len(set(done)) == len(done)
    # what was done is told as done, or as something whose end nobody knows
    for name in done:
        call = {"one": "c1", "two": "c2", "three": "c3"}[name]
        (result,) = [
            message for message in reported if message.get("tool_call_id") == call
        ]
        is_in_doubt = "is not known" in str(result["content"]) and result.get(
            "metadata"
        ) == {"synthesized": True}
        assert is_in_doubt or result["content"] == f"did {name}"


async def check_and_go_on(folder: Path, loop: str) -> None:
    """Look at what is there, and go on with it in this process."""
    check(folder)
    store, done = store_of(folder), effects_of(folder)
    before = read_history(store.folder("kept")).messages
    made = composition(folder, loop, "written", ["I go on."])
    began = perf_counter()
    async with store.open(record()) as stored:
        took = perf_counter() - began
        assert stored.messages == before
    note_seconds("the store opens after a crash", took)
    assert took < OPENING * 10  # the first one imports, and the machine is shared
    assert await take_turn(made, "Continue.") == "I go on."
    after = read_history(store.folder("kept")).messages
    assert after[: len(before)] == before
    assert [message["role"] for message in after[len(before) :]] == [
        "user",
        "assistant",
    ]
    assert objection(after) is None
    assert effects_of(folder) == done
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


@on("asyncio")
@pytest.mark.parametrize(
    ("loop", "durability", "point"), each(KILLED, lambda: TURN.everywhere(LOOPS))
)
async def test_a_kill_loses_nothing_that_was_promised(
    folder: Path, anyio_backend: str, loop: str, durability: str, point: Point
) -> None:
    await TURN.kill(
        folder, point, backend=anyio_backend, durability=durability, loop=loop
    )

    await check_and_go_on(folder, loop)


@on("trio")
@pytest.mark.parametrize(("error", "durability", "point"), each(REFUSED, TURN.refusals))
async def test_a_refused_call_is_told_and_the_session_goes_on_later(
    folder: Path, anyio_backend: str, error: str, durability: str, point: Point
) -> None:
    await TURN.refuse(
        folder, point, error, backend=anyio_backend, durability=durability
    )

    await check_and_go_on(folder, "basic")


# -- the order on the disk


@on("asyncio")
async def test_a_record_is_on_the_disk_before_what_depends_on_it(
    folder: Path, anyio_backend: str
) -> None:
    log = folder / "trace"
    done = await anyio.to_thread.run_sync(
        lambda: TURN.trace(
            folder,
            WATCHED,
            "-y",
            "-o",
            str(log),
            backend=anyio_backend,
            durability="sync",
        )
    )
    assert done.stdout == "Done.\n", done.stderr
    lines = log.read_text("utf-8").splitlines()
    effect = [
        number
        for number, line in enumerate(lines)
        if "/effects>" in line and " write(" in line
    ]
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
    folder_synced = next(
        number
        for number, line in enumerate(lines)
        if " fsync(" in line and line.count("kept>") == 1
    )
    assert folder_synced < effect[0]
