"""Damaged files of stored sessions cost what is damaged and nothing else; several writers take turns.

`nox -s kill_points` opens and repairs every variant and lets more processes write; otherwise every variant is read, and
some are opened.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Final

import anyio
import pytest

from amplifier.app.store.reader import read_history
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored import read_record
from amplifier.app.store.transcript import EXPECTED
from amplifier_kit.files.appendlog import read_log
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.messages import MessageDict
from tests.kit.files.appendlog.systems import System
from tests.reliability.figures import note_figure
from tests.reliability.traced import EVERYWHERE, on

TURNS: Final = 34
MORE: Final[MessageDict] = {"role": "user", "content": "And now?"}

if EVERYWHERE:
    pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


def said(number: int) -> list[MessageDict]:
    return [
        {"role": "user", "content": f"Question {number} — žluť 🙂"},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": f"Answer {number}"}],
        },
    ]


async def made(store: ProjectSessions) -> Path:
    """Keep a session of many turns; return its transcript."""
    messages: list[MessageDict] = []
    async with store.open(SessionRecord(session_id="torn")) as saved:
        for number in range(TURNS):
            messages += said(number)
            await saved.transcript.store(f"t{number}", messages)
        return saved.folder / "transcript.jsonl"


def variants(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield damaged copies of a file, each with a name."""
    lines = data.splitlines(keepends=True)
    tail = len(data) - sum(map(len, lines[-3:]))
    for end in range(tail, len(data)):
        yield f"cut at {end}", data[:end]
    for size in (1, 7, 512, 4096):
        yield f"{size} NULs", data + b"\0" * size
        yield f"cut and {size} NULs", data[: len(data) - 9] + b"\0" * size
    chance = random.Random(7)
    for number in range(60):
        yield f"garbage {number}", data + chance.randbytes(1 + 3 * number)
    for number, line in enumerate(lines):
        start = sum(map(len, lines[:number]))
        for _ in range(24):
            place, bit = chance.randrange(len(line)), 1 << chance.randrange(8)
            damaged = bytearray(data)
            damaged[start + place] ^= bit
            yield f"bit {bit} of byte {place} of line {number}", bytes(damaged)
    for number in range(1, len(lines)):
        for text in (
            b"{}",
            b"[]",
            b"123",
            b"null",
            b'{"role": "user", "content": "forged"}',
        ):
            yield (
                f"{text!r} before line {number}",
                b"".join([*lines[:number], text, b"\n", *lines[number:]]),
            )


class Original:
    """A transcript before it was damaged: which line holds which message."""

    def __init__(self, data: bytes, messages: Sequence[MessageDict]) -> None:
        self.data = data
        self.messages = messages
        self.numbers = {
            json.dumps(message): number for number, message in enumerate(messages)
        }
        said = [line for line in data.split(b"\n") if b'"kind":"message"' in line]
        self.lines = {line: number for number, line in enumerate(said)}

    def is_kept(self, found: Sequence[MessageDict], damaged: bytes) -> bool:
        """Tell whether every message is there whose line is, in order, and nothing that was not said."""
        numbers = [self.numbers.get(json.dumps(message), -1) for message in found]
        must = {self.lines[line] for line in damaged.split(b"\n") if line in self.lines}
        return (
            numbers == sorted(set(numbers))
            and must.issubset(numbers)
            and -1 not in numbers
        )


@pytest.fixture
def original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Original:
    System().install(monkeypatch)  # nothing here cuts the power
    path = anyio.run(made, ProjectSessions(tmp_path))
    whole = read_history(path.parent).messages
    assert len(whole) == 2 * TURNS
    return Original(path.read_bytes(), whole)


def test_damage_costs_the_messages_that_it_hits(
    original: Original, tmp_path: Path
) -> None:
    folder = ProjectSessions(tmp_path).folder("torn")
    every = list(variants(original.data))
    assert len(every) >= 3000
    looked_at = every[:: 1 if EVERYWHERE else 8]
    for name, data in looked_at:
        (folder / "transcript.jsonl").write_bytes(data)
        assert original.is_kept(read_history(folder).messages, data), name
    note_figure(
        "damaged transcripts",
        f"{len(looked_at)} variants, 0 that cannot be read, 0 whole messages lost",
    )


