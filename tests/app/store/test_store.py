"""Sessions are kept whole: what was acknowledged is there again, what was interrupted is told, nobody writes twice."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import attrs
import pytest

from amplifier.app.places import Places
from amplifier.app.store.children import StoredChildren
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import SessionStore
from amplifier_sdk.delegation import ChildRecord, ChildStore
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.history import diagnose
from amplifier_sdk.journal import CallFinished, CallStarted, Journal, MessageWritten, TurnEnded, TurnStarted
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


async def test_an_interrupted_turn_is_told_with_a_result_for_every_call(store: SessionStore) -> None:
    async with store.open(record()) as kept:
        await kept.note_turn(HELLO)
        await kept.journal.append(TurnStarted(turn_id="t2", prompt="Do it"))
        await kept.journal.append(MessageWritten(turn_id="t2", message=calling("a", "b", "c")))
        await kept.journal.append(CallStarted(turn_id="t2", call_id="c0", tool_name="a"))
        await kept.journal.append(CallStarted(turn_id="t2", call_id="c1", tool_name="b"))
        await kept.journal.append(CallFinished(turn_id="t2", call_id="c1", success=True, output="B!"))
    async with store.open(record()) as kept:
        messages = kept.messages
        assert messages[:3] == [*HELLO, {"role": "user", "content": "Do it"}]
        results = {str(message["tool_call_id"]): str(message["content"]) for message in messages[4:]}
        assert results["c1"] == "B!"
        assert "not known" in results["c0"]
        assert "was not started" in results["c2"]
        assert diagnose(messages) == ()
        turn = await kept.settle()
        assert turn is not None
        assert (turn.prompt, turn.in_doubt, turn.not_started) == ("Do it", ("a",), ("c",))
        assert [message.get("metadata") for message in messages[4:]] == [
            {"synthesized": True},
            None,
            {"synthesized": True},
        ]
        assert await kept.settle() is None
    async with store.open(record()) as kept:
        assert kept.messages == messages
        assert kept.interrupted is None


async def test_a_turn_that_is_in_the_transcript_is_not_told_twice(store: SessionStore) -> None:
    async with store.open(record()) as kept:
        await kept.journal.append(TurnStarted(turn_id="t1", prompt="Hello"))
        await kept.journal.append(MessageWritten(turn_id="t1", message=HELLO[1]))
        await kept.journal.append(TurnEnded(turn_id="t1", status="completed"))
        await kept.transcript.store("t1", HELLO)  # and then the program ends
    async with store.open(record()) as kept:
        assert kept.messages == HELLO


async def test_lines_of_a_turn_without_its_end_make_way_for_the_journal(store: SessionStore) -> None:
    more: list[MessageDict] = [{"role": "user", "content": "More"}, {"role": "assistant", "content": "Yes."}]
    async with store.open(record()) as kept:
        await kept.note_turn(HELLO)
        await kept.journal.append(TurnStarted(turn_id="t2", prompt="More"))
        await kept.journal.append(MessageWritten(turn_id="t2", message=more[1]))
        journal = (kept.folder / "journal.jsonl").read_bytes()
        await kept.note_turn([*HELLO, *more])
        path = kept.folder / "transcript.jsonl"
    (path.parent / "journal.jsonl").write_bytes(journal)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]))  # the first message of the turn got there
    async with store.open(record()) as kept:
        assert kept.messages == [*HELLO, *more]
        await kept.settle()
        await kept.note_turn([*HELLO, *more, *HELLO])
    async with store.open(record()) as kept:
        assert kept.messages == [*HELLO, *more, *HELLO]


async def test_a_turn_whose_closing_line_is_lost_is_not(store: SessionStore) -> None:
    async with store.open(record()) as kept:
        await kept.note_turn(HELLO)
        await kept.note_turn([*HELLO, *HELLO])
        path = kept.folder / "transcript.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], *lines[4:-1]]))
    async with store.open(record()) as kept:
        assert kept.messages == [*HELLO, *HELLO]


async def test_a_turn_that_ended_and_was_not_stored_is_stored_and_was_not_interrupted(store: SessionStore) -> None:
    async with store.open(record()) as kept:
        await kept.journal.append(TurnStarted(turn_id="t1", prompt="Hello"))
        await kept.journal.append(MessageWritten(turn_id="t1", message=HELLO[1]))
        await kept.journal.append(TurnEnded(turn_id="t1", status="completed"))
    async with store.open(record()) as kept:
        assert await kept.settle() is None
        assert kept.messages == HELLO


async def test_turns_that_could_not_be_stored_are_all_told(store: SessionStore) -> None:
    async with store.open(record()) as kept:
        for turn in ("t1", "t2"):
            await kept.journal.append(TurnStarted(turn_id=turn, prompt="Hello"))
            await kept.journal.append(MessageWritten(turn_id=turn, message=HELLO[1]))
    async with store.open(record()) as kept:
        assert kept.messages == [*HELLO, *HELLO]
        settled = await kept.settle()
        assert settled is not None
        assert settled.turn_id == "t2"


async def test_one_process_writes_a_session(store: SessionStore) -> None:
    async with store.open(record()):
        with pytest.raises(LockedError, match="this process itself"):
            async with store.open(record()):
                raise AssertionError
        with pytest.raises(LockedError):
            store.delete("s1")
    assert store.delete("s1") == ["s1"]
    assert store.all() == []


async def test_files_are_their_owners_alone(store: SessionStore) -> None:
    async with store.open(record()) as kept:
        await kept.note_turn(HELLO)
        assert stat.S_IMODE(kept.folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in kept.folder.iterdir()} == {0o600}


HOSTILE = ["../x", "..", "", "/etc/passwd", "a/b", "a\x00b", "CON", "x" * 300, "ü", "~", "-rf", "a\nb", "%2e%2e", "."]


@pytest.mark.parametrize("session_id", HOSTILE)
async def test_no_id_leads_elsewhere(store: SessionStore, session_id: str) -> None:
    async with store.open(record(session_id)) as kept:
        assert kept.folder.parent == store.sessions
        assert kept.folder.resolve().parent == store.sessions.resolve()
    assert store.find(session_id).record.session_id == session_id if session_id else True


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


async def test_a_damaged_record_hides_no_other_session(store: SessionStore) -> None:
    for name in ("good", "bad", "newer"):
        async with store.open(record(name)):
            pass
    (store.folder("bad") / "metadata.json").write_text("{")
    newer = json.loads((store.folder("newer") / "metadata.json").read_text())
    (store.folder("newer") / "metadata.json").write_text(json.dumps({**newer, "version": 99}))
    (store.sessions / "log-only").mkdir()
    assert [found.record.session_id for found in store.all()] == ["good"]
    assert {folder.name for folder, _ in store.damaged()} == {"bad", "newer"}
    with pytest.raises(ConfigError, match="Update amplifier"):
        async with store.open(record("newer")):
            raise AssertionError


async def test_a_damaged_line_loses_itself_alone(store: SessionStore) -> None:
    async with store.open(record()) as kept:
        for _ in range(3):
            await kept.note_turn([*kept.messages, *HELLO])
        path = kept.folder / "transcript.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"Hi", b"Ho")
    path.write_bytes(b"".join(lines))
    async with store.open(record()) as kept:
        assert len(kept.damage) == 1
        assert len(kept.messages) == 5


async def test_what_is_written_can_be_cleaned(store: SessionStore) -> None:
    def clean(data: JSONObject) -> JSONObject:
        written: JSONObject = json.loads(json.dumps(data).replace("s3cret", "***"))
        return written

    said: list[MessageDict] = [{"role": "user", "content": "s3cret"}]
    async with store.open(record()) as kept:
        kept.clean_with(clean)
        await kept.journal.append(TurnStarted(turn_id="t1", prompt="s3cret"))
        assert b"s3cret" not in b"".join(file.read_bytes() for file in kept.folder.iterdir())
        await kept.note_turn(said)
        assert b"s3cret" not in b"".join(file.read_bytes() for file in kept.folder.iterdir())
        assert kept.messages == said


# -- children


CHILD = ChildRecord(
    session_id="s1-0_scout",
    parent_id="s1",
    agent_name="scout",
    plan={"providers": [{"module": "p", "config": {"api_key": "s3cret", "model": "m"}}], "tools": ["t"]},
    messages=[{"role": "system", "content": "Look."}, *HELLO],
    turn_count=1,
    provider_preferences=({"provider": "p", "model": "m*"},),
)


async def test_a_child_outlives_its_parent_and_its_secrets_are_not_stored(store: SessionStore) -> None:
    children = StoredChildren(store=store, plan=CHILD.plan, working_dir="/work")
    assert isinstance(children, ChildStore)
    await children.save(CHILD)
    folder = store.folder(CHILD.session_id)
    assert b"s3cret" not in b"".join(file.read_bytes() for file in folder.iterdir() if file.is_file())
    assert await StoredChildren(store=store, plan=CHILD.plan).load(CHILD.session_id) == CHILD
    more = attrs.evolve(CHILD, turn_count=2, messages=[*CHILD.messages, *HELLO])
    await children.save(more)
    assert await children.load(CHILD.session_id) == more
    (found,) = store.children("s1")
    assert found.record.agent_name == "scout"
    assert found.record.turn_count == 2


async def test_a_secret_that_its_parent_lost_is_named(store: SessionStore) -> None:
    await StoredChildren(store=store, plan=CHILD.plan).save(CHILD)
    with pytest.raises(ConfigError, match=r"\.providers\[0\]\.config\.api_key: this secret is not stored"):
        await StoredChildren(store=store, plan={}).load(CHILD.session_id)


async def test_what_is_no_child_is_not_resumed_as_one(store: SessionStore) -> None:
    async with store.open(record()):
        pass
    children = StoredChildren(store=store, plan={})
    assert await children.load("s1") is None
    assert await children.load("nobody") is None


def test_the_stores_of_all_projects_are_found(places: Places, tmp_path: Path) -> None:
    assert SessionStore.every(places) == []
    SessionStore.of(places).sessions.mkdir(parents=True)
    assert SessionStore.every(places) == [SessionStore.of(places)]
