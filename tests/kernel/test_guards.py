"""Every session below another is guarded at least as strictly as that is now, whatever agents and models ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from amplifier import AmplifierSession
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.delegation import (
    ChildRecord,
    ChildResult,
    HookInheritance,
    SpawnOptions,
)
from amplifier_sdk.errors import BudgetExceededError, ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.limits import LimitChanges
from amplifier_sdk.restrictions import intersection, subset
from amplifier_sdk.results import HookResult
from tests.doubles import Worker, call, calling
from tests.kernel.families import Family, family, fresh

Configs = list[Mapping[str, JSONValue]]


class ChildRecords:
    """A store of children that outlives their parents, as in another process."""

    def __init__(self) -> None:
        self.records: dict[str, ChildRecord] = {}

    async def save(self, record: ChildRecord) -> None:
        self.records[record.session_id] = record

    async def load(self, session_id: str) -> ChildRecord | None:
        return self.records.get(session_id)


def denying(tools: Sequence[str]) -> object:
    """A hook module that denies some tools."""

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        def guard(event: str, data: dict[str, object]) -> HookResult | None:
            return HookResult.deny("not here") if data["tool_name"] in tools else None

        coordinator.hooks.register("tool:pre", guard)

    return mount


def noting(
    configs: Configs,
    agent_config: Mapping[str, object] | None = None,
    *,
    tool: str | None = None,
) -> object:
    """A module that notes its configurations; with a name it is a tool, else a hook that guards."""

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        configs.append(config)
        return None if tool is None else Worker(tool)

    return SimpleNamespace(mount=mount, agent_config=agent_config)


def in_another_process(
    shelf: ChildRecords, *steps: object, **options: object
) -> Family:
    made = family(*steps, **options)  # type: ignore[arg-type]  # as given
    made.session.session_id = made.session.coordinator.session_id = "s1"
    made.session.coordinator.register_capability("session.children", shelf)
    return made


async def spawn(session: AmplifierSession, **options: object) -> ChildResult:
    """Spawn the helper with options as a module writes them."""
    given = {"agent_name": "helper", "instruction": "x", **options}
    return await session.spawn(**given)  # type: ignore[arg-type]  # as given


# -- resumed


async def resumed(worker: Worker, **options: object) -> Family:
    """Begin a child under a lenient plan, and resume it under another one, in which it calls `work`."""
    shelf = ChildRecords()
    options.setdefault("tools", {"tool-work": fresh(lambda: worker)})
    before = in_another_process(
        shelf, "one", tools={"tool-work": fresh(lambda: worker)}
    )
    async with before.session as session:
        await session.spawn(agent_name="helper", instruction="x", sub_session_id="c1")
    now = in_another_process(shelf, calling(call("work")), "two", "three", **options)
    async with now.session as session:
        now.results.append(await session.resume(sub_session_id="c1", instruction="y"))
    return now


async def test_child_that_is_resumed_has_hooks_that_parent_has_by_now() -> None:
    worker = Worker()
    made = await resumed(worker, hooks={"hooks-guard": denying(["work"])})

    assert worker.inputs == []
    assert "not here" in made.provider.requests[-1].messages[-1].text
    assert made.results[0].turn_count == 2


async def test_child_resumed_has_no_tool_that_parent_has_no_more() -> None:
    worker = Worker()
    made = await resumed(worker, tools={})

    assert worker.inputs == []
    assert "work" not in [tool.name for tool in made.provider.requests[0].tools or ()]
    assert (
        "no tool 'work'"
        in made.provider.requests[-1].messages[-1].text.replace('"', "'").lower()
    )


async def test_child_resumed_has_limits_that_parent_has_by_now() -> None:
    made = await resumed(Worker(), limits={"iterations": 1})

    assert made.results[0].limit == "iterations"


async def test_grandchild_of_resumed_child_is_guarded_as_root_is_now() -> None:
    worker, shelf = Worker(), ChildRecords()
    tools = {"tool-work": fresh(lambda: worker)}
    before = in_another_process(shelf, "one", tools=tools)
    async with before.session as session:
        await session.spawn(agent_name="self", instruction="x", sub_session_id="c1")
    steps = (
        calling(call("delegate", {"agent": "self"})),
        calling(call("work")),
        "found",
        "end",
    )
    now = in_another_process(
        shelf, *steps, tools=tools, hooks={"hooks-guard": denying(["work"])}
    )
    async with now.session as session:
        await session.resume(sub_session_id="c1", instruction="y")

    assert worker.inputs == []
    assert len(now.results) == 1


async def test_a_child_whose_agent_is_gone_is_not_resumed() -> None:
    with pytest.raises(ConfigError) as caught:
        await resumed(Worker(), agents={"helpers": {}})

    assert (
        "agents.helper: no such agent; did you mean 'helpers'?; session 'c1' was made from it"
        in str(caught.value)
    )


async def test_a_child_is_what_its_agent_is_by_now() -> None:
    made = await resumed(
        Worker(), agents={"helper": {"session": {"limits": {"iterations": 1}}}}
    )

    assert made.results[0].limit == "iterations"


async def test_limits_of_child_hold_on_resume_and_may_narrow() -> None:
    shelf, worker = ChildRecords(), Worker()
    tools = {
        "tool-work": fresh(lambda: worker),
        "tool-other": fresh(lambda: Worker("other")),
    }
    asked = {
        "tool_inheritance": {"exclude_tools": {"tool-work"}},
        "orchestrator_config": {"role": "fast"},
        "session_metadata": {"job": 7},
    }
    made = in_another_process(shelf, *["x"] * 4, tools=tools)
    async with made.session as session:
        result = await spawn(session, sub_session_id="c1", **asked)
        assert result.metadata == {"job": 7}
        assert shelf.records["c1"].request["tool_inheritance"] == {
            "exclude_tools": ["tool-work"]
        }

        result = await session.resume(sub_session_id="c1", instruction="y")
        assert list(made.child.tools) == ["delegate", "other"]
        assert result.metadata == {"job": 7}
        session_plan = cast("JSONObject", made.child.config["session"])
        assert cast("JSONObject", session_plan["orchestrator"])["config"] == {
            "role": "fast"
        }

        await session.resume(
            sub_session_id="c1",
            instruction="y",
            tool_inheritance={"exclude_tools": ["tool-other"]},
        )
        assert list(made.child.tools) == ["delegate"]
        await session.resume(
            sub_session_id="c1",
            instruction="y",
            agent_configs={"helper": {"tools": None}},
        )
        assert list(made.child.tools) == []


@pytest.mark.parametrize("request_", [{"limits": {}}, {"tool_inheritance": "all"}])
async def test_a_record_that_holds_something_else_is_refused(
    request_: JSONObject,
) -> None:
    shelf = ChildRecords()
    shelf.records["c1"] = ChildRecord(
        session_id="c1", parent_id="s1", agent_name="helper", plan={}, request=request_
    )
    async with in_another_process(shelf).session as session:
        with pytest.raises(ConfigError, match="child's record"):
            await session.resume(sub_session_id="c1", instruction="y")


# -- hooks


@pytest.mark.parametrize(
    ("register", "guards"),
    [
        (lambda hooks: hooks.register("tool:pre", lambda *_: None), True),
        (lambda hooks: hooks.register("provider:request", lambda *_: None), True),
        (
            lambda hooks: hooks.register("tool:pre", lambda *_: None, decides=False),
            False,
        ),
        (lambda hooks: None, True),
    ],
    ids=["blocks", "may block", "observes", "unknown"],
)
@pytest.mark.parametrize(
    "rule",
    [
        {"hook_inheritance": {"exclude_hooks": ["hooks-extra"]}},
        {"hook_inheritance": {"exclude_hooks": ["*"]}},
        {"hook_inheritance": {"inherit_hooks": []}},
        {"agent_configs": {"helper": {"hooks": None}}},
    ],
)
async def test_no_rule_takes_a_guard_away(
    rule: JSONObject, register: Callable[[object], object], guards: bool
) -> None:
    mounted: list[str] = []

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        mounted.append(coordinator.session_id)
        register(coordinator.hooks)

    made = family("x", "y", hooks={"hooks-extra": mount})
    async with made.session as session:
        await spawn(session, sub_session_id="c1", **rule)
        assert ("c1" in mounted) is guards
        await session.resume(
            sub_session_id="c1",
            instruction="y",
            **({} if "agent_configs" not in rule else rule),  # type: ignore[arg-type]  # as given
        )

    assert mounted.count("c1") == (2 if guards else 0)


async def test_a_module_that_offers_a_capability_guards() -> None:
    mounted: list[str] = []

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        mounted.append(coordinator.session_id)
        coordinator.hooks.register("tool:pre", lambda *_: None, decides=False)
        coordinator.register_capability("session.redactor", "any")

    made = family("x", hooks={"hooks-extra": mount})
    rule: HookInheritance = {"inherit_hooks": []}
    async with made.session as session:
        await session.spawn(agent_name="helper", instruction="x", hook_inheritance=rule)

    assert len(mounted) == 2


async def test_session_before_mounting_takes_every_hook_for_guard() -> None:
    mounted: list[str] = []

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        mounted.append(coordinator.session_id)
        coordinator.hooks.register("tool:pre", lambda *_: None, decides=False)

    made = family("x", hooks={"hooks-extra": mount})
    await made.session.spawn(
        agent_name="helper", instruction="x", hook_inheritance={"inherit_hooks": []}
    )

    assert len(mounted) == 1
    await made.session.cleanup()


async def test_an_application_may_leave_a_guard_out() -> None:
    worker = Worker()
    made = family(
        calling(call("work")),
        "end",
        tools={"tool-work": fresh(lambda: worker)},
        hooks={"hooks-guard": denying(["work"])},
    )
    async with made.session as session, session.fork({"hooks": None}) as child:
        await child.execute("x")

    assert len(worker.inputs) == 1


# -- configurations


def configured(configs: Configs, agent: JSONObject, **plan: object) -> AmplifierSession:
    """A session with a tool and a hook that are configured, and an agent."""
    narrowing = {"only": intersection, "paths": subset}
    return family(
        *["x"] * 3,
        agents={"helper": agent},
        others={
            "tool-files": noting(configs, narrowing, tool="files"),
            "hooks-guard": noting(configs, narrowing),
            "hooks-strict": noting(configs),
        },
        plan={
            "tools": [
                {
                    "module": "tool-files",
                    "source": "here",
                    "config": {"paths": ["a", "b"], "rules": {"x": 1}},
                }
            ],
            "hooks": [
                {"module": "hooks-guard", "config": {"only": ["r", "w"]}},
                "hooks-strict",
            ],
            **plan,
        },
    ).session


@pytest.mark.parametrize(
    ("agent", "problems"),
    [
        (
            {"tools": [{"module": "tool-files", "config": {"rules": {"x": 2}}}]},
            [
                "tools[0].config.rules: an agent cannot change how its session configures 'tool-files'",
                "; it can narrow only, paths",
            ],
        ),
        (
            {"tools": [{"module": "tool-files", "config": {"rules": None}}]},
            ["tools[0].config.rules: an agent cannot"],
        ),
        (
            {"tools": [{"module": "tool-files", "config": {"paths": ["a", "/"]}}]},
            ["paths: its session allows no '/'"],
        ),
        (
            {"tools": [{"module": "tool-files", "config": {"paths": None}}]},
            ["paths: a list of strings; got None"],
        ),
        (
            {
                "tools": [
                    {
                        "module": "tool-files",
                        "instance_id": "mine",
                        "config": {"rules": {"y": 2}},
                    }
                ]
            },
            ["tools[0].config.rules: an agent cannot"],
        ),
        (
            {
                "hooks": [
                    "hooks-guard",
                    {"module": "hooks-strict", "config": {"off": True}},
                ]
            },
            [
                "hooks[1].config.off: an agent cannot change how its session configures 'hooks-strict'"
            ],
        ),
        (
            {
                "tools": [{"module": "tool-files", "config": {"rules": 1}}],
                "hooks": [{"module": "hooks-guard", "config": {"otherwise": "allow"}}],
            },
            [
                "agents.helper.tools[0].config.rules",
                "agents.helper.hooks[0].config.otherwise",
            ],
        ),
        (
            {"tools": [{"module": "tool-files", "config": 3}]},
            ["tools[0].config: a mapping; got int"],
        ),
    ],
)
async def test_an_agent_changes_nothing_that_it_may_only_narrow(
    agent: JSONObject, problems: list[str]
) -> None:
    configs: Configs = []
    async with configured(configs, agent) as session:
        mounted = len(configs)
        with pytest.raises(ConfigError) as caught:
            await session.spawn(agent_name="helper", instruction="x")

    assert len(configs) == mounted
    for problem in problems:
        assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("agent", "options", "tool", "guard"),
    [
        ({}, {}, {"paths": ["a", "b"], "rules": {"x": 1}}, {"only": ["r", "w"]}),
        (
            {"tools": [{"module": "tool-files", "config": {"paths": []}}]},
            {},
            {"paths": [], "rules": {"x": 1}},
            {"only": ["r", "w"]},
        ),
        (
            {
                "tools": [
                    {
                        "module": "tool-files",
                        "source": "elsewhere",
                        "config": {"rules": {"x": 1}, "new": None},
                    }
                ]
            },
            {},
            {"paths": ["a", "b"], "rules": {"x": 1}},
            {"only": ["r", "w"]},
        ),
        (
            {
                "tools": ["tool-files"],
                "hooks": [{"module": "hooks-guard", "config": {"only": ["w", "x"]}}],
            },
            {"tool_inheritance": {"inherit_tools": []}},
            {"paths": ["a", "b"], "rules": {"x": 1}},
            {"only": ["w"]},
        ),
        (
            {
                "tools": [
                    {
                        "module": "tool-files",
                        "instance_id": "mine",
                        "config": {"paths": ["a"]},
                    }
                ]
            },
            {"tool_inheritance": {"exclude_tools": ["tool-*"]}},
            {"paths": ["a"], "rules": {"x": 1}},
            {"only": ["r", "w"]},
        ),
    ],
    ids=[
        "nothing",
        "narrower",
        "the same",
        "named though excluded",
        "another instance",
    ],
)
async def test_agent_has_its_sessions_configuration_or_stricter_one(
    agent: JSONObject, options: JSONObject, tool: JSONObject, guard: JSONObject
) -> None:
    configs: Configs = []
    async with configured(configs, agent) as session:
        mounted = len(configs)
        await spawn(session, **options)

    assert list(map(dict, configs[mounted:])) == [tool, guard, {}]


async def test_agent_cannot_pick_among_instances_by_a_third() -> None:
    tools = [{"module": "tool-files", "instance_id": name} for name in ("one", "two")]
    agent: JSONObject = {"tools": [{"module": "tool-files", "instance_id": "three"}]}
    async with configured([], agent, tools=tools) as session:
        with pytest.raises(
            ConfigError,
            match=r"instance_id: its session has several 'tool-files', and none",
        ):
            await session.spawn(agent_name="helper", instruction="x")


async def test_a_grandchild_narrows_what_its_parent_narrowed() -> None:
    configs: Configs = []
    agents = {
        "reader": {"hooks": [{"module": "hooks-guard", "config": {"only": ["r"]}}]},
        "writer": {
            "hooks": [{"module": "hooks-guard", "config": {"only": ["r", "w"]}}]
        },
    }
    async with (
        configured(configs, {}, agents=agents) as session,
        session.fork() as child,
    ):
        await child.spawn(agent_name="writer", instruction="x")
        assert configs[-2] == {"only": ["r", "w"]}
    session = configured(configs, {}, agents=agents)
    made: list[AmplifierSession] = []
    async with session:
        reader = session.fork({"hooks": agents["reader"]["hooks"]})
        made.append(reader)
        async with reader:
            await reader.spawn(agent_name="writer", instruction="x")

    assert configs[-2] == {"only": ["r"]}


async def test_non_container_values_are_left_to_plan_reader() -> None:
    async with configured([], {"tools": [7], "hooks": "all"}) as session:
        with pytest.raises(ConfigError) as caught:
            await session.spawn(agent_name="helper", instruction="x")

    assert "a module id or a mapping with 'module'; got int" in str(caught.value)
    assert "hooks: a list of modules; got str" in str(caught.value)


# -- limits


@pytest.mark.parametrize(
    ("own", "agent", "expected"),
    [
        ({"iterations": 3}, {"limits": {"iterations": 9}}, ("iterations", 3)),
        ({"iterations": 3}, {"limits": {"iterations": 2}}, ("iterations", 2)),
        ({"iterations": 3}, {"limits": None}, ("iterations", 3)),
        ({"tokens": 30}, {"limits": {"tokens": None}}, ("tokens", 30)),
        ({"cost_usd": "0.30"}, {"limits": {"cost_usd": 1}}, ("cost_usd", "0.30")),
        (
            {"tool_timeout": 5},
            {"limits": {"tool_timeout": 50.0}},
            ("tool_timeout", 5.0),
        ),
        (
            {"session_tool_calls": 5},
            {"limits": {"session_tool_calls": 50}},
            ("session_tool_calls", 5),
        ),
    ],
)
async def test_a_limit_of_an_agent_is_the_stricter_one(
    own: JSONObject, agent: JSONObject, expected: tuple[str, object]
) -> None:
    made = family("x", agents={"helper": {"session": agent}}, limits=own)
    async with made.session as session:
        await session.spawn(agent_name="helper", instruction="x")

        name, value = expected
        assert str(getattr(made.child.settings.limits, name)) == str(value)
        limits = cast(
            "JSONObject", cast("JSONObject", made.child.config["session"])["limits"]
        )
        assert limits[name] == value, "and the plan is plain data"


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("said", [True, False, None])
@pytest.mark.parametrize(
    "limits",
    [{}, {"limits": None}, {"limits": {"iterations": 2}}],
    ids=["none", "null", "some"],
)
async def test_where_a_session_asks_before_changes_its_agents_do(
    own: bool, said: bool | None, limits: JSONObject
) -> None:
    agent: JSONObject = {"session": {"ask_before_changes": said, **limits}}
    plan = {
        "session": {
            "orchestrator": "loop",
            "context": "context",
            "ask_before_changes": own,
        }
    }
    made = family("x", agents={"helper": agent}, plan=plan)
    async with made.session as session:
        await session.spawn(agent_name="helper", instruction="x")
    assert made.child.settings.ask_before_changes is (own or said is True)


async def test_an_agent_may_inject_no_more_than_its_session() -> None:
    agent: JSONObject = {
        "session": {"injection_size_limit": None, "injection_budget_per_turn": None}
    }
    made = family("x", agents={"helper": agent})
    async with made.session as session:
        await session.spawn(agent_name="helper", instruction="x")
    assert made.child.injection_size_limit == 10_240

    agent = {
        "session": {"injection_size_limit": 99_999, "injection_budget_per_turn": 99_999}
    }
    plan = {
        "session": {
            "orchestrator": "loop",
            "context": "context",
            "injection_budget_per_turn": 10,
        }
    }
    made = family("x", agents={"helper": agent}, plan=plan)
    async with made.session as session:
        await session.spawn(agent_name="helper", instruction="x")
    assert (made.child.injection_size_limit, made.child.injection_budget_per_turn) == (
        10_240,
        10,
    )


@pytest.mark.parametrize("limits", [7, {"iterations": "many"}, {"cost_usd": "much"}])
async def test_a_limit_that_is_none_is_named(limits: JSONValue) -> None:
    made = family(agents={"helper": {"session": {"limits": limits}}})
    async with made.session as session:
        with pytest.raises(ConfigError, match=r"session\.limits"):
            await session.spawn(agent_name="helper", instruction="x")


async def test_an_agent_whose_session_is_none_is_named() -> None:
    made = family(agents={"helper": {"session": 3}})
    async with made.session as session:
        with pytest.raises(ConfigError, match="session: a mapping; got int"):
            await session.spawn(agent_name="helper", instruction="x")


@pytest.mark.parametrize(
    ("turn", "given", "reached"),
    [
        (None, {"iterations": 9}, 3),
        (None, {"iterations": 2}, 2),
        ({"iterations": 2}, {"iterations": 9}, 2),
        ({"iterations": 9}, {"iterations": 7}, 7),
        ({"iterations": 9}, None, 3),
    ],
)
async def test_a_childs_turn_is_given_no_more_than_its_parents_has(
    turn: LimitChanges | None, given: LimitChanges | None, reached: int
) -> None:
    options: SpawnOptions = {"agent_name": "", "instruction": "", "limits": given}
    steps = [calling(call("delegate")), *[calling(call("work"), text="w")] * 30]
    made = family(
        *steps,
        tools={"tool-work": fresh(Worker)},
        limits={"iterations": 3},
        options=options,
    )
    async with made.session as session:
        if turn is None:
            made.provider.steps.pop(0)
            result = await session.spawn(
                agent_name="helper", instruction="x", limits=given
            )
        else:
            await session.execute("go", turn)
            result = made.results[0]

    assert (result.limit, result.spending["provider_calls"]) == ("iterations", reached)


async def test_child_deeper_than_root_allows_now_is_not_resumed() -> None:
    shelf = ChildRecords()
    async with in_another_process(shelf, "one").session as session:
        await session.spawn(agent_name="helper", instruction="x", sub_session_id="c1")
    async with in_another_process(
        shelf, limits={"delegation_depth": 0}
    ).session as session:
        with pytest.raises(BudgetExceededError, match="delegation_depth"):
            await session.resume(sub_session_id="c1", instruction="y")


def approving() -> object:
    """A hook module that approves every call."""

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        coordinator.hooks.register(
            "tool:pre", lambda event, data: HookResult.approve("fine")
        )

    return mount


@pytest.mark.parametrize(("own", "runs"), [(["hooks-yes"], True), ([], False)])
@pytest.mark.parametrize("depth", [1, 2])
async def test_what_only_an_agents_hooks_approve_is_asked_about(
    own: list[str], runs: bool, depth: int
) -> None:
    worker = Worker()
    deep = {"hooks": ["hooks-yes"]}
    calls = [calling(call("delegate", {"agent": "deep"}))] if depth == 2 else []
    made = family(
        *calls,
        calling(call("work")),
        "done",
        "done",
        agents={"scout": {"hooks": ["hooks-yes"]}, "deep": deep},
        tools={"tool-work": fresh(lambda: worker)},
        plan={
            "hooks": own,
            "session": {
                "orchestrator": "loop",
                "context": "context",
                "ask_before_changes": True,
            },
        },
        others={"hooks-yes": approving()},
    )

    async with made.session as session:
        await session.spawn(agent_name="scout", instruction="go")

    assert bool(worker.inputs) is runs


async def test_a_module_that_failed_lets_no_agent_change_its_configuration() -> None:
    """Nobody knows what of it could be made stricter."""
    agent = {"tools": [{"module": "tool-lost", "config": {"a": 2}}]}
    session = family(
        "end", plan={"tools": ["tool-lost"], "agents": {"helper": agent}}
    ).session

    async with session:
        assert [failure.module_id for failure in session.failures] == ["tool-lost"]
        with pytest.raises(
            ConfigError, match="cannot change how its session configures"
        ):
            await session.spawn(agent_name="helper", instruction="go")