def test_a_session_goes_on_behind_the_damage(
    original: Original, tmp_path: Path
) -> None:
    async def go_on() -> int:
        store = ProjectSessions(tmp_path)
        path = store.folder("torn") / "transcript.jsonl"
        every = list(variants(original.data))[:: 1 if EVERYWHERE else 60]
        for name, data in every:
            path.write_bytes(data)
            async with store.open(SessionRecord(session_id="torn")) as saved:
                before = saved.messages
                assert original.is_kept(before, data), name
                await saved.transcript.store("more", [*before, MORE])
            assert read_log(path, EXPECTED).damage == (), name
            assert read_history(path.parent).messages == [*before, MORE], name
        return len(every)

    note_figure(
        "damaged transcripts that go on",
        f"{anyio.run(go_on)} variants, the next message whole in each",
    )


def test_a_damaged_record_is_an_error_that_names_it(tmp_path: Path) -> None:
    store = ProjectSessions(tmp_path)

    async def make() -> bytes:
        async with store.open(
            SessionRecord(session_id="torn", name="x", tags=("a", "b"))
        ) as saved:
            return (saved.folder / "metadata.json").read_bytes()

    data = anyio.run(make)
    file = store.folder("torn") / "metadata.json"
    for end in range(len(data) - 1):
        file.write_bytes(data[:end])
        with pytest.raises(ConfigError, match="torn"):
            read_record(store.folder("torn"))
        assert store.all() == []


WRITER: Final = """
import sys, time
from pathlib import Path
import anyio
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import ProjectSessions
from amplifier_kit.files.locks import LockedError

async def main(root, writer, count):
    store = ProjectSessions(Path(root))
    refused = 0
    for number in range(int(count)):
        while True:
            try:
                async with store.open(SessionRecord(session_id="shared")) as kept:
                    text = f"{writer}-{number}-" + "x" * (100 if number % 10 else 1_000_000)
                    await kept.note_turn([*kept.messages, {"role": "user", "content": text}])
                break
            except LockedError as error:
                assert error.owner is None or error.owner.pid, error
                refused += 1
    print(refused)

anyio.run(main, *sys.argv[1:])
"""


@pytest.mark.process
def test_several_writers_take_turns(tmp_path: Path) -> None:
    writers, count = (8, 40) if EVERYWHERE else (3, 4)
    path = os.pathsep.join(filter(None, sys.path))
    with ExitStack() as stack:
        children = [
            stack.enter_context(
                subprocess.Popen(
                    [
                        sys.executable,
                        "-c",
                        WRITER,
                        str(tmp_path),
                        str(writer),
                        str(count),
                    ],
                    env={**os.environ, "PYTHONPATH": path},
                    stdout=subprocess.PIPE,
                )
            )
            for writer in range(writers)
        ]
        assert [child.wait(600) for child in children] == [0] * writers
    store = ProjectSessions(tmp_path)
    history = read_history(store.folder("shared"))
    texts = [str(message["content"]).split("-x")[0] for message in history.messages]
    assert history.damage == ()
    assert sorted(texts) == sorted(
        f"{writer}-{number}" for writer in range(writers) for number in range(count)
    )
    assert store.find("shared").record.turn_count == writers * count
    note_figure(
        "writers of one session",
        f"{writers} processes, {writers * count} turns, each once",
    )


HOLDER: Final = """
import sys
from pathlib import Path
import anyio
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import ProjectSessions

async def main(root):
    async with ProjectSessions(Path(root)).open(SessionRecord(session_id="held")):
        print("held", flush=True)
        await anyio.sleep_forever()

anyio.run(main, sys.argv[1])
"""


@pytest.mark.process
@on("asyncio")
async def test_a_second_writer_is_refused_and_a_dead_one_makes_way(
    tmp_path: Path,
) -> None:
    from amplifier_kit.files.locks import LockedError

    store = ProjectSessions(tmp_path)
    path = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        try:
            assert await anyio.to_thread.run_sync(holder.stdout.readline) == b"held\n"
            began = perf_counter()
            with pytest.raises(LockedError, match=f"process {holder.pid} on"):
                async with store.open(SessionRecord(session_id="held")):
                    raise AssertionError
            refused = perf_counter() - began
        finally:
            holder.kill()
            holder.wait()
    began = perf_counter()
    async with store.open(SessionRecord(session_id="held")) as saved:
        taken = perf_counter() - began
        assert saved.record.session_id == "held"
    assert refused < 2
    assert taken < 2
    note_figure(
        "a session that is held",
        f"refused after {refused * 1000:.0f} ms, taken over in {taken * 1000:.0f} ms",
    )
