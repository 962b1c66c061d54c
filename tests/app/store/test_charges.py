"""What a child spent in a turn that was cut off counts for those that it worked for, once."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pytest

from amplifier.app.store.amounts import added, highest, subtracted
from amplifier.app.store.charges import charge_cut_off
from amplifier.app.store.children import StoredChildren
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import SessionStore
from amplifier_sdk.delegation import ChildRecord
from amplifier_sdk.journal import CallStarted, MessageWritten, TurnStarted
from amplifier_sdk.jsontypes import JSONObject
from tests.app.store.talks import calling, record

SCOUT = ChildRecord(
    session_id="s1-0_scout", parent_id="s1", agent_name="scout", plan={}
)
NESTED = ChildRecord(
    session_id="s1-0_scout-1_reader",
    parent_id=SCOUT.session_id,
    agent_name="reader",
    plan={},
)


def spent(tokens: int, cost: str | None = None, **counts: int) -> JSONObject:
    return {
        "provider_calls": 1,
        **counts,
        "input_tokens": tokens,
        "total_tokens": tokens,
        "cost_usd": cost,
    }


class Turns:
    """Sessions whose turns run until the process is killed."""

    def __init__(self, store: SessionStore) -> None:
        self.store = store

    async def cut_off(
        self, tokens: int, *children: tuple[ChildRecord, int], ended: int | None = None
    ) -> None:
        """Spend something in a turn of a session, its child, and the child of that."""
        async with self.store.open(record()) as kept:
            self.children = StoredChildren(store=self.store, root=kept)
            await self._begin(kept.journal, f"t{tokens}", spent(tokens, "0.5"))
            await self._nested(list(children), ended)

    async def _nested(
        self, children: list[tuple[ChildRecord, int]], ended: int | None
    ) -> None:
        if not children:
            return
        (child, tokens), *inner = children
        async with self.children.open(child) as journal:
            await self._begin(journal, f"t-{child.agent_name}", spent(tokens, "0.25"))
            await self._nested(inner, ended)
            if ended is not None:
                done = attrs.evolve(child, turn_count=1, spending=spent(ended, "0.25"))
                await self.children.save(done)

    async def _begin(self, journal: object, turn: str, spending: JSONObject) -> None:
        append = journal.append  # type: ignore[attr-defined]  # any journal
        await append(TurnStarted(turn_id=turn, prompt="Go"))
        message = calling("task")
        await append(MessageWritten(turn_id=turn, message=message, spending=spending))
        await append(CallStarted(turn_id=turn, call_id="c0", tool_name="task"))

    async def resumed(self, session_id: str = "s1") -> Mapping[str, object]:
        """Open a session again as a process does, and return what it has spent."""
        opened = SessionRecord(session_id=session_id)
        async with self.store.open(opened) as kept:
            await charge_cut_off(self.store, kept)
            before = dict(kept.spending)
            await kept.settle()
            assert kept.spending == before
            return before


@pytest.fixture
def turns(store: SessionStore) -> Turns:
    return Turns(store)


async def test_child_that_was_killed_counts_when_parent_is_resumed(
    turns: Turns,
) -> None:
    await turns.cut_off(100, (SCOUT, 40))
    total = await turns.resumed()
    assert (total["total_tokens"], total["provider_calls"]) == (140, 2)
    assert (total["cost_usd"], total["children"]) == ("0.75", 1)


async def test_it_counts_once_however_often_its_parent_is_cut_off(turns: Turns) -> None:
    await turns.cut_off(100, (SCOUT, 40))
    assert (await turns.resumed())["total_tokens"] == 140
    assert (await turns.resumed())["total_tokens"] == 140
    await turns.cut_off(200)
    assert (await turns.resumed())["total_tokens"] == 200
    assert (await turns.resumed(SCOUT.session_id))["total_tokens"] == 40


async def test_those_that_a_child_made_count_for_it_too(turns: Turns) -> None:
    await turns.cut_off(100, (SCOUT, 40), (NESTED, 7))
    total = await turns.resumed()
    assert (total["total_tokens"], total["children"]) == (147, 2)
    child = await turns.resumed(SCOUT.session_id)
    assert (child["total_tokens"], child["children"]) == (47, 1)
    assert (await turns.resumed(NESTED.session_id))["total_tokens"] == 7


async def test_a_child_whose_turn_ended_before_the_kill_counts(turns: Turns) -> None:
    await turns.cut_off(100, (SCOUT, 40), ended=60)
    total = await turns.resumed()
    assert (total["total_tokens"], total["children"]) == (160, 1)


async def test_a_turn_that_its_parent_noted_counts_once(
    turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("amplifier.app.store.writer.KeptSession.store_turn", killed)
    with pytest.raises(KeyboardInterrupt):
        await turns.cut_off(100, (SCOUT, 40), ended=40)
    monkeypatch.undo()
    assert (await turns.resumed())["total_tokens"] == 140


async def test_a_session_that_was_not_cut_off_owes_nothing(
    store: SessionStore,
) -> None:
    async with store.open(record()) as kept:
        assert await charge_cut_off(store, kept) == ()
        await kept.journal.note_child("s1-0_scout", "t1", spent(5))
        assert kept.spending["cost_usd"] is None
    async with store.open(record()) as kept:
        assert kept.interrupted is None


async def test_a_child_that_somebody_else_resumes_counts_as_well(turns: Turns) -> None:
    await turns.cut_off(100, (SCOUT, 40))
    async with turns.store.open(record()) as kept:
        child = turns.store.find(SCOUT.session_id)
        (cut,) = await charge_cut_off(turns.store, kept)
        assert cut.session == child
        assert kept.spending["total_tokens"] == 140


def test_no_amount_falls() -> None:
    old, new = spent(5, "0.10", tool_calls=3), spent(9, None, children=1)
    assert (
        highest(old, new)
        == highest(new, old)
        == {**spent(9, "0.10", tool_calls=3, children=1)}
    )
    assert highest(spent(1, "0.9"), spent(1, "0.10"))["cost_usd"] == "0.9"
    assert added()["total_tokens"] == 0
    assert subtracted(spent(9, "1.0"), spent(5, "1.00")) == {
        **spent(4),
        "provider_calls": 0,
    }
