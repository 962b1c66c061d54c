"""What is wrong with a session is told and mended, and what it was made of is written down."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from amplifier.app.sessions.snapshot import describe
from amplifier.app.store.reader import read_history
from amplifier.app.store.records import NewerRecordError
from amplifier.app.store.repair import diagnose, diagnose_all, repair
from amplifier.app.store.store import ProjectSessions
from amplifier_kit.files.appendlog import LogFormatError
from amplifier_kit.files.locks import LockedError
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject
from tests.app.projects import composed
from tests.app.store.talks import HELLO, ROME, calling, interrupt, keep

# -- diagnosing and repairing


async def test_a_sound_session_is_told_and_left_alone(store: ProjectSessions) -> None:
    session = await keep(store, turns=[HELLO])
    before = {file.name: file.read_bytes() for file in session.folder.iterdir()}
    assert diagnose(store, "s1").is_sound
    assert (await repair(store, "s1")).is_sound
    assert {file.name: file.read_bytes() for file in session.folder.iterdir()} == before


async def test_what_is_wrong_is_told_and_repaired(store: ProjectSessions) -> None:
    session = await keep(store, turns=[HELLO, [HELLO[0], calling("rm"), HELLO[0]]])
    await interrupt(store, session)
    path = session.folder / "transcript.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], lines[2].replace(b"Hi", b"Ho"), *lines[3:]]))
    found = diagnose(store, "s1")
    assert [file for file, _ in found.damage] == ["transcript.jsonl"]
    assert [finding.problem for finding in found.findings] == [
        "unanswered_call",
        "duplicate_call",
    ]
    reported = found.to_dict()
    assert reported["sound"] is False
    assert reported["interrupted"] == {
        "prompt": "Delete it",
        "in_doubt": ["rm"],
        "not_started": ["ls"],
    }
    assert (await repair(store, "s1")).to_dict() == reported
    assert diagnose(store, "s1").is_sound
    assert len(read_history(session.folder).messages) == 9
    assert (session.folder / "transcript.jsonl.damaged").exists()


async def test_what_was_said_stays_where_its_record_is_missing(
    store: ProjectSessions,
) -> None:
    said = await keep(store, "said", [HELLO])
    cut_off = await keep(store, "cut-off")
    await interrupt(store, cut_off)
    unsaid = await keep(store, "unsaid")
    for session in (said, cut_off, unsaid):
        (session.folder / "metadata.json").unlink()
    assert [folder.name for folder, _ in store.listing().damaged] == ["cut-off", "said"]
    assert {each.session_id for each in diagnose_all(store)} == {"cut-off", "said"}
    with pytest.raises(ConfigError, match="'amplifier session repair said' renews it"):
        async with store.open(said.record):
            raise AssertionError
    later = time.time() + 3600
    assert store.left_behind(later) == [unsaid.folder]
    assert store.cleanup(later).deleted == ("unsaid",)
    assert said.folder.is_dir()
    for name in ("said", "cut-off"):
        await repair(store, name)
    assert {session.record.session_id for session in store.all()} == {"said", "cut-off"}
    assert [line.message for line in read_history(said.folder).lines] == HELLO


async def test_history_that_cannot_be_read_is_not_cleaned_up(
    store: ProjectSessions,
) -> None:
    session = await keep(store)
    transcript = session.folder / "transcript.jsonl"
    transcript.symlink_to(transcript)
    (session.folder / "metadata.json").unlink()
    assert store.cleanup(time.time() + 3600).deleted == ()
    transcript.unlink()
    transcript.mkdir()
    assert store.cleanup(time.time() + 3600).deleted == ("s1",)


async def test_a_session_is_recorded_before_its_transcript_is_made(
    store: ProjectSessions,
) -> None:
    session = await keep(store)
    transcript = session.folder / "transcript.jsonl"
    (session.folder / "metadata.json").unlink()
    transcript.write_text("shopping list\n")
    with pytest.raises(LogFormatError):
        async with store.open(session.record):
            raise AssertionError
    assert store.find("s1").record == session.record


@pytest.mark.parametrize(
    "text", [None, "{", '{"version": 1}', '{"version": true}', "[]"], ids=str
)
async def test_a_lost_record_is_made_anew_of_what_was_said(
    store: ProjectSessions, text: str | None
) -> None:
    session = await keep(store, turns=[HELLO, ROME])
    file = session.folder / "metadata.json"
    file.unlink() if text is None else file.write_text(text)
    assert diagnose(store, "s1").record is not None
    await repair(store, "s1")
    found = store.find("s1").record
    assert (found.prompt, found.turn_count) == ("Hello", 2)
    assert diagnose(store, "s1").is_sound
    assert (session.folder / "metadata.json.damaged").exists() is (text is not None)


async def test_a_newer_record_is_left_alone(store: ProjectSessions) -> None:
    session = await keep(store, turns=[HELLO])
    data = json.loads((session.folder / "metadata.json").read_text())
    text = json.dumps({**data, "version": 99})
    (session.folder / "metadata.json").write_text(text)
    assert "Update amplifier" in str(diagnose(store, "s1").record)
    with pytest.raises(NewerRecordError):
        await repair(store, "s1")
    assert (session.folder / "metadata.json").read_text() == text


async def test_an_open_session_is_neither_wrong_nor_repaired(
    store: ProjectSessions,
) -> None:
    session = await keep(store, turns=[HELLO])
    await interrupt(store, session)
    path = session.folder / "transcript.jsonl"
    async with store.open(session.record):
        # a line that is being written
        path.write_bytes(path.read_bytes() + b'{"crc":"')
        found = diagnose(store, "s1")
        assert (found.is_sound, found.is_open, found.to_dict()["open"]) == (
            True,
            True,
            True,
        )
        with pytest.raises(LockedError):
            await repair(store, "s1")
    assert not diagnose(store, "s1").is_sound


async def test_the_record_of_an_open_session_is_not_made_anew(
    store: ProjectSessions,
) -> None:
    session = await keep(store, turns=[HELLO], name="mine")
    async with store.open(session.record):
        (session.folder / "metadata.json").write_text("{")
        with pytest.raises(LockedError):
            await repair(store, "s1")
        assert (session.folder / "metadata.json").read_text() == "{"


async def test_a_session_that_is_not_there_is_not_made(store: ProjectSessions) -> None:
    with pytest.raises(FileNotFoundError):
        await repair(store, "s1")
    assert not store.folder("s1").exists()


async def test_all_sessions_are_diagnosed(store: ProjectSessions) -> None:
    for name in ("good", "bad"):
        await keep(store, name, [HELLO])
    (store.folder("bad") / "metadata.json").write_text("{")
    assert {each.session_id: each.is_sound for each in diagnose_all(store)} == {
        "good": True,
        "bad": False,
    }


# -- what a session was made of


def test_what_a_session_is_made_of_is_written_without_secrets(tmp_path: Path) -> None:
    plan: JSONObject = {
        "session": {"orchestrator": "loop-basic"},
        "providers": [
            {
                "module": "p",
                "config": {"api_key": "s3cret", "url": "https://u:hunter22x@host/"},
            }
        ],
    }
    text = describe(composed(plan, tmp_path))
    assert "loop-basic" in text
    assert "s3cret" not in text
    assert "hunter22x" not in text


async def test_what_a_session_is_made_of_is_written_when_it_changes(
    store: ProjectSessions,
) -> None:
    session = await keep(store)
    file = session.folder / "config.md"
    async with store.open(session.record) as stored:
        await stored.describe("one\n")
        before = file.stat().st_ino
        await stored.describe("one\n")
        assert file.stat().st_ino == before
        await stored.describe("two\n")
    assert file.read_text() == "two\n"
