"""Sessions are kept whole: what was said is there again, nobody writes twice, and each is found."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import attrs
import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.store.states import holder_of, state_of
from amplifier.app.store.store import ProjectSessions
from amplifier_kit.files.locks import LockedError
from amplifier_kit.files.private_append import make_folders
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.journal import Journal, TurnStarted
from amplifier_sdk.jsontypes import JSONObject
from tests.app.store.talks import HELLO, interrupt, keep, record

SPENT: JSONObject = {
    "provider_calls": 1,
    "tool_calls": 2,
    "input_tokens": 3,
    "cost_usd": "0.01",
}


async def test_a_session_is_there_before_its_first_prompt(
    store: ProjectSessions,
) -> None:
    async with store.open(record()):
        (found,) = store.all()
    assert found.record.session_id == "s1"
    assert found.record.working_dir == "/work"
    assert found.record.turn_count == 0


async def test_what_a_turn_said_is_there_again(store: ProjectSessions) -> None:
    async with store.open(record()) as stored:
        assert isinstance(stored.journal, Journal)
        await stored.note_prompt("Hello\n  there")
        await stored.journal.append(TurnStarted(turn_id="t1", prompt="Hello"))
        await stored.note_turn(
            [{"role": "system", "content": "S"}, *HELLO], spending=SPENT
        )
    async with store.open(record()) as stored:
        assert stored.messages == HELLO
        assert stored.interrupted is None
        assert stored.damage == ()
        assert stored.record.prompt == "Hello there"
        assert stored.record.turn_count == 1
        assert stored.record.usage == {"input_tokens": 3}
        assert stored.spending == stored.record.spending == SPENT
        assert stored.record.cost_usd == "0.01"
        await stored.note_prompt("Another")
        assert stored.record.prompt == "Hello there"


async def test_second_turn_is_added_and_changed_history_takes_place(
    store: ProjectSessions,
) -> None:
    async with store.open(record()) as stored:
        await stored.note_turn(HELLO)
        size = (stored.folder / "transcript.jsonl").stat().st_size
        await stored.note_turn([*HELLO, *HELLO])
        lines = (stored.folder / "transcript.jsonl").read_text().splitlines()
        assert len(lines) == 1 + 3 + 3
        assert (stored.folder / "transcript.jsonl").stat().st_size > size
        await stored.note_turn(HELLO[:1])
    async with store.open(record()) as stored:
        assert stored.messages == HELLO[:1]
        assert stored.record.turn_count == 3


async def test_one_process_writes_a_session(store: ProjectSessions) -> None:
    async with store.open(record()):
        with pytest.raises(LockedError, match="this process itself"):
            async with store.open(record()):
                raise AssertionError
        with pytest.raises(LockedError):
            store.delete("s1")
    assert store.delete("s1") == ["s1"]
    assert store.all() == []


async def test_a_session_that_somebody_made_meanwhile_is_gone_on_with(
    store: ProjectSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile: list[Path] = []

    def make(folder: Path) -> None:
        make_folders(folder)
        if not meanwhile:
            meanwhile.append(folder)
            anyio.run(keep, store, "s1", [HELLO])

    monkeypatch.setattr("amplifier.app.store.store.make_folders", make)
    async with store.open(record()) as stored:
        assert stored.record.turn_count == 1
        assert stored.messages == HELLO


async def test_a_session_is_let_go_of_when_its_task_is_cancelled(
    store: ProjectSessions,
) -> None:
    with anyio.CancelScope() as scope:
        async with store.open(record()):
            scope.cancel()
            await anyio.sleep_forever()
    async with store.open(record()) as stored:
        assert stored.record.session_id == "s1"


async def test_a_record_that_could_not_be_read_again_is_not_written(
    store: ProjectSessions,
) -> None:
    async with store.open(record()) as stored:
        with pytest.raises(
            ConfigError,
            match=r"record of session 's1' has 1 problem:\n  name: it has 4,000,002 bytes",
        ):
            await stored.write(attrs.evolve(stored.record, name="x" * 4_000_000))
        assert stored.record.name is None
        await stored.write(attrs.evolve(stored.record, name="x" * 3_999_000))
    assert store.damaged() == []
    assert len(store.all()[0].record.name or "") == 3_999_000


async def test_how_session_stands_is_told_by_its_lock_and_its_journal(
    store: ProjectSessions,
) -> None:
    session = await keep(store, turns=[HELLO])
    assert (state_of(session.folder), holder_of(session.folder)) == ("idle", None)
    async with store.open(record()):
        assert state_of(session.folder) == "open"
        assert "this process itself" in str(holder_of(session.folder))
    await interrupt(store, session)
    (session.folder / "journal.jsonl.lock").write_text(
        "left by a process that was killed"
    )
    assert (state_of(session.folder), holder_of(session.folder)) == (
        "interrupted",
        None,
    )
    (session.folder / "journal.jsonl").write_text("shopping list\n")
    assert state_of(session.folder) == "damaged"


async def test_without_locks_nobody_is_known_to_hold_session(
    store: ProjectSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await keep(store)
    async with store.open(record()):
        monkeypatch.setitem(sys.modules, "filelock", None)
        assert holder_of(session.folder) is None


async def test_who_it_is_may_have_changed_while_it_was_waited_for(
    store: ProjectSessions,
) -> None:
    async with store.open(record()) as stored:
        await stored.write(attrs.evolve(stored.record, name="mine"))
    async with store.open(record(name="stale")) as stored:
        assert stored.record.name == "mine"


async def test_sessions_are_found_by_id_beginning_and_name(
    store: ProjectSessions,
) -> None:
    for name in ("alpha", "alert", "beta"):
        async with store.open(record(name)) as stored:
            await stored.write(
                attrs.evolve(stored.record, name="dinner" if name == "beta" else None)
            )
    assert store.find("alpha").record.session_id == "alpha"
    assert store.find("alp").record.session_id == "alpha"
    assert store.find("dinner").record.session_id == "beta"
    with pytest.raises(
        ConfigError, match=r"ambiguous; the sessions are (alert, alpha|alpha, alert)"
    ):
        store.find("al")
    with pytest.raises(ConfigError, match="no such session"):
        store.find("gamma")


async def test_a_whole_id_is_found_without_a_look_at_others(
    store: ProjectSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("alpha", "alert"):
        async with store.open(record(name)):
            pass
    (store.folder("alert") / "metadata.json").write_text("{")
    monkeypatch.setattr(
        ProjectSessions, "listing", lambda _: pytest.fail("all sessions were read")
    )

    assert store.find("alpha").record.session_id == "alpha"
    assert store.session("alp") is None
    assert store.session("alert") is None
    assert store.session("") is None


async def test_the_latest_comes_first_and_children_are_apart(
    store: ProjectSessions,
) -> None:
    for number, (name, parent) in enumerate(
        [("old", None), ("new", None), ("kid", "new"), ("grandkid", "kid")]
    ):
        async with store.open(
            record(name, created=float(number + 1), parent_id=parent)
        ):
            pass
    assert [found.record.session_id for found in store.all()] == ["new", "old"]
    assert len(store.all(children=True)) == 4
    assert store.delete("new") == ["grandkid", "kid", "new"]
    assert [found.record.session_id for found in store.all(children=True)] == ["old"]


def test_the_stores_of_all_projects_are_found(dirs: AppDirs, tmp_path: Path) -> None:
    assert ProjectSessions.every(dirs) == []
    ProjectSessions.of(dirs).sessions.mkdir(parents=True)
    assert ProjectSessions.every(dirs) == [ProjectSessions.of(dirs)]


async def test_a_home_that_cannot_be_written_is_told_with_what_helps(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    home.write_text("no folder")
    with pytest.raises(
        ConfigError, match=r"home/sessions/s1: .*; set AMPLIFIER_HOME .* with --no-keep"
    ):
        async with ProjectSessions(home).open(record()):
            pass
