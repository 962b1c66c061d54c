"""Child sessions outlive their parents; their secrets do not."""

from __future__ import annotations

import attrs
import pytest

from amplifier.app.store.children import StoredChildren
from amplifier.app.store.reader import read_history
from amplifier.app.store.states import cut_off_below, resumable, state_of
from amplifier.app.store.store import ProjectSessions
from amplifier_kit.files.locks import LockedError
from amplifier_sdk.delegation import ChildRecord, ChildStore, JournaledChildStore
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.journal import CallStarted, MessageWritten, TurnStarted
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.secret import withhold
from tests.app.store.talks import HELLO, calling, keep, record

CHILD = ChildRecord(
    session_id="s1-0_scout",
    parent_id="s1",
    agent_name="scout",
    plan={
        "providers": [{"module": "p", "config": {"api_key": "s3cret", "model": "m"}}],
        "tools": ["t"],
    },
    messages=[{"role": "system", "content": "Look."}, *HELLO],
    turn_count=1,
    provider_preferences=({"provider": "p", "model": "m*"},),
    request={"tool_inheritance": {"exclude_tools": ["t2"]}},
    spending={"provider_calls": 2, "total_tokens": 20},
)

STORED = attrs.evolve(CHILD, plan=withhold(CHILD.plan))
"""What is loaded: its plan is for those who show it, and is made anew where it is resumed."""

NEW = attrs.evolve(CHILD, messages=CHILD.messages[:1], turn_count=0)


async def test_child_outlives_parent_and_secrets_are_not_stored(
    store: ProjectSessions,
) -> None:
    children = StoredChildren(store=store, working_dir="/work")
    assert isinstance(children, ChildStore)
    await children.save(CHILD)
    folder = store.folder(CHILD.session_id)
    assert b"s3cret" not in b"".join(
        file.read_bytes() for file in folder.iterdir() if file.is_file()
    )
    assert await StoredChildren(store=store).load(CHILD.session_id) == STORED
    more = attrs.evolve(CHILD, turn_count=2, messages=[*CHILD.messages, *HELLO])
    await children.save(more)
    assert await children.load(CHILD.session_id) == attrs.evolve(more, plan=STORED.plan)
    (found,) = store.all(children=True)
    assert found.record.agent_name == "scout"
    assert found.record.turn_count == 2


async def test_what_a_child_said_is_cleaned_as_its_parents_is(
    store: ProjectSessions,
) -> None:
    children = StoredChildren(
        store=store, clean=lambda: lambda message: {**message, "content": "***"}
    )
    await children.save(CHILD)
    assert (
        b"Look."
        not in (store.folder(CHILD.session_id) / "transcript.jsonl").read_bytes()
    )


async def test_secret_asked_of_child_is_not_stored_and_is_named(
    store: ProjectSessions,
) -> None:
    asked: JSONObject = {
        "orchestrator_config": {"hosts": [{"api_key": "s3cret"}]},
        "session_metadata": {"x": 1},
    }
    children = StoredChildren(store=store)
    await children.save(attrs.evolve(CHILD, request=asked))
    assert (
        b"s3cret" not in (store.folder(CHILD.session_id) / "metadata.json").read_bytes()
    )
    with pytest.raises(
        ConfigError,
        match=r"request.orchestrator_config.hosts\[0\].api_key: this secret is not stored",
    ):
        await children.load(CHILD.session_id)


async def test_child_is_there_before_first_turn_and_is_parents_alone(
    store: ProjectSessions,
) -> None:
    children = StoredChildren(store=store, working_dir="/work", durability="sync")
    assert isinstance(children, JournaledChildStore)
    async with children.open(NEW) as journal:
        assert journal.durability == "sync"
        assert store.find(NEW.session_id).record.agent_name == "scout"
        assert state_of(store.folder(NEW.session_id)) == "open"
        with pytest.raises(LockedError):
            await children.load(NEW.session_id)
        await journal.append(TurnStarted(turn_id="t1", prompt="Hello"))
        await children.save(CHILD)
        assert read_history(store.folder(NEW.session_id)).interrupted is None
    assert await children.load(NEW.session_id) == STORED
    (turn,) = read_history(store.folder(NEW.session_id)).turns
    assert [line.message for line in turn] == CHILD.messages


async def test_child_cut_off_in_first_turn_resumes_with_doubts(
    store: ProjectSessions,
) -> None:
    await keep(store, "s1")
    children = StoredChildren(store=store)
    async with children.open(NEW) as journal:
        await journal.append(TurnStarted(turn_id="t1", prompt="Delete it"))
        await journal.append(MessageWritten(turn_id="t1", message=calling("rm", "ls")))
        await journal.append(CallStarted(turn_id="t1", call_id="c0", tool_name="rm"))
    (cut,) = cut_off_below(store, "s1")
    assert (cut.session.record.session_id, cut.turn.in_doubt, cut.turn.not_started) == (
        NEW.session_id,
        ("rm",),
        ("ls",),
    )
    assert NEW.session_id in resumable([cut], "s1")
    assert resumable([cut], "another") == ""
    again = await children.load(NEW.session_id)
    assert again is not None
    assert [message["role"] for message in again.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
    ]
    assert "is not known" in str(again.messages[3]["content"])
    assert again.turn_count == 1
    assert cut_off_below(store, "s1") == ()


async def test_what_is_no_child_is_not_resumed_as_one(store: ProjectSessions) -> None:
    async with store.open(record()):
        pass
    children = StoredChildren(store=store)
    assert await children.load("s1") is None
    assert await children.load("nobody") is None
