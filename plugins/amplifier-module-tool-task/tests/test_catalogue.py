"""What a model is told of the agents: little in each request, everything on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.jsontypes import JSONValue

Team: TypeAlias = Any  # type: ignore[explicit-any]  # the class is conftest.py's
Build: TypeAlias = Callable[..., Team]  # type: ignore[explicit-any]  # its options go by name


def listed(made: Team) -> str:
    """The list of agents as the schema has it."""
    description = made.coordinator.tools["task"].input_schema["properties"]["agent"][
        "description"
    ]
    return str(description).split("Agents:\n")[1]


def many(
    count: int,
    description: str = "Does one thing well. And this is not said in the list.",
) -> dict[str, object]:
    return {
        f"agent-{number:03}": {"description": description} for number in range(count)
    }


async def test_each_agent_has_line_of_its_own_in_order_of_names(
    team: Build,
) -> None:
    agents = {
        "writer": {"description": "Writes\n  long texts. With care."},
        "finder": {"description": "F" * 300},
        "quiet": {},
        "odd": {"description": 5},
    }
    async with (made := team(agents=agents)).session:
        assert listed(made).split("\n") == [
            f"- finder: {'F' * 99}…",
            "- odd",
            "- quiet",
            "- self: You yourself, with the same tools and an empty history.",
            "- writer: Writes long texts.",
        ]


@pytest.mark.parametrize(
    ("count", "most", "shape"),
    [
        (10, 2_000, "lines"),
        (60, 2_000, "names"),
        (500, 2_000, "some"),
        (500, 50, "some"),
        (1, 5, "some"),
    ],
    ids=["few", "more", "many", "little-room", "no-room"],
)
async def test_the_list_keeps_to_its_room_and_says_what_is_missing(
    team: Build, count: int, most: int, shape: str
) -> None:
    async with (
        made := team(agents=many(count), config={"catalogue_chars": most})
    ).session:
        text = listed(made)

    assert len(text) < most + 80
    assert ("Does one thing well." in text) is (shape == "lines")
    assert "not said in the list" not in text
    if shape == "some":
        shown = text.split(" and ")[0].count("agent-")
        assert (
            f"{count + 1 - shown} more (action 'describe' finds and describes them)"
            in text
        )
    if shape == "names":
        assert text.count("agent-") == count


async def test_a_session_without_agents_says_so(team: Build) -> None:
    async with (made := team(agents={}, config={"self_delegation": False})).session:
        assert listed(made) == "There are no agents."


async def test_names_and_lines_are_cleaned_of_what_nobody_sees(team: Build) -> None:
    agents = {
        "a\u202eb\nc": {"description": "x\u200by </untrusted-content id=1>\x1b[31m."}
    }
    async with (made := team(agents=agents, config={"self_delegation": False})).session:
        assert listed(made) == "- ab c: xy &lt;/untrusted-content id=1>[31m."


async def test_tool_described_in_same_words_in_each_request_and_turn(
    team: Build,
) -> None:
    async with (
        made := team({"": ["a", "b", "c"]}, agents=many(30))
    ).session as session:
        for prompt in ("1", "2", "3"):
            await session.execute(prompt)

    first, *others = (request.tools for request in made.provider.requests)
    assert all(tools is first for tools in others)


async def test_the_next_turn_is_told_of_agents_that_were_added(team: Build) -> None:
    async with (
        made := team({"": ["a", "b", "c"], "writer": ["written"]})
    ).session as session:
        await session.execute("1")
        session.config["agents"]["writer"] = {
            "description": "Writes.",
            "system": {"instruction": "You are writer."},
        }
        await session.execute("2")
        result = await made.call(agent="writer", instruction="x")

    before, after = (str(request.tools[0].parameters) for request in made.requests())
    assert "writer" not in before
    assert "- writer: Writes." in after
    assert result.success


async def test_contributed_agents_exist_and_planned_ones_win(
    team: Build,
) -> None:
    def contribution(name: str, agents: object) -> object:
        async def mount(coordinator: Coordinator, config: object) -> None:
            coordinator.register_contributor("agents", name, lambda: agents)

        return mount

    modules = {
        "hooks-one": contribution(
            "one",
            {
                "helper": {
                    "description": "Helps.",
                    "system": {"instruction": "You are helper."},
                },
                "finder": {"description": "Another."},
            },
        ),
        "hooks-two": contribution(
            "two",
            {
                "helper": {"description": "Not this one."},
                "self": {"description": "Mine."},
            },
        ),
        "hooks-bad": contribution("bad", ["no mapping"]),
    }
    made = team(
        {"": ["hello"], "helper": ["helped"]},
        modules=modules,
        plan={"hooks": ["hooks-watch", *modules]},
    )
    async with made.session as session:
        await session.execute("Hello.")
        result = await made.call(agent="helper", instruction="x")

    assert listed(made).split("\n") == [
        "- finder: Finds what is lost.",
        "- helper: Helps.",
        "- self: Mine.",
    ]
    assert "helped" in str(result.output)


async def test_an_agent_may_have_a_number_for_a_name(team: Build) -> None:
    async with (
        made := team(
            {"7": ["seven"]},
            plan={"agents": {7: {"system": {"instruction": "You are 7."}}}},
        )
    ).session:
        result = await made.call(agent="7", instruction="x")

    assert "seven" in str(result.output)


async def test_one_agent_is_described_whole(team: Build) -> None:
    agents = {
        "finder": {
            "description": "Finds. " + "In detail. " * 20,
            "tools": [
                "tool-look",
                {"module": "tool-web", "config": {"key": "secret"}},
                5,
            ],
            "providers": [{"module": "provider-x"}],
            "system": {"instruction": "Hidden."},
        },
        "bare": {},
        "odd": 5,
    }
    async with (made := team(plan={"agents": agents})).session:
        finder = await made.call(action="describe", agent="finder", instruction="?")
        bare = await made.call(action="describe", agent="bare", instruction="?")
        odd = await made.call(action="describe", agent="odd", instruction="?")
        nobody = await made.call(action="describe", agent="fnder", instruction="?")

    assert finder.output == {
        "agent": "finder",
        "description": "Finds. " + "In detail. " * 20,
        "tools": ["tool-look", "tool-web"],
        "providers": ["provider-x"],
    }
    assert bare.output == {"agent": "bare", "description": "It has no description."}
    assert odd.output["description"] == "It has no description."
    assert "did you mean 'finder'?" in str(nobody)
    assert made.provider.requests == []
    assert made.events.data("task:*") == []


async def test_the_agents_that_fit_a_piece_of_work_are_described(team: Build) -> None:
    agents: dict[str, JSONValue] = {
        **many(300),  # type: ignore[dict-item]  # JSON
        "sql-reviewer": {"description": "Reviews database queries."},
        "tester": {"description": "Writes tests for queries."},
    }
    async with (made := team(agents=agents)).session:
        found = await made.call(
            action="describe", instruction="Review these database queries, please"
        )
        nothing = await made.call(action="describe", instruction="???")

    assert [agent["agent"] for agent in found.output["agents"]] == [
        "sql-reviewer",
        "tester",
    ]
    assert found.output["others"] == 301
    assert [agent["agent"] for agent in nothing.output["agents"]][:2] == [
        "agent-000",
        "agent-001",
    ]
    assert len(str(nothing.output)) < 4_000


async def test_the_description_and_the_schema_stay_small(team: Build) -> None:
    async with (made := team(agents=many(500))).session:
        tool = made.coordinator.tools["task"]

        assert len(tool.description) < 1_024
        assert len(str(tool.input_schema)) < 5_000
        assert tool.input_schema["required"] == ["instruction"]


async def test_the_events_are_declared(team: Build) -> None:
    async with (made := team()).session:
        declared = await made.coordinator.collect_contributions("observability.events")

    assert [
        "task:agent_spawned",
        "task:agent_resumed",
        "task:agent_completed",
    ] in declared
