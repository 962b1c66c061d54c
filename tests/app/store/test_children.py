"""Child sessions outlive their parents; their secrets do not."""

from __future__ import annotations

import attrs
import pytest

from amplifier.app.store.children import StoredChildren
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import SessionStore
from amplifier_sdk.delegation import ChildRecord, ChildStore
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.messages import MessageDict

HELLO: list[MessageDict] = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."}]


def calling(*names: str) -> MessageDict:
    blocks: list[JSONObject] = [
        {"type": "tool_call", "id": f"c{number}", "name": name, "input": {}} for number, name in enumerate(names)
    ]
    return {"role": "assistant", "content": [*blocks]}


def record(session_id: str = "s1", **changes: object) -> SessionRecord:
    return attrs.evolve(SessionRecord(session_id=session_id, working_dir="/work"), **changes)  # type: ignore[arg-type]  # the test's own fields


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


async def test_what_a_child_said_is_cleaned_as_its_parents_is(store: SessionStore) -> None:
    children = StoredChildren(store=store, plan={}, clean=lambda: lambda message: {**message, "content": "***"})
    await children.save(CHILD)
    assert b"Look." not in (store.folder(CHILD.session_id) / "transcript.jsonl").read_bytes()


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
