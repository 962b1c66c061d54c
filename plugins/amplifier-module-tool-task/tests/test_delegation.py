"""Agents begin, answer, go on, and fail in words that a model can act on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import anyio
import pytest

from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier.testing import MockTool, VirtualClock, answer, call
from amplifier_kit.scripted import Step
from amplifier_module_tool_task import mount
from amplifier_sdk.chat import ChatRequest
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.delegation import ChildRecord
from amplifier_sdk.errors import ContextLengthError, LLMError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import HookResult, ToolResult

Team: TypeAlias = Any  # type: ignore[explicit-any]  # the class is conftest.py's
Build: TypeAlias = Callable[..., Team]  # type: ignore[explicit-any]  # its options go by name
Inner: TypeAlias = Callable[[object], str]


def delegating(**arguments: JSONValue) -> Step:
    return answer(
        call("task", {"agent": "finder", "instruction": "Find it.", **arguments})
    )


async def test_agent_does_piece_of_turn_and_model_reads_its_answer(
    team: Build, inner: Inner
) -> None:
    made = team(
        {"": [delegating(), "It is blue."], "finder": ["The door is blue.\nAll of it."]}
    )
    async with made.session as session:
        assert await session.execute("Which colour?") == "It is blue."

        assert made.said("finder") == [("user", "Find it.")]
        role, text = made.said(number=1)[-1]
        answered, line = text.rsplit("\n\n", 1)
        assert role == "tool"
        assert inner(answered) == "The door is blue.\nAll of it."
        assert line.startswith(f"[session_id: {session.session_id}-")
        assert line.endswith("_finder]")
        assert session.spending.children == 1


async def test_a_program_finds_the_parts_of_a_result_by_name(
    team: Build, inner: Inner
) -> None:
    async with (made := team({"finder": ["found"]})).session:
        result = await made.call(agent="finder", instruction="x")

    assert isinstance(result.output, dict)
    assert list(result.output) == ["response", "session_id", "trust"]
    assert inner(result.output["response"]) == "found"
    assert result.output["trust"] == "untrusted"


async def test_an_agent_goes_on_with_what_it_knows(team: Build, inner: Inner) -> None:
    async with (made := team({"finder": ["one", "two"]})).session:
        first = await made.call(agent="finder", instruction="a")
        assert isinstance(first.output, dict)
        second = await made.call(session_id=first.output["session_id"], instruction="b")

    assert isinstance(second.output, dict)
    assert inner(second.output["response"]) == "two"
    assert second.output["session_id"] == first.output["session_id"]
    assert made.said("finder", 1) == [
        ("user", "a"),
        ("assistant", "one"),
        ("user", "b"),
    ]


async def test_the_session_of_no_agent_is_named_with_the_nearest_one(
    team: Build,
) -> None:
    async with (made := team({"finder": ["one"]})).session:
        nobody = await made.call(session_id="s9", instruction="b")
        first = await made.call(agent="finder", instruction="a")
        assert isinstance(first.output, dict)
        known = str(first.output["session_id"])
        cut = await made.call(session_id=known[:-3], instruction="b")

    assert str(nobody) == (
        "Error: No agent of this session has the session 's9'; it has none. Leave session_id out to begin anew"
    )
    assert f"did you mean {known!r}?" in str(cut)


async def test_an_agent_of_another_session_is_not_found(team: Build) -> None:
    class Shelf:
        def __init__(self) -> None:
            self.records: dict[str, ChildRecord] = {}

        async def save(self, record: ChildRecord, /) -> None:
            self.records[record.session_id] = record

        async def load(self, session_id: str, /) -> ChildRecord | None:
            return self.records.get(session_id)

    shelf = Shelf()
    mine, others = team({"finder": ["the treasure"]}), team()
    for made in (mine, others):
        made.coordinator.register_capability("session.children", shelf)
    async with mine.session, others.session:
        first = await mine.call(agent="finder", instruction="a")
        assert isinstance(first.output, dict)
        stolen = await others.call(
            session_id=first.output["session_id"], instruction="b"
        )

    assert stolen.error is not None
    assert stolen.error["type"] == "unknown_session"
    assert "treasure" not in str(stolen)
    assert others.provider.requests == []


async def test_an_agent_that_is_at_work_is_not_asked_twice_at_once(team: Build) -> None:
    begun, end = anyio.Event(), anyio.Event()

    async def wait(request: ChatRequest) -> Step:
        begun.set()
        await end.wait()
        return "late"

    async with (made := team({"finder": ["one", wait]})).session:
        first = await made.call(agent="finder", instruction="a")
        assert isinstance(first.output, dict)
        child = first.output["session_id"]
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(lambda: made.call(session_id=child, instruction="b"))
                await begun.wait()
                busy = await made.call(session_id=child, instruction="c")
                end.set()

    assert "SessionBusyError" in str(busy)
    assert "wait for it" in str(busy)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            {"instruction": "x"},
            "Name the agent that shall do it, or the session_id of one that shall go on",
        ),
        ({"instruction": " \n", "agent": "finder"}, "The instruction is empty"),
        (
            {"instruction": "x", "agent": "findr"},
            "no agent 'findr'; did you mean 'finder'? Agents: finder, self",
        ),
        (
            {"instruction": "x", "agent": "zz"},
            "There is no agent 'zz'. Agents: finder, self",
        ),
        ({"instruction": "x", "agent": "x" * 10**6}, "There is no agent 'xxx"),
        (
            {
                "instruction": "x",
                "session_id": "s",
                "inherit_context": "all",
                "provider_preferences": [{"provider": "a", "model": "b"}],
            },
            "inherit_context and provider_preferences cannot be given to a resumed session",
        ),
    ],
    ids=["no-agent", "no-instruction", "near", "far", "huge", "resumed"],
)
async def test_what_cannot_be_done_is_said_in_few_words(
    team: Build, arguments: Mapping[str, JSONValue], problem: str
) -> None:
    async with (made := team()).session:
        result = await made.call(**arguments)

    assert not result.success
    assert problem in str(result)
    assert len(str(result)) < 1_000
    assert made.events.data("task:*") == []


async def test_a_session_is_not_continued_as_another_agent(team: Build) -> None:
    async with (
        made := team({"finder": ["one"]}, agents={"finder": {}, "writer": {}})
    ).session:
        first = await made.call(agent="finder", instruction="a")
        assert isinstance(first.output, dict)
        result = await made.call(
            agent="writer", session_id=first.output["session_id"], instruction="b"
        )

    assert "is that of 'finder', not of 'writer'" in str(result)


async def test_an_agent_that_fails_says_why_and_can_be_asked_again(
    team: Build, inner: Inner
) -> None:
    async with (
        made := team({"finder": [ContextLengthError("too long"), "now it works"]})
    ).session:
        failed = await made.call(agent="finder", instruction="a")
        assert failed.error is not None
        again = await made.call(session_id=failed.error["session_id"], instruction="b")

    assert (
        failed.error["message"]
        == "The agent 'finder' failed: ContextLengthError: too long"
    )
    assert failed.error["type"] == "agent_failed"
    assert isinstance(again.output, dict)
    assert inner(again.output["response"]) == "now it works"
    assert made.events.data("tool:error") == []


async def test_agent_that_cannot_start_leaves_no_session(
    team: Build,
) -> None:
    agents = {
        "broken": {"tools": [{"module": 5}]},
        "odd": 7,
        "session": {"session": 5},
        "limits": {"session": {"limits": 5}},
        "number": {"session": {"limits": {"iterations": "many"}}},
    }
    async with (
        made := team(plan={"agents": agents}, config={"limits": {"iterations": 3}})
    ).session:
        broken = await made.call(agent="broken", instruction="a")
        odd = await made.call(agent="odd", instruction="a")
        others = [
            await made.call(agent=name, instruction="a")
            for name in ("session", "limits", "number")
        ]

    assert broken.error is not None
    assert odd.error is not None
    assert "tools[1].module" in str(broken)
    assert "an agent is a partial mount plan; got int" in str(odd)
    assert [str(other) for other in others if "session" not in str(other)] == []
    assert all(
        "ConfigError" in str(other) and "session_id" not in other.error
        for other in (broken, odd, *others)
    )


async def test_an_error_without_words_is_named(team: Build) -> None:
    async with (made := team({"finder": [LLMError("")]})).session:
        result = await made.call(agent="finder", instruction="a")

    assert "The agent 'finder' failed: LLMError" in str(result)


@pytest.mark.parametrize("text", ["", "  "], ids=["nothing", "blanks"])
async def test_an_empty_answer_is_said_to_be_one(
    team: Build, inner: Inner, text: str
) -> None:
    async with (made := team({"finder": [text]})).session:
        result = await made.call(agent="finder", instruction="a")

    assert isinstance(result.output, dict)
    assert inner(result.output["response"]) == "(an empty answer)"


async def test_of_a_huge_answer_the_head_and_the_tail_are_kept(
    team: Build, inner: Inner
) -> None:
    huge = "A" * 500_000 + "Z" * 500_000
    async with (
        made := team({"finder": [huge]}, config={"max_answer_chars": 300})
    ).session:
        result = await made.call(agent="finder", instruction="a")

    assert isinstance(result.output, dict)
    head, note, tail = inner(result.output["response"]).split("\n")
    assert (head, tail) == ("A" * 200, "Z" * 100)
    assert note == (
        "[999,700 of 1,000,000 characters are left out here; resume the agent's session to ask for them]"
    )


async def test_agents_of_one_answer_work_beside_each_other(
    team: Build, inner: Inner
) -> None:
    at_work, most, together = 0, 0, anyio.Event()

    async def work(request: ChatRequest) -> Step:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        if most == 3:
            together.set()
        await together.wait()
        at_work -= 1
        return request.messages[-1].text.upper()

    async with (
        made := team({"finder": [work] * 5}, limits={"parallel_children": 3})
    ).session:
        with anyio.fail_after(5):
            results = await made.call_all(
                *(
                    call("task", {"agent": "finder", "instruction": word})
                    for word in ("a", "b", "c", "d", "e")
                )
            )

    assert most == 3
    assert [inner(result.output["response"]) for result in results] == [
        "A",
        "B",
        "C",
        "D",
        "E",
    ]
    assert made.session.spending.children == 5


async def test_the_tools_that_an_agent_gets_can_be_chosen(team: Build) -> None:
    tools = {
        "tool-look": lambda: MockTool("look"),
        "tool-write": lambda: MockTool("write"),
    }
    agents = {"finder": {}, "writer": {"tools": ["tool-write"]}}
    for config, finder, writer in (
        ({}, ["task", "look", "write"], ["task", "look", "write"]),
        ({"exclude_tools": ["task", "write"]}, ["look"], ["look", "write"]),
        ({"inherit_tools": ["tool-l*"]}, ["look"], ["look", "write"]),
        (
            {"inherit_tools": ["*"], "exclude_tools": ["tool-look"]},
            ["task", "write"],
            ["task", "write"],
        ),
    ):
        made = team(
            {"finder": ["x"], "writer": ["x"]},
            agents=agents,
            config=config,
            tools=tools,
        )
        async with made.session:
            for agent, expected in (("finder", finder), ("writer", writer)):
                await made.call(agent=agent, instruction="a")
                assert [
                    tool.name for tool in made.requests(agent)[0].tools or ()
                ] == expected


async def test_the_hooks_that_an_agent_gets_can_be_chosen(team: Build) -> None:
    for config, there in (
        ({}, True),
        ({"exclude_hooks": ["note"]}, False),
        ({"inherit_hooks": ["hooks-watch"]}, False),
        ({"inherit_hooks": ["*"], "exclude_hooks": ["hooks-watch"]}, True),
    ):
        heard: list[str] = []

        async def note(
            coordinator: Coordinator, config: object, heard: list[str] = heard
        ) -> None:
            heard.append(coordinator.session_id)
            coordinator.hooks.register("tool:post", lambda *_: None, decides=False)

        made = team(
            {"finder": ["x"]},
            config=config,
            modules={"hooks-note": note},
            plan={"hooks": ["hooks-watch", "hooks-note"]},
        )
        async with made.session:
            await made.call(agent="finder", instruction="a")

        assert (len(heard) == 2) is there


async def test_a_model_chooses_the_agents_provider_and_model(team: Build) -> None:
    preferences = [
        {"provider": "none", "model": "x"},
        {"provider": "script*", "model": "small-1"},
    ]
    async with (made := team({"finder": ["x"]})).session:
        await made.call(
            agent="finder", instruction="a", provider_preferences=preferences
        )
    async with (strict := team(config={"provider_preferences": False})).session:
        offered = strict.coordinator.tools["task"].input_schema["properties"]
        result = await strict.call(
            agent="finder", instruction="a", provider_preferences=preferences
        )

    assert made.requests("finder")[0].model == "small-1"
    assert "provider_preferences" not in offered
    assert not result.success


async def test_a_model_chooses_among_the_roles_that_the_loop_knows(team: Build) -> None:
    roles = {
        "fast": [{"provider": "scripted", "model": "tiny"}],
        "deep": [{"provider": "scripted", "model": "huge"}],
    }
    plan = {"orchestrator": {"config": {"roles": roles}}}

    async def mount_loop(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        from amplifier.testing import MockOrchestrator
        from amplifier_sdk import LoopConfig
        from amplifier_sdk.configuration import read_config

        loop = MockOrchestrator()
        loop.config = read_config(LoopConfig, config, subject="the loop")
        return loop

    made = team({"finder": ["x"]}, plan=plan, modules={"loop": mount_loop})
    async with made.session:
        schema = made.coordinator.tools["task"].input_schema
        await made.call(agent="finder", instruction="a", model_role="deep")
        wrong = await made.call(agent="finder", instruction="a", model_role="none")
        going_on = await made.call(session_id="s", instruction="a", model_role="fast")
    async with (plain := team()).session:
        without = plain.coordinator.tools["task"].input_schema

    assert schema["properties"]["model_role"]["enum"] == ["fast", "deep"]
    assert made.requests("finder")[0].model == "huge"
    assert "model_role" in str(wrong)
    assert "model_role cannot be given" in str(going_on)
    assert "model_role" not in without["properties"]


async def test_an_application_may_run_agents_in_its_own_way(
    team: Build, inner: Inner
) -> None:
    asked: list[dict[str, object]] = []

    async def spawn(
        agent_name: str,
        instruction: str,
        parent_session: object,
        agent_configs: object,
        sub_session_id: str,
    ) -> dict[str, object]:
        asked.append({"parent": parent_session, "agents": agent_configs})
        return {
            "output": "from elsewhere",
            "session_id": "far",
            "spending": {"usd": "1"},
            "turn_count": 3,
        }

    async def resume(sub_session_id: str, instruction: str) -> dict[str, object]:
        return {
            "output": instruction,
            "session_id": sub_session_id,
            "status": "cancelled",
            "limit": 5,
        }

    made = team(limits={"tool_timeout": 60})
    made.coordinator.register_capability("session.spawn", spawn)
    made.coordinator.register_capability("session.resume", resume)
    async with made.session:
        first = await made.call(agent="finder", instruction="a")
        again = await made.call(session_id="far", instruction="b")

    assert isinstance(first.output, dict)
    assert inner(first.output["response"]) == "from elsewhere"
    assert asked[0]["parent"] is made.session
    assert {"finder", "self"} == set(asked[0]["agents"])  # type: ignore[call-overload]  # a mapping
    assert again.error is not None
    assert (again.error["type"], again.error["session_id"]) == ("cancelled", "far")


async def test_what_is_no_result_of_a_session_is_named(team: Build) -> None:
    async def spawn(**options: object) -> object:
        return {"text": "x"}

    made = team()
    made.coordinator.register_capability("session.spawn", spawn)
    async with made.session:
        result = await made.call(agent="finder", instruction="a")

    assert "a mapping with 'output' and 'session_id'; got {'text': 'x'}" in str(result)


async def test_the_tool_needs_no_session_of_its_own(inner: Inner) -> None:
    async def spawn(
        agent_name: str, instruction: str, **options: object
    ) -> dict[str, object]:
        assert "parent_session" not in options
        return {"output": instruction.upper(), "session_id": "far"}

    coordinator = ModuleCoordinator()
    coordinator.register_capability("session.spawn", spawn)
    tool = await mount(coordinator, {})
    result = await tool.execute(
        {"agent": "self", "instruction": "go", "inherit_context": "all"}
    )

    assert isinstance(result.output, dict)
    assert inner(result.output["response"]) == "GO"


async def test_a_session_without_the_capability_says_so(team: Build) -> None:
    made = team()
    made.coordinator.register_capability("session.spawn", None)
    async with made.session:
        result = await made.call(agent="finder", instruction="a")

    assert "it has no capability 'session.spawn'" in str(result)


def test_a_call_lasts_as_long_as_a_turn_may(
    team: Build, anyio_backend_name: str
) -> None:
    async def slow(**options: object) -> dict[str, object]:
        await anyio.sleep(1_000)
        return {"output": "slow", "session_id": "far"}

    made = team(limits={"tool_timeout": 1, "wall_time": 3_000})
    made.coordinator.register_capability("session.spawn", slow)

    async def run() -> ToolResult:
        async with made.session:
            result: ToolResult = await made.call(agent="finder", instruction="a")
            return result

    assert VirtualClock().run(run, backend=anyio_backend_name).success


async def test_so_many_sessions_are_remembered_for_hints(team: Build) -> None:
    async def spawn(sub_session_id: str, **_: object) -> dict[str, object]:
        return {"output": "x", "session_id": sub_session_id}

    made = team(session_id="s", limits={"tool_calls": 1_000})
    made.coordinator.register_capability("session.spawn", spawn)
    async with made.session:
        results = [await made.call(agent="finder", instruction="a") for _ in range(201)]
        first, last = (
            str(result.output["session_id"]) for result in (results[0], results[-1])
        )
        forgotten = await made.call(session_id=first, instruction="b")
        remembered = await made.call(agent="self", session_id=last, instruction="b")

    assert first not in str(forgotten).partition("it has")[2]
    assert "is that of 'finder'" in str(remembered)


async def test_no_configuration_takes_a_guard_from_an_agent(team: Build) -> None:
    from amplifier_sdk.effects import effects_of

    async def mount_guard(coordinator: Coordinator, config: object) -> None:
        coordinator.hooks.register("tool:pre", lambda *_: HookResult.deny("not here"))

    configs: list[dict[str, JSONValue]] = [
        {"exclude_hooks": ["guard", "hooks-*"]},
        {"inherit_hooks": []},
    ]
    for config in configs:
        agents = {"finder": {"hooks": None}}
        made = team(
            {"finder": [answer(call("look")), "x"]},
            agents=agents,
            config=config,
            tools={"tool-look": lambda: MockTool("look")},
            modules={"hooks-guard": mount_guard},
            plan={"hooks": ["hooks-watch", "hooks-guard"]},
        )
        async with made.session as session:
            assert effects_of(made.coordinator.tools["task"]) == frozenset({"read"})
            await session.spawn(
                agent_name="finder", instruction="a", hook_inheritance=config
            )

        assert "not here" in made.said("finder", 1)[-1][1]


async def test_an_agent_that_is_resumed_is_what_it_would_be_by_now(team: Build) -> None:
    """The plan of the session and its agents, and the tool's own rules, hold as they are when it is resumed."""
    tools = {
        "tool-look": lambda: MockTool("look"),
        "tool-write": lambda: MockTool("write"),
    }
    config: dict[str, JSONValue] = {}
    async with (
        made := team({"finder": ["a", "b", "c"]}, config=config, tools=tools)
    ).session as session:
        first = await made.call(agent="finder", instruction="a")
        session_id = first.output["session_id"]
        agents = cast("dict[str, object]", session.config["agents"])
        agents["finder"] = {"session": {"limits": {"delegation_depth": 0}}}
        await made.call(session_id=session_id, instruction="b")
        del agents["finder"]
        gone = await made.call(session_id=session_id, instruction="c")

    assert "Of no use in this session" in str(made.requests("finder")[1].tools)
    assert gone.error is not None
    assert "agents.finder: no such agent" in str(gone.error["message"])
    assert "cannot be resumed" in str(gone.error["message"])
    assert len(made.requests("finder")) == 2
