"""What a child spent in a turn that was cut off counts for those that it worked for, once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import permutations
from pathlib import Path

import attrs
import pytest

from amplifier.app.store.amounts import added, highest, subtracted
from amplifier.app.store.charges import charge_cut_off
from amplifier.app.store.children import StoredChildren
from amplifier.app.store.journal import EXPECTED
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.repair import repair
from amplifier.app.store.store import ProjectSessions
from amplifier_kit.files.appendlog import AppendLog
from amplifier_kit.files.atomic import write_private
from amplifier_sdk.delegation import ChildRecord
from amplifier_sdk.journal import CallStarted, MessageWritten, TurnStarted
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.stores import LogEntry
from tests.app.store.talks import HELLO, calling, record

SCOUT = ChildRecord(
    session_id="s1-0_scout", parent_id="s1", agent_name="scout", plan={}
)
SCOUT_ID = SCOUT.session_id
NESTED = ChildRecord(
    session_id="s1-0_scout-1_reader",
    parent_id=SCOUT.session_id,
    agent_name="reader",
    plan={},
)
NESTED_ID = NESTED.session_id


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

    def __init__(self, store: ProjectSessions) -> None:
        self.store = store

    async def cut_off(
        self, tokens: int, *children: tuple[ChildRecord, int], ended: int | None = None
    ) -> None:
        """Spend something in a turn of a session, its child, and the child of that."""
        async with self.store.open(record()) as stored:
            self.children = StoredChildren(store=self.store, root=stored)
            await self._begin(stored.journal, f"t{tokens}", spent(tokens, "0.5"))
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

    async def cut_off_alone(self, child: ChildRecord, tokens: int) -> None:
        """Spend something in a turn of a child that works for nobody."""
        async with self.store.open(
            SessionRecord(session_id=child.session_id)
        ) as stored:
            await self._begin(stored.journal, "alone", spent(tokens, "0.25"))

    async def _begin(self, journal: object, turn: str, spending: JSONObject) -> None:
        append = journal.append  # type: ignore[attr-defined]  # any journal
        await append(TurnStarted(turn_id=turn, prompt="Go"))
        message = calling("task")
        await append(MessageWritten(turn_id=turn, message=message, spending=spending))
        await append(CallStarted(turn_id=turn, call_id="c0", tool_name="task"))

    async def resumed(self, session_id: str = "s1") -> Mapping[str, object]:
        """Open a session again as a process does, and return what it has spent."""
        opened = SessionRecord(session_id=session_id)
        async with self.store.open(opened) as stored:
            await charge_cut_off(self.store, stored)
            before = dict(stored.spending)
            await stored.settle()
            assert stored.spending == before
            return before

    async def expect_all(self) -> None:
        """Expect that 100, 40 and 7 tokens count once each."""
        total = await self.resumed()
        assert (total["total_tokens"], total["children"]) == (147, 2)
        assert (total["provider_calls"], total["cost_usd"]) == (3, "1.00")
        child = await self.resumed(SCOUT_ID)
        assert (child["total_tokens"], child["children"]) == (47, 1)
        assert (await self.resumed(NESTED_ID))["total_tokens"] == 7


class Kills:
    """Ends the process, as far as one can see from its files, before it writes for the nth time."""

    left: int | None = None

    def arm(self, left: int | None) -> None:
        self.left = left

    def count(self) -> None:
        if self.left == 0:
            self.left = None
            raise KeyboardInterrupt
        if self.left is not None:
            self.left -= 1


@pytest.fixture
def kills(monkeypatch: pytest.MonkeyPatch) -> Kills:
    counted = Kills()
    append, replace = AppendLog.append, AppendLog.replace

    async def appended(
        log: AppendLog, kind: str, data: JSONValue, *, written: JSONValue = None
    ) -> None:
        counted.count()
        await append(log, kind, data, written=written)

    async def replaced(log: AppendLog, records: Iterable[LogEntry]) -> None:
        counted.count()
        await replace(log, records)

    def written(path: Path, data: bytes) -> None:
        counted.count()
        write_private(path, data)

    monkeypatch.setattr(AppendLog, "append", appended)
    monkeypatch.setattr(AppendLog, "replace", replaced)
    monkeypatch.setattr("amplifier.app.store.writer.write_private", written)
    return counted


@pytest.fixture
def turns(store: ProjectSessions) -> Turns:
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

    monkeypatch.setattr("amplifier.app.store.writer.SessionWriter.store_turn", killed)
    with pytest.raises(KeyboardInterrupt):
        await turns.cut_off(100, (SCOUT, 40), ended=40)
    monkeypatch.undo()
    assert (await turns.resumed())["total_tokens"] == 140


async def test_a_session_that_was_not_cut_off_owes_nothing(
    store: ProjectSessions,
) -> None:
    async with store.open(record()) as stored:
        assert await charge_cut_off(store, stored) == ()
        await stored.journal.note_child("s1-0_scout", "t1", spent(5))
        assert stored.spending["cost_usd"] is None
    async with store.open(record()) as stored:
        assert stored.interrupted is None


async def test_a_child_that_somebody_else_resumes_counts_as_well(turns: Turns) -> None:
    await turns.cut_off(100, (SCOUT, 40))
    async with turns.store.open(record()) as stored:
        child = turns.store.find(SCOUT.session_id)
        (cut,) = await charge_cut_off(turns.store, stored)
        assert cut.session == child
        assert stored.spending["total_tokens"] == 140


async def test_a_turn_that_is_not_ended_is_charged_nothing(turns: Turns) -> None:
    await turns.cut_off(100, (SCOUT, 40))
    async with turns.store.open(record()) as stored:
        await charge_cut_off(turns.store, stored)
    async with turns.store.open(record()) as stored:
        assert stored.spending["total_tokens"] == 100


@pytest.mark.parametrize("order", [*permutations(("s1", SCOUT_ID, NESTED_ID))])
async def test_it_does_not_matter_who_is_resumed_first(
    turns: Turns, order: tuple[str, ...]
) -> None:
    await turns.cut_off(100, (SCOUT, 40), (NESTED, 7))
    for session_id in (*order, *order):
        await turns.resumed(session_id)
    await turns.expect_all()


@pytest.mark.figures  # seconds of work
@pytest.mark.parametrize("order", [*permutations(("s1", SCOUT_ID, NESTED_ID))])
async def test_a_process_that_is_killed_again_charges_nothing_twice(
    order: tuple[str, ...], tmp_path: Path, kills: Kills
) -> None:
    number, was_killed = 0, True
    while was_killed:
        turns = Turns(ProjectSessions(tmp_path / str(number)))
        await turns.cut_off(100, (SCOUT, 40), (NESTED, 7))
        kills.arm(number)
        was_killed = False
        for session_id in order:
            try:
                await turns.resumed(session_id)
            except KeyboardInterrupt:
                was_killed = True
                await turns.resumed(session_id)
        kills.arm(None)
        await turns.expect_all()
        number += 1
    assert number > 12


@pytest.mark.parametrize("settles_first", [True, False])
async def test_both_may_be_resumed_at_once(turns: Turns, settles_first: bool) -> None:
    await turns.cut_off(100, (SCOUT, 40), (NESTED, 7))
    scout = SessionRecord(session_id=SCOUT_ID)
    async with turns.store.open(scout) as child, turns.store.open(record()) as stored:
        await charge_cut_off(turns.store, child)
        if settles_first:
            await child.settle()
        assert await charge_cut_off(turns.store, stored) is not None
        await stored.settle()
        await child.settle()
        assert stored.record.spending["total_tokens"] == 147
    await turns.cut_off(200)
    assert (await turns.resumed())["total_tokens"] == 200
    assert (await turns.resumed(SCOUT_ID))["total_tokens"] == 47


async def test_a_child_that_its_parent_loads_counts_those_that_it_made(
    turns: Turns,
) -> None:
    await turns.cut_off(100, (SCOUT, 40), (NESTED, 7))
    loaded = await StoredChildren(store=turns.store).load(SCOUT_ID)
    assert loaded is not None
    assert loaded.spending["total_tokens"] == 47
    await turns.expect_all()


async def test_a_repair_keeps_what_a_child_owes(turns: Turns) -> None:
    await turns.cut_off(100, (SCOUT, 40), (NESTED, 7))
    assert (await repair(turns.store, SCOUT_ID)).interrupted is not None
    await turns.expect_all()


async def test_a_turn_of_a_child_that_works_for_nobody_is_its_own(turns: Turns) -> None:
    await turns.cut_off(100, (SCOUT, 40))
    await turns.resumed(SCOUT_ID)
    await turns.cut_off_alone(SCOUT, 90)
    assert (await turns.resumed())["total_tokens"] == 140
    assert (await turns.resumed(SCOUT_ID))["total_tokens"] == 90


@pytest.mark.parametrize("is_open", [False, True])
async def test_a_journal_that_does_not_say_whom_it_works_for(
    turns: Turns, is_open: bool
) -> None:
    await turns.cut_off(100, (SCOUT, 0))
    scout = SessionRecord(session_id=SCOUT_ID)
    async with turns.store.open(scout) as child:
        await child.settle()
    journal = turns.store.folder(SCOUT_ID) / "journal.jsonl"
    log = await AppendLog.open(journal, holds=EXPECTED)
    started: JSONObject = {"turn_id": "old", "prompt": "Go"}
    await log.append("turn_started", started)
    said: JSONObject = {"turn_id": "old", "message": {**HELLO[1]}}
    await log.append("message", {**said, "spending": spent(40)})
    if is_open:  # it may be running
        assert (await turns.resumed())["total_tokens"] == 100
    await log.aclose()
    if not is_open:
        assert (await turns.resumed())["total_tokens"] == 140


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
