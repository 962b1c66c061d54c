"""How deep, how long and how far agents may go: limits that hold, and say so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

import pytest

from amplifier.testing import MockTool, VirtualClock, answer, call
from amplifier_kit.scripted import Step
from amplifier_sdk.chat import ChatRequest, Usage
from amplifier_sdk.errors import ModuleConfigError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import ToolResult

Team: TypeAlias = Any  # type: ignore[explicit-any]  # the class is conftest.py's
Build: TypeAlias = Callable[..., Team]  # type: ignore[explicit-any]  # its options go by name
Inner: TypeAlias = Callable[[object], str]

DEEPER = answer(call("task", {"agent": "self", "instruction": "Go deeper."}))


async def deeper(request: ChatRequest) -> Step:
    """Delegate to oneself; answer with what came of it."""
    last = request.messages[-1]
    return DEEPER if last.role == "user" else answer(last.text)


@pytest.mark.parametrize(
    ("config", "limits", "generations"),
    [
        ({}, {}, 3),
        ({"max_recursion_depth": 0}, {}, 0),
        ({"max_recursion_depth": 1}, {}, 1),
        ({"max_recursion_depth": 2}, {}, 2),
        ({"max_recursion_depth": 9}, {}, 3),
        ({"max_recursion_depth": 9}, {"delegation_depth": 5}, 5),
        ({}, {"delegation_depth": 1}, 1),
        ({}, {"delegation_depth": 0}, 0),
    ],
    ids=["default", "none", "one", "two", "session", "raised", "lowered", "off"],
)
async def test_work_is_handed_on_so_often_and_no_more(
    team: Build,
    config: Mapping[str, JSONValue],
    limits: Mapping[str, JSONValue],
    generations: int,
) -> None:
    made = team({"": [deeper] * 20}, config=config, limits=limits)
    async with made.session as session:
        said = await session.execute("Begin.")

    assert len(made.coordinators) == 1 + generations
    assert "Work may be handed on no further" in said
    spawned = [data["depth_left"] for data in made.events.data("task:agent_spawned")]
    assert spawned == list(range(generations - 1, -1, -1))


async def test_the_last_generation_is_told_that_the_tool_is_of_no_use(
    team: Build,
) -> None:
    async with (
        made := team({"finder": ["x"]}, config={"max_recursion_depth": 1})
    ).session:
        above = made.coordinator.tools["task"].description
        await made.call(agent="finder", instruction="a")

    (below,) = made.requests("finder")[0].tools
    assert "Hand a piece of work to an agent" in above
    assert below.description.startswith("Of no use in this session")
    assert "finder" not in str(below.parameters)


async def test_an_agent_may_be_kept_from_handing_work_on(team: Build) -> None:
    agents = {"finder": {"session": {"limits": {"delegation_depth": 0}}}}
    made = team(
        {
            "finder": [
                answer(call("task", {"agent": "finder", "instruction": "b"})),
                "ok",
            ]
        },
        agents=agents,
    )
    async with made.session:
        await made.call(agent="finder", instruction="a")

    assert "Work may be handed on no further" in made.said("finder", 1)[-1][1]


async def test_an_agent_counts_how_often_it_stands_below_itself(team: Build) -> None:
    made = team({"": [deeper] * 20})
    async with made.session as session:
        await session.execute("Begin.")

    depths = [
        coordinator.get_capability("self_delegation_depth")
        for coordinator in made.coordinators
    ]
    assert depths == [None, 1, 2, 3]


async def test_a_session_may_be_kept_from_delegating_to_itself(team: Build) -> None:
    async with (made := team(config={"self_delegation": False})).session:
        result = await made.call(agent="self", instruction="a")

    assert "There is no agent 'self'. Agents: finder" in str(result)


CALLS = answer(
    call("count"),
    usage=Usage(
        input_tokens=50, output_tokens=50, total_tokens=100, cost_usd=Decimal("0.01")
    ),
)


@pytest.mark.parametrize(
    ("limits", "own", "limit", "requests"),
    [
        ({"iterations": 3}, {}, "iterations", 3),
        ({"iterations": 3}, {"iterations": 2}, "iterations", 2),
        ({"iterations": 3}, {"iterations": 30}, "iterations", 3),
        ({"iterations": 3}, {"iterations": None}, "iterations", 3),
        ({"tool_calls": 2}, {}, "tool_calls", 3),
        ({"tokens": 250}, {}, "tokens", 4),
        ({"tokens": 250}, {"tokens": 150}, "tokens", 3),
        ({"cost_usd": "0.025"}, {}, "cost_usd", 4),
        ({"cost_usd": 0.025}, {"cost_usd": "0.015"}, "cost_usd", 3),
    ],
    ids=[
        "iterations",
        "own-stricter",
        "own-looser",
        "own-none",
        "calls",
        "tokens",
        "own-tokens",
        "cost",
        "own-cost",
    ],
)
async def test_agent_ends_at_stricter_limit_and_result_names_it(
    team: Build,
    limits: Mapping[str, JSONValue],
    own: Mapping[str, JSONValue],
    limit: str,
    requests: int,
    inner: Inner,
) -> None:
    async def work(request: ChatRequest) -> Step:
        return CALLS if request.tools else "what I know"

    agents = {"finder": {"session": {"limits": dict(own)}} if own else {}}
    made = team(
        {"finder": [work] * 50},
        agents=agents,
        config={"limits": limits},
        tools={"tool-count": lambda: MockTool("count")},
    )
    async with made.session:
        result = await made.call(agent="finder", instruction="a")

    assert result.output["limit"] == limit
    assert inner(result.output["response"]).startswith("what I know")
    assert f"early at the limit {limit!r}" in result.content[0].text
    assert len(made.requests("finder")) == requests


async def test_an_agents_limits_hold_when_it_goes_on(team: Build) -> None:
    async def work(request: ChatRequest) -> Step:
        return CALLS if request.tools else "what I know"

    tools = {"tool-count": lambda: MockTool("count")}
    async with (
        made := team(
            {"finder": [work] * 50}, config={"limits": {"iterations": 2}}, tools=tools
        )
    ).session:
        first = await made.call(agent="finder", instruction="a")
        again = await made.call(session_id=first.output["session_id"], instruction="b")

    assert again.output["limit"] == "iterations"
    assert len(made.requests("finder")) == 4


def test_slow_agent_is_stopped_and_its_text_kept(
    team: Build, inner: Inner, anyio_backend_name: str
) -> None:
    made = team(
        {"finder": [answer("The first half", 50.0), "all of it"]},
        config={"limits": {"wall_time": 30}},
    )

    async def run() -> tuple[ToolResult, ToolResult]:
        async with made.session:
            late = await made.call(agent="finder", instruction="a")
            return late, await made.call(
                session_id=late.error["session_id"], instruction="b"
            )

    result, again = VirtualClock().run(run, backend=anyio_backend_name)

    assert result.error is not None
    assert (
        result.error["message"]
        == "The agent 'finder' was stopped: the limit 'wall_time' of 30 s is reached"
    )
    assert (result.error["type"], result.error["limit"]) == ("limit", "wall_time")
    assert inner(result.error["response"]) == "The first half"
    assert isinstance(again.output, dict)
    assert inner(again.output["response"]) == "all of it"


async def test_what_agents_spend_counts_for_the_session(team: Build) -> None:
    usage = Usage(input_tokens=50, output_tokens=50, total_tokens=100)
    made = team(
        {
            "": [
                answer(*(call("task", {"agent": "finder", "instruction": "a"}),) * 2),
                "done",
            ],
            "finder": [answer("x", usage=usage)] * 2,
        },
        limits={"session_tokens": 150},
    )
    async with made.session as session:
        await session.execute("Begin.")
        assert session.spending.children >= 1
        refused = await made.call(agent="finder", instruction="b")

    assert refused.error["type"] == "limit"
    assert refused.error["limit"] == "session_tokens"
    assert "session_id" not in refused.error


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (
            {"limits": {"iterations": 0}},
            "limits: iterations is a whole number above 0; got 0",
        ),
        (
            {"limits": {"tokens": -1}},
            "limits: tokens is a whole number above 0; got -1",
        ),
        (
            {"limits": {"cost_usd": "much"}},
            "limits: A limit of cost is a number of US dollars above 0",
        ),
        (
            {"limits": {"wall_time": 0}},
            "limits: wall_time is a number of seconds above 0; got 0",
        ),
        (
            {"limits": {"speed": 1}},
            "limits.speed: unknown; the known keys are cost_usd",
        ),
        (
            {"max_recursion_depth": -1},
            "max_recursion_depth: is a whole number from 0; got -1",
        ),
        ({"max_recursion_depth": True}, "max_recursion_depth: "),
        ({"exclude_tools": "task"}, "exclude_tools: "),
        ({"catalogue_chars": 0}, "catalogue_chars: is a whole number above 0; got 0"),
        ({"max_depth": 3}, "max_depth: unknown; did you mean 'max_recursion_depth'?"),
    ],
    ids=[
        "iterations",
        "tokens",
        "cost",
        "time",
        "unknown-limit",
        "depth",
        "bool",
        "text",
        "catalogue",
        "unknown",
    ],
)
async def test_a_configuration_that_does_not_fit_is_refused(
    team: Build, config: Mapping[str, JSONValue], problem: str
) -> None:
    async with team(config=config).session as session:
        (failure,) = session.failures

    assert isinstance(failure, ModuleConfigError)
    assert f"tools[0].config.{problem}" in str(failure)
