"""Sessions are kept whole: what was said is there again, nobody writes twice, and each is found."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from amplifier.app.places import Places
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import SessionStore
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.journal import Journal, TurnStarted
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.kit.locks import LockedError
from amplifier_sdk.messages import MessageDict

HELLO: list[MessageDict] = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."}]


def calling(*names: str) -> MessageDict:
    blocks: list[JSONObject] = [
        {"type": "tool_call", "id": f"c{number}", "name": name, "input": {}} for number, name in enumerate(names)
    ]
    return {"role": "assistant", "content": [*blocks]}


def record(session_id: str = "s1", **changes: object) -> SessionRecord:
    return attrs.evolve(SessionRecord(session_id=session_id, working_dir="/work"), **changes)  # type: ignore[arg-type]  # the test's own fields


async def test_a_session_is_there_before_its_first_prompt(store: SessionStore) -> None:
    async with store.open(record()):
        (found,) = store.all()
    assert found.record.session_id == "s1"
    assert found.record.working_dir == "/work"
    assert found.record.turn_count == 0


async def test_what_a_turn_said_is_there_again(store: SessionStore) -> None:
    async with store.open(record()) as kept:
        assert isinstance(kept.journal, Journal)
        await kept.note_prompt("Hello\n  there")
        await kept.journal.append(TurnStarted(turn_id="t1", prompt="Hello"))
        await kept.note_turn([{"role": "system", "content": "S"}, *HELLO], usage={"input": 3}, cost_usd="0.01")
    async with store.open(record()) as kept:
        assert kept.messages == HELLO
        assert kept.interrupted is None
        assert kept.damage == ()
        assert kept.record.prompt == "Hello there"
        assert kept.record.turn_count == 1
        assert kept.record.usage == {"input": 3}
        assert kept.record.cost_usd == "0.01"
        await kept.note_prompt("Another")
        assert kept.record.prompt == "Hello there"


async def test_a_second_turn_is_added_and_a_changed_history_takes_its_place(store: SessionStore) -> None:
    async with store.open(record()) as kept:
        await kept.note_turn(HELLO)
        size = (kept.folder / "transcript.jsonl").stat().st_size
        await kept.note_turn([*HELLO, *HELLO])
        lines = (kept.folder / "transcript.jsonl").read_text().splitlines()
        assert len(lines) == 1 + 3 + 3
        assert (kept.folder / "transcript.jsonl").stat().st_size > size
        await kept.note_turn(HELLO[:1])
    async with store.open(record()) as kept:
        assert kept.messages == HELLO[:1]
        assert kept.record.turn_count == 3


async def test_one_process_writes_a_session(store: SessionStore) -> None:
    async with store.open(record()):
        with pytest.raises(LockedError, match="this process itself"):
            async with store.open(record()):
                raise AssertionError
        with pytest.raises(LockedError):
            store.delete("s1")
    assert store.delete("s1") == ["s1"]
    assert store.all() == []


async def test_who_it_is_may_have_changed_while_it_was_waited_for(store: SessionStore) -> None:
    async with store.open(record()) as kept:
        await kept.write(attrs.evolve(kept.record, name="mine"))
    async with store.open(record(name="stale")) as kept:
        assert kept.record.name == "mine"


async def test_sessions_are_found_by_id_beginning_and_name(store: SessionStore) -> None:
    for name in ("alpha", "alert", "beta"):
        async with store.open(record(name)) as kept:
            await kept.write(attrs.evolve(kept.record, name="dinner" if name == "beta" else None))
    assert store.find("alpha").record.session_id == "alpha"
    assert store.find("alp").record.session_id == "alpha"
    assert store.find("dinner").record.session_id == "beta"
    with pytest.raises(ConfigError, match=r"several sessions are meant: (alert, alpha|alpha, alert)"):
        store.find("al")
    with pytest.raises(ConfigError, match="no such session"):
        store.find("gamma")


async def test_the_latest_comes_first_and_children_are_apart(store: SessionStore) -> None:
    for number, (name, parent) in enumerate([("old", None), ("new", None), ("kid", "new"), ("grandkid", "kid")]):
        async with store.open(record(name, created=float(number + 1), parent_id=parent)):
            pass
    assert [found.record.session_id for found in store.all()] == ["new", "old"]
    assert len(store.all(children=True)) == 4
    assert store.delete("new") == ["grandkid", "kid", "new"]
    assert [found.record.session_id for found in store.all(children=True)] == ["old"]


def test_the_stores_of_all_projects_are_found(places: Places, tmp_path: Path) -> None:
    assert SessionStore.every(places) == []
    SessionStore.of(places).sessions.mkdir(parents=True)
    assert SessionStore.every(places) == [SessionStore.of(places)]
