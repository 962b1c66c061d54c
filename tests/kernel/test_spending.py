"""What a session spent never falls: not between its turns, not between processes, and nothing is counted twice."""

from __future__ import annotations

from decimal import Decimal
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.kernel.budgets.expenses import Spending
from amplifier_sdk import ChatResponse
from amplifier_sdk.chat import Usage
from amplifier_sdk.delegation import ChildRecord
from amplifier_sdk.errors import BudgetExceededError, ConfigError
from amplifier_sdk.journal import CallFinished, MessageWritten
from amplifier_sdk.jsontypes import JSONValue
from tests.doubles import (
    MemoryJournal,
    ScriptedProvider,
    Worker,
    answer,
    build_session,
    call,
    ended_early,
)
from tests.kernel.families import family, fresh

USAGE = Usage(
    input_tokens=6, output_tokens=4, total_tokens=10, cost_usd=Decimal("0.10")
)


def costly(*names: str, text: str = "") -> ChatResponse:
    """An answer that costs ten tokens and ten cents."""
    calls = [call(name, id=f"{name}-{index}") for index, name in enumerate(names)]
    finish = "tool_calls" if calls else "stop"
    return ChatResponse(
        content=answer(text).content,
        tool_calls=calls or None,
        usage=USAGE,
        finish_reason=finish,
    )


class ChildRecords:
    """A store of children that outlives their parents."""

    def __init__(self) -> None:
        self.records: dict[str, ChildRecord] = {}

    async def save(self, record: ChildRecord) -> None:
        self.records[record.session_id] = record

    async def load(self, session_id: str) -> ChildRecord | None:
        return self.records.get(session_id)


# -- as JSON data

counts = st.integers(min_value=0, max_value=10**12)
parts = st.none() | counts
usages = st.builds(
    Usage,
    input_tokens=counts,
    output_tokens=counts,
    total_tokens=st.integers(min_value=1, max_value=10**12),
    reasoning_tokens=parts,
    cache_read_tokens=parts,
    cache_write_tokens=parts,
    cost_usd=st.none()
    | st.decimals(min_value=0, max_value=10**6, allow_nan=False, allow_infinity=False),
)
spendings = st.builds(
    Spending,
    provider_calls=counts,
    tool_calls=counts,
    tool_failures=counts,
    children=counts,
    usage=st.none() | usages,
)


@given(spendings)
def test_what_was_spent_survives_a_round_trip(spent: Spending) -> None:
    again = Spending.from_dict(spent.to_dict())

    assert again.to_dict() == spent.to_dict()
    assert again.usage == spent.usage


def test_what_is_missing_counts_as_nothing() -> None:
    assert Spending.from_dict({}).to_dict() == Spending().to_dict()
    older = Spending.from_dict({"total_tokens": 7, "cost_usd": "0.5"})
    assert (older.usage, older.tool_calls) == (
        Usage(input_tokens=0, output_tokens=0, total_tokens=7, cost_usd=Decimal("0.5")),
        0,
    )


