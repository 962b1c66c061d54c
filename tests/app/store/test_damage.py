"""No damage hides a session: it is found, reported and repaired, whatever was hit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio
import attrs
import pytest

from amplifier.app.store.reader import read_history
from amplifier.app.store.recorded import RecordedComposition
from amplifier.app.store.repair import diagnose, diagnose_all, repair
from amplifier.app.store.selection import find_outline
from amplifier.app.store.states import state_of
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored import read_outline
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject
from tests.app.store.talks import HELLO, ROME, interrupt, keep, record
from tests.sample import size

FIRST_BYTES: Final = 64
"""The bits of the bytes by which a log is told."""

STEP: Final = size(5, 1)
"""Which bits are flipped: each fifth meets every place within a byte."""


def flipped(data: bytes, bit: int) -> bytes:
    damaged = bytearray(data)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def restored(folder: Path, files: dict[str, bytes]) -> None:
    """Put files back as they were, and take others away."""
    for file in folder.iterdir():
        file.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)


@pytest.mark.figures  # seconds of work
@pytest.mark.parametrize("state", ["idle", "interrupted"])
def test_any_flipped_bit_of_a_journal_is_found_and_repaired(
    store: ProjectSessions, state: str
) -> None:
    session = anyio.run(lambda: keep(store, turns=[HELLO]))
    if state == "interrupted":
        anyio.run(interrupt, store, session)
    files = {file.name: file.read_bytes() for file in session.folder.iterdir()}
    data = files["journal.jsonl"]
    assert state_of(session.folder) == state
    for bit in range(0, 8 * len(data), STEP):
        (session.folder / "journal.jsonl").write_bytes(flipped(data, bit))
        assert store.find("s1") == session, bit
        assert state_of(session.folder) == "damaged", bit
        history = read_history(session.folder)
        assert history.messages[:2] == HELLO, bit
        assert {file for file, _ in history.damage} == {"journal.jsonl"}, bit
        if bit < FIRST_BYTES or bit % 61 < STEP:  # opening it takes a while
            assert not anyio.run(repair, store, "s1").is_sound, bit
            assert diagnose(store, "s1").is_sound, bit
            assert read_history(session.folder).messages[:2] == HELLO, bit
            restored(session.folder, files)


@pytest.mark.figures  # seconds of work
def test_any_flipped_bit_of_a_transcript_is_found(store: ProjectSessions) -> None:
    session = anyio.run(lambda: keep(store, turns=[HELLO]))
    transcript = session.folder / "transcript.jsonl"
    data = transcript.read_bytes()
    for bit in range(0, 8 * len(data), STEP):
        transcript.write_bytes(flipped(data, bit))
        assert store.find("s1") == session, bit
        assert not diagnose(store, "s1").is_sound, bit
        messages = read_history(session.folder).messages
        assert all(message in HELLO for message in messages), bit
        assert messages, bit


LOST: Final[dict[str, Callable[[Path], object]]] = {
    "missing": Path.unlink,
    "empty": lambda file: file.write_bytes(b""),
    "header": lambda file: file.write_bytes(
        file.read_bytes().splitlines(keepends=True)[0]
    ),
}


@pytest.mark.parametrize("how", LOST)
async def test_a_transcript_that_is_gone_is_no_empty_session(
    store: ProjectSessions, how: str
) -> None:
    session = await keep(store, turns=[HELLO, ROME], name="mine")
    LOST[how](session.folder / "transcript.jsonl")
    remedy = r"turns that were stored: 2; .*'amplifier session repair s1'"
    assert [problem for _, problem in store.damaged()]
    for name in ("s1", "mine"):
        with pytest.raises(ConfigError, match=remedy):
            store.find(name)
    with pytest.raises(ConfigError, match=remedy):
        async with store.open(session.record):
            raise AssertionError
    (found,) = diagnose_all(store)
    assert "turns that were stored: 2" in str(found.record)
    await repair(store, "s1")
    assert diagnose(store, "s1").is_sound
    assert store.find("mine").record == attrs.evolve(session.record, turn_count=0)


async def test_a_transcript_without_a_whole_line_is_no_empty_session(
    store: ProjectSessions,
) -> None:
    session = await keep(store, turns=[HELLO])
    transcript = session.folder / "transcript.jsonl"
    header, *lines = transcript.read_bytes().splitlines(keepends=True)
    transcript.write_bytes(
        b"".join([header, *(line.replace(b"t1", b"t2") for line in lines)])
    )
    for _ in range(2):
        with pytest.raises(ConfigError, match="turns that were stored: 1"):
            async with store.open(session.record):
                raise AssertionError
    assert transcript.with_name("transcript.jsonl.damaged").stat().st_size
    await repair(store, "s1")
    assert diagnose(store, "s1").is_sound


@pytest.mark.parametrize("name", ["journal.jsonl", "transcript.jsonl"])
async def test_a_file_that_is_no_log_is_moved_aside_by_a_repair(
    store: ProjectSessions, name: str
) -> None:
    session = await keep(store, turns=[HELLO])
    (session.folder / name).write_text("shopping list\nmilk\n")
    remedy = "it is no log; 'amplifier session repair' moves it aside"
    assert remedy in str(diagnose(store, "s1").damage)
    with pytest.raises(ConfigError, match=remedy):
        read_history(session.folder)
    await repair(store, "s1")
    assert diagnose(store, "s1").is_sound
    writer = (session.folder / f"{name}.damaged").read_text()
    assert writer == "shopping list\nmilk\n"
    assert store.find("s1").record.turn_count == (name == "journal.jsonl")


async def test_a_repaired_record_says_who_answers(store: ProjectSessions) -> None:
    session = await keep(store, turns=[HELLO])
    plan = {
        "session": {
            "orchestrator": {"module": "loop-basic", "config": {"model": "m1"}}
        },
        "providers": [{"module": "provider-scripted"}],
    }
    made_of = RecordedComposition(plan=plan, profile="dev")  # type: ignore[arg-type]  # JSON
    async with store.open(session.record) as writer:
        await writer.record_composition(
            made_of, provider="provider-scripted", model="m1"
        )
    file = session.folder / "metadata.json"
    for damage in (
        "{",
        json.dumps({**json.loads(file.read_text()), "session_id": "s9"}),
    ):
        file.write_text(damage)
        with pytest.raises(
            ConfigError, match="'amplifier session repair s1' renews it"
        ):
            store.find("s1")
        await repair(store, "s1")
        found = store.find("s1").record
        assert (found.profile, found.provider) == ("dev", "provider-scripted")
        assert (found.model, found.turn_count) == ("m1", 1)
    (session.folder / "composition.json").write_text("{")
    file.unlink()
    await repair(store, "s1")
    assert store.find("s1").record.profile is None


async def test_the_turns_of_a_lost_record_are_counted_once(
    store: ProjectSessions,
) -> None:
    session = await keep(store, turns=[HELLO])
    await interrupt(store, session)
    (session.folder / "metadata.json").unlink()
    await repair(store, "s1")
    assert store.find("s1").record.turn_count == 2


async def test_a_damaged_session_is_found_by_what_is_left_of_it(
    store: ProjectSessions,
) -> None:
    session = await keep(store, "Rome 2026", turns=[HELLO])
    file = session.folder / "metadata.json"
    file.write_bytes(file.read_bytes().replace(b'"created"', b'"created'))
    assert find_outline([store.sessions], "Rome 2026").folder == session.folder
    assert find_outline([store.sessions], "Rome").session_id == "Rome 2026"
    file.write_text("{")  # nothing tells the id any more
    found = find_outline([store.sessions], session.folder.name)
    assert found.session_id == session.folder.name


async def test_a_beginning_means_the_parent_of_those_that_begin_so(
    store: ProjectSessions,
) -> None:
    root = "0a1b2c3d-root"
    for name, parent in (
        (root, None),
        (f"{root}-01_scout", root),
        (f"{root}-01_scout-02_Écho", f"{root}-01_scout"),
    ):
        async with store.open(record(name, parent_id=parent)):
            pass
    found = {
        begin: store.find(begin).record.session_id for begin in (root[:8], root[:4])
    }
    assert set(found.values()) == {root}
    assert store.find(f"{root}-01").record.session_id == f"{root}-01_scout"
    assert store.find(f"{root}-01_scout-").record.session_id.endswith("Écho")
    (store.folder(f"{root}-01_scout") / "metadata.json").write_text("{")
    assert store.find(root[:8]).record.session_id == root
    async with store.open(record("0a1b2c3d-other")):
        pass
    with pytest.raises(ConfigError, match="ambiguous"):
        store.find("0a1b2c3d")


async def test_long_beginning_is_found_without_records_of_others(
    store: ProjectSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("0a1b2c3d-one", "9f8e7d6c-two"):
        async with store.open(record(name)):
            pass
    read: list[str] = []

    def reading(folder: Path) -> JSONObject:
        read.append(folder.name)
        return read_outline(folder)

    monkeypatch.setattr("amplifier.app.store.selection.read_outline", reading)
    assert store.find("0a1b2c3d").record.session_id == "0a1b2c3d-one"
    assert set(read) <= {"0a1b2c3d", "0a1b2c3d-one"}
