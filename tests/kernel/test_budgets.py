"""Limits and budgets: a soft stop first, then a hard one; what children spend counts for their parents."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from decimal import Decimal
from typing import cast

import anyio
import pytest

from amplifier import AmplifierSession
from amplifier_sdk import ChatRequest, ChatResponse
from amplifier_sdk.chat import Usage
from amplifier_sdk.contracts import ContextManager, Hooks, Provider, Tool
from amplifier_sdk.delegation import SpawnOptions
from amplifier_sdk.errors import (
    BudgetExceededError,
    ConfigError,
    LLMError,
    TurnCancelled,
)
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.limits import LimitChanges
from amplifier_sdk.streaming import TurnFinished
from tests.doubles import (
    MemoryContext,
    PlainLoop,
    Recorder,
    ScriptedProvider,
    Worker,
    answer,
    build_session,
    call,
    calling,
    ended_early,
    mounted_context,
    open_call_ids,
)
from tests.kernel.families import family, fresh

Reports = list[MutableMapping[str, object]]
USAGE = Usage(
    input_tokens=6, output_tokens=4, total_tokens=10, cost_usd=Decimal("0.10")
)


def costly(*names: str, text: str = "", usage: Usage | None = USAGE) -> ChatResponse:
    """Make an answer that costs ten tokens and ten cents."""
    calls = [call(name, id=f"{name}-{index}") for index, name in enumerate(names)]
    finish = "tool_calls" if calls else "stop"
    return ChatResponse(
        content=answer(text).content,
        tool_calls=calls or None,
        usage=usage,
        finish_reason=finish,
    )


def limit_reached(session: AmplifierSession) -> str | None:
    """The limit that ended the session's last turn early."""
    assert session.last_turn is not None
    return session.last_turn.limit


# -- one turn


@pytest.mark.parametrize(
    ("limits", "reached"),
    [
        ({"iterations": 3}, "iterations"),
        ({"tool_calls": 2}, "tool_calls"),
        ({"tokens": 20}, "tokens"),
        ({"cost_usd": "0.20"}, "cost_usd"),
        ({"session_tokens": 20}, "session_tokens"),
        ({"session_cost_usd": 0.2}, "session_cost_usd"),
        ({"session_tool_calls": 2}, "session_tool_calls"),
    ],
)
async def test_turn_at_limit_gets_one_last_answer_without_tools(
    limits: Mapping[str, object], reached: str
) -> None:
    provider = ScriptedProvider(
        costly("work"), costly("work"), costly("work", text="So far: half.")
    )
    session = build_session(
        provider=provider, tools=[Worker()], limits=cast("JSONObject", limits)
    )
    async with session, session.stream("go") as events:
        *_, end = [event async for event in events]

        assert end == TurnFinished(
            text=ended_early("So far: half.", reached, limits[reached]),
            usage=USAGE + USAGE + USAGE,
            iterations=3,
            finish_reason="tool_calls",
            tool_calls=2,
            limit=reached,
        )
        assert session.last_turn == end
        assert open_call_ids(mounted_context(session.coordinator).messages) == []
    assert [request.tools is None for request in provider.requests] == [
        False,
        False,
        True,
    ]
    assert "A limit of this turn is reached" in provider.last_messages[-1][1]


async def test_limits_may_be_given_for_one_turn() -> None:
    session = build_session(
        costly("work"),
        costly(text="short"),
        costly("work"),
        costly(text="long"),
        tools=[Worker()],
    )
    async with session:
        assert await session.execute("go", {"tokens": 10}) == ended_early(
            "short", "tokens", 10
        )
        assert limit_reached(session) == "tokens"
        assert await session.execute("go") == "long"
        assert limit_reached(session) is None

        async with session.stream("go", {"iterations": 1}) as events:
            with pytest.raises(Exception, match="has 4 answers"):
                async for _ in events:
                    pass
        assert session.last_turn is None


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"token": 5}, "token: no limit of a turn; did you mean 'tokens'?"),
        ({"zzz": 5}, "zzz: no limit of a turn; known: iterations, tool_calls,"),
        ({"delegation_depth": 5}, "delegation_depth: no limit of a turn"),
        ({"tokens": 0}, "tokens is a whole number above 0; got 0"),
        ({"cost_usd": "much"}, "US dollars above 0, or its decimal text; got 'much'"),
    ],
)
async def test_a_limit_that_a_turn_cannot_have_is_named(
    changes: dict[str, object], problem: str
) -> None:
    async with build_session("fine") as session:
        with pytest.raises(ConfigError) as caught:
            await session.execute("go", cast("LimitChanges", changes))

        assert problem in str(caught.value)
        assert await session.execute("go") == "fine"


