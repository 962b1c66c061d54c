"""The mount plan: read strictly, every problem at once, each with its path."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier import AmplifierSession, MountPlanValidator
from amplifier.kernel.plans.plan import ModuleSpec, MountPlan, SessionSettings
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.hookspecs import KINDS
from amplifier_sdk.limits import Limits

LEAST = {"session": {"orchestrator": "loop-basic", "context": "context-simple"}}


def a_plan(**sections: object) -> dict[str, object]:
    return {**LEAST, **sections}


def with_session(**keys: object) -> dict[str, object]:
    return {"session": {**LEAST["session"], **keys}}


def test_the_least_plan_names_a_loop_and_a_context() -> None:
    plan = MountPlan.read(LEAST)

    assert plan.session == SessionSettings()
    assert plan.modules["orchestrator"] == (
        ModuleSpec(
            module="loop-basic",
            path="session.orchestrator",
            config_path="orchestrator.config",
        ),
    )
    assert plan.modules["context"] == (
        ModuleSpec(
            module="context-simple",
            path="session.context",
            config_path="context.config",
        ),
    )
    assert [plan.modules[kind] for kind in ("provider", "tool", "hook")] == [(), (), ()]
    assert plan.agents == {}


def test_a_whole_plan_is_read_as_it_stands() -> None:
    plan = MountPlan.read(
        {
            "session": {
                "orchestrator": "loop-basic",
                "orchestrator_source": "git+https://example.org/loop",
                "context": {
                    "module": "context-simple",
                    "source": "./context",
                    "config": {"max_tokens": 5},
                },
                "limits": {"iterations": 3, "tool_timeout": 1.5},
                "injection_size_limit": None,
                "injection_budget_per_turn": 7,
                "metadata": {"user": "ada"},
                "raw": True,
            },
            "orchestrator": {"config": {"model": "m"}},
            "context": {"config": {"max_tokens": 1, "system_prompt": "Hi"}},
            "providers": [
                "provider-x",
                {"module": "provider-y", "instance_id": "second", "config": None},
            ],
            "tools": None,
            "hooks": [
                {"module": "hooks-a", "source": {"path": "."}, "config": {"a": 1}}
            ],
            "agents": {"scout": {"description": "Looks around"}},
        }
    )

    assert plan.session == SessionSettings(
        limits=Limits(iterations=3, tool_timeout=1.5),
        injection_size_limit=None,
        injection_budget_per_turn=7,
        metadata={"user": "ada"},
        raw=True,
    )
    (loop,), (context,) = plan.modules["orchestrator"], plan.modules["context"]
    assert (loop.source, loop.config) == (
        "git+https://example.org/loop",
        {"model": "m"},
    )
    assert (context.source, context.config) == (
        "./context",
        {"max_tokens": 5, "system_prompt": "Hi"},
    )
    assert [
        (spec.module, spec.instance_id, spec.path) for spec in plan.modules["provider"]
    ] == [
        ("provider-x", None, "providers[0]"),
        ("provider-y", "second", "providers[1]"),
    ]
    (hook,) = plan.modules["hook"]
    assert (hook.source, hook.config) == ({"path": "."}, {"a": 1})
    assert plan.agents == {"scout": {"description": "Looks around"}}


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        (
            {},
            "session: missing; a plan needs a 'session' with 'orchestrator' and 'context'",
        ),
        ({"session": 3}, "session: a mapping; got int"),
        (
            {"session": {"context": "c"}},
            "session.orchestrator: missing; name the session's orchestrator module,",
        ),
        (
            {"session": {"orchestrator": "l"}},
            "session.context: missing; name the session's context module,",
        ),
        (
            with_session(orchestrator=5),
            "session.orchestrator: a module id or a mapping with 'module'; got int",
        ),
        (
            with_session(orchestrator=""),
            "session.orchestrator.module: a module id is a non-empty string; got ''",
        ),
        (
            with_session(context={"modul": "c"}),
            "session.context.modul: unknown key; did you mean 'module'?",
        ),
        (
            with_session(contxt="c"),
            "session.contxt: unknown key; did you mean 'context'?",
        ),
        (
            with_session(raw="yes"),
            'session.raw: expected a boolean, got a string ("yes")',
        ),
        (
            with_session(ask_before_changes={}),
            "session.ask_before_changes: expected a boolean, got an object with 0 keys",
        ),
        (
            with_session(metadata=[]),
            "session.metadata: expected an object or null, got an array with 0 items",
        ),
        (
            with_session(injection_size_limit=-1),
            "session.injection_size_limit: is a whole number from 0; got -1",
        ),
        (
            with_session(injection_size_limit=True),
            "session.injection_size_limit: expected an integer or null",
        ),
        (
            with_session(injection_budget_per_turn="9"),
            "session.injection_budget_per_turn: expected an integer or null",
        ),
        (
            with_session(limits=3),
            "session.limits: expected an object, got an integer (3)",
        ),
        (
            with_session(limits={"iteration": 3}),
            "session.limits.iteration: unknown; did you mean 'iterations'?",
        ),
        (
            with_session(limits={"iterations": 0}),
            "session.limits.iterations: is a whole number above 0",
        ),
        (
            with_session(limits={"tool_timeout": "1"}),
            "session.limits.tool_timeout: expected a number, got a string",
        ),
        (a_plan(tool=[]), "tool: unknown key; did you mean 'tools'?"),
        (
            a_plan(zzz=1),
            "zzz: unknown key; known: session, system, agents, orchestrator, context, providers, tools, hooks",
        ),
        (a_plan(agents=[]), "agents: a mapping; got list"),
        (a_plan(system="Be brief."), "system: a mapping; got str"),
        (a_plan(system={"instruction": 3}), "system.instruction: a text; got int"),
        (a_plan(system={"text": "x"}), "system.text: unknown key; known: instruction"),
        (
            a_plan(orchestrator={"confg": {}}),
            "orchestrator.confg: unknown key; did you mean 'config'?",
        ),
        (a_plan(orchestrator={"config": 1}), "orchestrator.config: a mapping; got int"),
        (a_plan(context=[]), "context: a mapping; got list"),
        (a_plan(tools={"tool-a": {}}), "tools: a list of modules; got dict"),
        (a_plan(tools="tool-a"), "tools: a list of modules; got str"),
        (
            a_plan(tools=[3]),
            "tools[0]: a module id or a mapping with 'module'; got int",
        ),
        (
            a_plan(tools=["a", ""]),
            "tools[1].module: a module id is a non-empty string; got ''",
        ),
        (
            a_plan(tools=[{"config": {}}]),
            "tools[0].module: a module id is a non-empty string; got None",
        ),
        (
            a_plan(tools=["a", {"module": "b", "confg": {}}]),
            "tools[1].confg: unknown key; did you mean 'config'?",
        ),
        (
            a_plan(tools=[{"module": "a", "config": "x"}]),
            "tools[0].config: a mapping; got str",
        ),
        (
            a_plan(tools=[{"module": "a", "instance_id": 3}]),
            "tools[0].instance_id: a non-empty string; got 3",
        ),
        (
            a_plan(tools=["a", "a"]),
            "tools[1]: module 'a' is listed twice; give each entry an 'instance_id'",
        ),
    ],
)
def test_a_problem_is_named_by_its_path_and_its_remedy(
    plan: dict[str, object], problem: str
) -> None:
    problems = [str(found) for found in MountPlanValidator().validate(plan)]

    assert any(found.startswith(problem) for found in problems), problems
    with pytest.raises(ConfigError) as caught:
        AmplifierSession(plan)
    assert [str(found) for found in caught.value.problems] == problems


def test_section_in_which_every_line_is_comment_is_empty_one() -> None:
    """YAML reads it as null."""
    plan = a_plan(
        orchestrator=None,
        context=None,
        providers=None,
        tools=None,
        hooks=None,
        agents=None,
    )
    plan["session"] = {
        **LEAST["session"],
        "limits": None,
        "metadata": None,
        "raw": None,
        "orchestrator_source": None,
    }

    assert MountPlan.read(plan) == MountPlan.read(LEAST)


@pytest.mark.parametrize(
    ("entry", "source"),
    [
        ("loop-basic", "beside"),
        ({"module": "loop-basic"}, "beside"),
        ({"module": "loop-basic", "source": None}, "beside"),
        ({"module": "loop-basic", "source": "inside"}, "inside"),
    ],
)
def test_source_of_loop_stands_in_its_mapping_or_beside_it(
    entry: object, source: str
) -> None:
    plan = MountPlan.read(
        with_session(orchestrator=entry, orchestrator_source="beside")
    )

    assert plan.modules["orchestrator"][0].source == source


def test_a_module_of_which_there_is_one_has_no_instances() -> None:
    problems = MountPlanValidator().validate(
        with_session(context={"module": "c", "instance_id": "x"})
    )

    assert [str(problem) for problem in problems] == [
        "session.context.instance_id: unknown key; known: module, source, config"
    ]


def test_all_problems_are_found_at_once() -> None:
    plan = {
        "session": {"orchestrator": "", "raw": 1},
        "tools": [3, {"module": "a", "x": 1}],
        "nonsense": 1,
    }

    problems = MountPlanValidator().validate(plan)

    assert [problem.path for problem in problems] == [
        "nonsense",
        "session.orchestrator.module",
        "session.context",
        "tools[0]",
        "tools[1].x",
        "session.raw",
    ]
    with pytest.raises(ConfigError, match="The mount plan has 6 problems:"):
        MountPlan.read(plan)


@pytest.mark.parametrize("plan", [None, [], "plan", 3])
def test_what_is_no_mapping_is_no_plan(plan: object) -> None:
    name = type(plan).__name__

    (problem,) = MountPlanValidator().validate(plan)

    assert str(problem) == f"a mount plan is a mapping; got {name}"
    with pytest.raises(ConfigError, match=f"a mount plan is a mapping; got {name}"):
        AmplifierSession(plan)  # type: ignore[arg-type]


def test_single_custom_kind_is_requested_without_example() -> None:
    own = attrs.evolve(KINDS[0], name="judge", section="judge", mount_point="judge")

    (problem,) = MountPlanValidator((*KINDS, own)).validate(LEAST)

    assert str(problem) == "session.judge: missing; name the session's judge module"


def test_a_valid_plan_has_no_problems() -> None:
    assert (
        MountPlanValidator().validate(
            a_plan(tools=["a", {"module": "a", "instance_id": "b"}])
        )
        == ()
    )


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["session", "module", "config", "tools", "orchestrator", "limits", "x"]
            ),
            inner,
        )
    ),
    max_leaves=12,
)


@given(plain)
def test_any_data_is_read_or_has_problems_with_paths(plan: object) -> None:
    problems = MountPlanValidator().validate(plan)

    if isinstance(plan, dict) and not problems:
        assert MountPlan.read(plan).modules["orchestrator"]
    else:
        assert all(str(problem) for problem in problems)
        assert problems


@given(
    st.lists(
        st.fixed_dictionaries(
            {"module": st.sampled_from(["a", "b"])},
            optional={
                "config": st.dictionaries(
                    st.text(max_size=2), st.integers(), max_size=2
                ),
                "instance_id": st.sampled_from(["x", "y"]),
                "source": st.text(max_size=2),
            },
        ),
        max_size=5,
        unique_by=lambda entry: (entry["module"], entry.get("instance_id")),
    )
)
def test_every_entry_of_a_list_is_read_in_its_order(
    entries: list[dict[str, object]],
) -> None:
    plan = a_plan(tools=entries)

    specs = MountPlan.read(plan).modules["tool"]

    assert [
        {
            key: value
            for key, value in attrs.asdict(spec, recurse=False).items()
            if key in entry
        }
        for spec, entry in zip(specs, entries, strict=True)
    ] == entries
