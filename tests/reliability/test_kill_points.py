"""A process that is killed, or refused by the system, at any call of a turn: nothing promised is lost.

`nox -s kill_points` does so at every call, with every loop, on both backends and in both durabilities; otherwise a few
places stand for all.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import anyio
import pytest

from amplifier.testing import ScriptedProvider
from amplifier_kit.files.appendlog import AppendLogFile, Expected
from amplifier_sdk import JSONValue
from tests.reliability.histories import objection
from tests.reliability.traced import (
    MARKS,
    Point,
    TracedTurn,
    each,
    effects_of,
    may_trace,
    on,
)
from tests.reliability.turn import LOOPS, session

OPENING: Final = 0.2
"""Seconds in which a conversation opens after a crash."""

pytestmark = MARKS


HISTORY: Final = "sessions/kept/context-messages.jsonl"
WATCHED: Final = ("sessions", "sessions/kept", HISTORY, f"{HISTORY}.lock", "effects")
"""The files of the history, their folders, and the effects."""


def spares(durability: str, point: Point) -> bool:
    """A tool's failure is a result, and nobody waits for the disk where what is written is enough."""
    return point.file == "effects" or (
        durability == "written" and point.call in {"fdatasync", "fsync"}
    )


TURN: Final = TracedTurn(
    module="tests.reliability.turn",
    calls="mkdir,openat,write,fsync,fdatasync,ftruncate,rename,unlink,close",
    watched=WATCHED,
    spares=spares,
)
KILLED: Final = (
    ("basic", "written", Point("write", 4, HISTORY)),
    ("streaming", "written", Point("write", 2, "effects")),
)
REFUSED: Final = (("ENOSPC", "written", Point("write", 4, HISTORY)),)


def promised(folder: Path) -> list[JSONValue]:
    path = folder / "acknowledged"
    return (
        [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        if path.exists()
        else []
    )


def stored(folder: Path) -> list[JSONValue]:
    path = folder / "sessions" / "kept" / "context-messages.jsonl"
    if not path.exists():
        return []
    log = AppendLogFile.open(path, Expected(holds="context-messages"))
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
    before, done = promised(folder), effects_of(folder)
    writer = stored(folder)
    assert writer[: len(before)] == before
    assert len(writer) <= len(before) + 1

    provider = await go_on(folder, loop)

    asked = [message.to_dict() for message in provider.requests[0].messages]
    assert objection(asked) is None
    assert asked[-1]["content"] == "Continue."
    assert effects_of(folder) == done
    assert len(set(done)) == len(done)
    # what was done is told as done, or as something whose end nobody knows
    for name in done:
        call = {"one": "c1", "two": "c2", "three": "c3"}[name]
        (result,) = [
            message for message in asked if message.get("tool_call_id") == call
        ]
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


@on("asyncio")
@pytest.mark.parametrize(
    ("loop", "durability", "point"), each(KILLED, lambda: TURN.everywhere([*LOOPS]))
)
async def test_a_kill_loses_nothing_that_was_promised(
    folder: Path, anyio_backend: str, loop: str, durability: str, point: Point
) -> None:
    await TURN.kill(
        folder, point, backend=anyio_backend, durability=durability, loop=loop
    )

    await check(folder, loop)


@on("trio")
@pytest.mark.parametrize(("error", "durability", "point"), each(REFUSED, TURN.refusals))
async def test_a_refused_call_is_told_and_the_session_goes_on_later(
    folder: Path, anyio_backend: str, error: str, durability: str, point: Point
) -> None:
    await TURN.refuse(
        folder, point, error, backend=anyio_backend, durability=durability
    )

    await check(folder)