@pytest.mark.parametrize(
    ("data", "problems"),
    [
        ({"tool_calls": -1}, ["tool_calls: a whole number from 0; got -1"]),
        ({"total_tokens": True}, ["total_tokens: a whole number from 0; got True"]),
        ({"children": "two"}, ["children: a whole number from 0; got 'two'"]),
        (
            {"cost_usd": "much"},
            ["cost_usd: an amount of US dollars as decimal text; got 'much'"],
        ),
        ({"cost_usd": "-1"}, ["cost_usd: an amount of US dollars"]),
        ({"cost_usd": "NaN"}, ["cost_usd: an amount of US dollars"]),
        ({"cost_usd": True}, ["cost_usd: an amount of US dollars"]),
        (
            {"tool_calls": 0.5, "cost_usd": []},
            ["tool_calls: a whole number", "cost_usd: an amount"],
        ),
    ],
)
def test_what_cannot_have_been_spent_is_refused(
    data: dict[str, JSONValue], problems: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        Spending.from_dict(data)

    assert "what a session has spent" in str(caught.value)
    for problem in problems:
        assert problem in str(caught.value)


# -- a session that is resumed


@pytest.mark.parametrize(
    ("limits", "reached"),
    [
        ({"session_tokens": 20}, "session_tokens"),
        ({"session_cost_usd": "0.20"}, "session_cost_usd"),
        ({"session_tool_calls": 2}, "session_tool_calls"),
    ],
)
async def test_the_limits_of_a_session_hold_across_processes(
    limits: dict[str, JSONValue], reached: str
) -> None:
    spent = Spending.from_dict(
        {"provider_calls": 1, "tool_calls": 1, "total_tokens": 10, "cost_usd": "0.10"}
    )
    session = build_session(
        costly("work"),
        costly(text="short"),
        tools=[Worker()],
        limits=limits,
        spent=spent,
    )
    async with session:
        assert await session.execute("go") == ended_early(
            "short", reached, limits[reached]
        )
        with pytest.raises(BudgetExceededError, match=reached):
            await session.execute("go")
        with pytest.raises(BudgetExceededError, match=reached):
            session.fork()

        assert session.spending.tool_calls == 2
        assert session.spending.usage is not None
        assert session.spending.usage.total_tokens == 30
        assert session.status.tool_invocations == 2
    assert spent.to_dict()["total_tokens"] == 10, "what was given is not changed"


async def test_the_limits_of_a_turn_begin_anew() -> None:
    spent = Spending.from_dict(
        {"provider_calls": 50, "tool_calls": 200, "total_tokens": 1000}
    )
    async with build_session(
        costly("work"), costly(text="end"), tools=[Worker()], spent=spent
    ) as session:
        assert await session.execute("go", {"tokens": 100}) == "end"

        assert session.last_turn is not None
        assert (session.last_turn.tool_calls, session.last_turn.usage) == (
            1,
            USAGE + USAGE,
        )


async def test_the_journal_is_given_the_total_with_each_step() -> None:
    journal = MemoryJournal()
    spent = Spending.from_dict({"provider_calls": 3, "total_tokens": 100})
    steps = costly("work"), costly(text="end")
    async with build_session(
        *steps, tools=[Worker()], journal=journal, spent=spent
    ) as session:
        await session.execute("go")

    stored = [
        record
        for record in journal.records
        if isinstance(record, (MessageWritten, CallFinished))
    ]
    assert [
        record.spending and record.spending["total_tokens"] for record in stored
    ] == [
        110,
        110,
        120,
    ]
    assert stored[-1].spending == session.spending.to_dict()


# -- children


async def test_childs_own_limits_hold_across_its_turns_and_processes() -> None:
    shelf = ChildRecords()
    agents = {"helper": {"session": {"limits": {"session_tokens": 25}}}}
    for number in range(2):
        made = family(*[costly(text="x")] * 5, agents=agents)
        made.session.coordinator.register_capability("session.children", shelf)
        made.session.session_id = made.session.coordinator.session_id = "s1"
        async with made.session as session:
            if number == 0:
                result = await session.spawn(
                    agent_name="helper", instruction="a", sub_session_id="c1"
                )
                assert result.spending["total_tokens"] == 10
            result = await session.resume(sub_session_id="c1", instruction="b")
            assert result.spending["total_tokens"] == 10
            if number == 1:
                with pytest.raises(BudgetExceededError, match="'session_tokens' of 25"):
                    await session.resume(sub_session_id="c1", instruction="c")

            assert session.spending.usage is not None
            assert session.spending.usage.total_tokens == 20 - 10 * number, (
                "its parent pays for each turn once"
            )

    assert shelf.records["c1"].spending["total_tokens"] == 30


async def test_a_parent_is_charged_for_a_resumed_child_once() -> None:
    provider = ScriptedProvider(*[costly(text="x")] * 5)
    made = family(
        provider=provider,
        tools={"tool-work": fresh(Worker)},
        limits={"session_tokens": 30},
    )
    async with made.session as session:
        for turn in range(3):
            if turn == 0:
                await session.spawn(
                    agent_name="helper", instruction="a", sub_session_id="c1"
                )
            else:
                await session.resume(sub_session_id="c1", instruction="b")
        with pytest.raises(BudgetExceededError, match="'session_tokens' of 30"):
            await session.resume(sub_session_id="c1", instruction="c")

        assert (
            session.spending.to_dict() | {"children": 3} == session.spending.to_dict()
        )
        assert cast("Usage", session.spending.usage).total_tokens == 30