async def test_a_loop_that_goes_on_after_its_last_answer_is_stopped() -> None:
    async def insist(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        for _ in range(9):
            await hooks.host.complete(
                providers["scripted"], ChatRequest, context=context
            )
        raise AssertionError

    provider = ScriptedProvider(*[costly(text=f"{n}") for n in range(9)])
    async with build_session(
        provider=provider, loop=PlainLoop(insist), limits={"iterations": 2}
    ) as session:
        with pytest.raises(
            BudgetExceededError,
            match=r"The limit 'iterations' of 2 is reached; raise it",
        ) as caught:
            await session.execute("go")

    assert (caught.value.limit, caught.value.amount, caught.value.partial_text) == (
        "iterations",
        2,
        "01",
    )
    assert len(provider.requests) == 2
    assert session.status.last_error == {
        "type": "BudgetExceededError",
        "message": str(caught.value),
    }


async def test_calls_beside_each_other_do_not_pass_the_limit() -> None:
    worker = Worker()
    session = build_session(
        costly(*["work"] * 6), "end", tools=[worker], limits={"session_tool_calls": 4}
    )
    recorder = Recorder.of(session.coordinator.hooks, "tool:error")
    async with session:
        assert await session.execute("go") == ended_early(
            "end", "session_tool_calls", 4
        )

        results = list(mounted_context(session.coordinator).results.values())
    assert (
        results
        == ["done"] * 4
        + ["Error: Not run: the session's limit of 4 tool calls is reached"] * 2
    )
    assert (
        len(worker.inputs),
        session.spending.tool_calls,
        session.spending.tool_failures,
    ) == (4, 4, 0)
    assert len(recorder.events) == 2


async def test_two_thousand_calls_in_one_answer_stop_at_the_limit() -> None:
    worker = Worker()
    calls = [call("work", id=f"c{number}") for number in range(2000)]
    async with build_session(calling(*calls), "end", tools=[worker]) as session:
        assert await session.execute("go") == ended_early("end", "tool_calls", 200)

        results = list(mounted_context(session.coordinator).results.values())
    assert (
        results
        == ["done"] * 200
        + ["Error: Not run: the turn's limit of 200 tool calls is reached"] * 1800
    )
    assert len(worker.inputs) == 200


async def test_a_session_whose_budget_is_spent_starts_no_turn() -> None:
    async with build_session(
        costly(text="a"), costly(text="b"), limits={"session_tokens": 15}
    ) as session:
        assert await session.execute("go") == "a"
        assert await session.execute("go") == "b"
        with pytest.raises(
            BudgetExceededError, match="The limit 'session_tokens' of 15 is reached"
        ):
            await session.execute("go")

        assert session.last_turn is None
        assert mounted_context(session.coordinator).roles == ["user", "assistant"] * 2
        assert session.spending.usage == USAGE + USAGE


@pytest.mark.parametrize(
    ("usage", "limits", "named"),
    [
        (None, {"tokens": 100}, "tokens"),
        (None, {"session_cost_usd": 1}, "session_cost_usd"),
        (
            Usage(input_tokens=1, output_tokens=1, total_tokens=2),
            {"cost_usd": 1},
            "cost_usd",
        ),
    ],
)
async def test_provider_hiding_its_limit_is_reported_once(
    usage: Usage | None, limits: JSONObject, named: str, reports: Reports
) -> None:
    steps = [costly("work", usage=usage), costly(text="end", usage=usage)]
    async with build_session(*steps, tools=[Worker()], limits=limits) as session:
        await session.execute("go")

    assert [(r["event"], r["provider"], r["limit"]) for r in reports] == [
        ("budget.usage_unknown", "scripted", named)
    ]


# -- children


async def test_what_children_spend_is_in_parents_result_and_at_end() -> None:
    made = family(
        costly("delegate", text="I ask."),
        costly("work"),
        costly(text="found"),
        costly(text="end"),
        tools={"tool-work": fresh(Worker)},
    )
    async with made.session as session, session.stream("go") as events:
        *_, end = [event async for event in events]

    assert isinstance(end, TurnFinished)
    assert (end.usage, end.iterations, end.tool_calls, end.children) == (
        USAGE + USAGE + USAGE + USAGE,
        2,
        2,
        1,
    )
    assert made.results[0].spending["total_tokens"] == 20
    stats = cast("JSONObject", made.events.all("session:end")[-1]["stats"])
    assert (
        stats["total_tokens"],
        stats["cost_usd"],
        stats["children"],
        stats["tool_calls"],
    ) == (40, "0.40", 1, 2)
    assert (session.status.total_input_tokens, session.status.cost_usd) == (
        24,
        Decimal("0.40"),
    )


async def test_a_child_ends_when_its_parents_budget_does() -> None:
    made = family(
        costly("delegate"),
        *[costly("work", text=f"step {n}") for n in range(5)],
        tools={"tool-work": fresh(Worker)},
        limits={"tokens": 30},
    )
    async with made.session as session:
        assert await session.execute("go") == ended_early("step 3", "tokens", 30)

        (result,) = made.results
        assert (result.output, result.limit) == (
            ended_early("step 2", "tokens", 30),
            "tokens",
        )
        assert limit_reached(session) == "tokens"


async def test_the_tool_calls_of_children_count_for_the_parents_turn() -> None:
    made = family(
        costly("delegate"),
        costly("work", "work", "work", "work"),
        costly(text="child"),
        costly(text="end"),
        tools={"tool-work": fresh(Worker)},
        limits={"tool_calls": 4},
    )
    async with made.session as session:
        assert await session.execute("go") == ended_early("end", "tool_calls", 4)

        assert session.spending.tool_calls == 4
    assert (
        "the turn's limit of 4 tool calls is reached"
        in made.provider.requests[2].messages[-2].text
    )


async def test_children_beside_each_other_do_not_spend_one_rest_twice() -> None:
    """Each reserves what a call is known to take: of five children only two find anything left for a second call."""
    calls = 0

    async def by_request(request: ChatRequest) -> ChatResponse:
        nonlocal calls
        calls += 1
        texts = [message.text for message in request.messages]
        await anyio.wait_all_tasks_blocked()
        if texts[0] == "go":
            return costly(*["delegate"] * 5) if len(texts) == 1 else costly(text="end")
        return (
            costly("work") if request.tools is not None else costly(text="wrapped up")
        )

    made = family(
        *[by_request] * 40, tools={"tool-work": fresh(Worker)}, limits={"tokens": 60}
    )
    with anyio.fail_after(5):
        async with made.session as session:
            assert await session.execute("go") == ended_early("end", "tokens", 60)

            assert session.spending.usage is not None
            spent = session.spending.usage.total_tokens
    assert {result.limit for result in made.results} == {"tokens"}
    assert spent <= 60 + 10 * (5 + 1)  # one last answer of each


async def test_a_budget_that_is_spent_makes_no_child(reports: Reports) -> None:
    made = family(costly("delegate"), costly(text="end"), limits={"tokens": 10})
    async with made.session as session:
        assert await session.execute("go") == ended_early("end", "tokens", 10)

    assert made.results == []
    assert (
        "The limit 'tokens' of 10 is reached"
        in made.provider.requests[1].messages[-2].text
    )


async def test_a_child_between_two_turns_spends_from_the_session() -> None:
    made = family(
        costly(text="child"), costly(text="again"), limits={"session_tokens": 20}
    )
    async with made.session as session:
        await session.spawn(agent_name="helper", instruction="x")
        async with session.fork() as child:
            await child.execute("y")
        assert (session.spending.children, session.spending.provider_calls) == (2, 2)
        with pytest.raises(BudgetExceededError, match="session_tokens"):
            await session.spawn(agent_name="helper", instruction="x")
        with pytest.raises(BudgetExceededError, match="session_tokens"):
            await session.execute("go")


async def test_grandchildren_spend_from_all_above_them() -> None:
    made = family(costly(text="a"), costly(text="b"))
    async with (
        made.session as session,
        session.fork() as child,
        child.fork() as grandchild,
    ):
        await grandchild.execute("x")
        await child.execute("y")

        assert (
            grandchild.spending.children,
            child.spending.children,
            session.spending.children,
        ) == (0, 1, 2)
        assert session.spending.usage == USAGE + USAGE


async def test_the_limits_of_a_turn_hold_for_its_children_too() -> None:
    made = family(
        costly("delegate"),
        *[costly("work", text="w")] * 3,
        costly(text="end"),
        tools={"tool-work": fresh(Worker)},
    )
    async with made.session as session:
        await session.execute("go", {"iterations": 3})

    assert made.results[0].limit == "iterations"
    assert made.results[0].spending["provider_calls"] == 3


async def test_a_child_may_be_given_less_than_its_parent_has() -> None:
    options = cast("SpawnOptions", {"limits": {"iterations": 2}})
    made = family(
        costly("delegate"),
        *[costly("work", text="w")] * 2,
        costly(text="end"),
        tools={"tool-work": fresh(Worker)},
        options=options,
    )
    async with made.session as session:
        await session.execute("go", {"iterations": 9})

    assert made.results[0].spending["provider_calls"] == 2


async def test_a_cancelled_turn_has_spent_what_it_has_spent() -> None:
    async def stop(input: JSONObject) -> object:
        await session.cancel()
        return "done"

    session = build_session(
        costly("work"), tools=[Worker(function=stop)], context=MemoryContext()
    )
    async with session:
        with pytest.raises(TurnCancelled):
            await session.execute("go")

        assert session.spending.usage == USAGE
        assert session.status.last_error is None
    assert session.status.status == "cancelled"


@pytest.mark.parametrize("fails", [False, True])
async def test_child_that_is_made_while_model_answers_counts_as_well(
    fails: bool,
) -> None:
    async def ask(request: ChatRequest) -> ChatResponse:
        await made.session.spawn(agent_name="helper", instruction="x")
        if fails:
            raise LLMError("broke off")
        return costly(text="parent")

    made = family(ask, costly(text="child"))
    async with made.session as session:
        if fails:
            with pytest.raises(LLMError, match="broke off"):
                await session.execute("go")
        else:
            assert await session.execute("go") == "parent"

        assert session.spending.usage == (USAGE if fails else USAGE + USAGE)
        assert session.spending.children == 1
