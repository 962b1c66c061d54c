"""Laying one plan over another: a pure function with one rule."""

from __future__ import annotations

import operator
from copy import deepcopy
from typing import Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from amplifier import MountPlanValidator
from amplifier.kernel.plans.overlays import keep_modules, merge_plans, replace_modules
from amplifier.kernel.plans.plan import MountPlan

Plan = dict[str, object]

BASE: Final[Plan] = {
    "session": {
        "orchestrator": "loop-a",
        "orchestrator_source": "git+a",
        "context": "context-a",
        "raw": True,
    },
    "orchestrator": {"config": {"deep": {"x": 1, "y": 2}, "list": [1, 2]}},
    "tools": ["tool-a", {"module": "tool-b", "source": "git+b", "config": {"k": 1}}],
    "agents": {"one": {"description": "first"}},
}


def test_what_stays_keeps_its_source_and_both_configurations() -> None:
    plan = merge_plans(
        BASE,
        {
            "orchestrator": {"config": {"deep": {"y": 3, "z": 4}}},
            "tools": [{"module": "tool-b", "config": {"l": 2}}, "tool-c"],
        },
    )

    assert plan["session"] == {
        "orchestrator": {
            "module": "loop-a",
            "source": "git+a",
            "config": {"deep": {"x": 1, "y": 3, "z": 4}, "list": [1, 2]},
        },
        "context": {"module": "context-a"},
        "raw": True,
    }
    assert plan["tools"] == [
        {"module": "tool-a"},
        {"module": "tool-b", "source": "git+b", "config": {"k": 1, "l": 2}},
        {"module": "tool-c"},
    ]


@pytest.mark.parametrize(
    "overlay",
    [
        {"session": {"orchestrator": "loop-b"}, "orchestrator": {"config": {"own": 1}}},
        {"session": {"orchestrator": {"module": "loop-b", "config": {"own": 1}}}},
    ],
    ids=["id", "mapping"],
)
def test_loop_that_becomes_another_keeps_nothing_of_one_before(
    overlay: Plan,
) -> None:
    session = merge_plans(BASE, overlay)["session"]

    assert isinstance(session, dict)
    assert session["orchestrator"] == {"module": "loop-b", "config": {"own": 1}}


def test_none_takes_a_key_away() -> None:
    plan = merge_plans(
        BASE,
        {
            "session": {"raw": None},
            "orchestrator": {
                "config": {"deep": {"x": None}, "list": None, "absent": None}
            },
            "tools": [{"module": "tool-b", "source": None, "config": None}],
            "agents": None,
        },
    )

    assert plan["session"] == {
        "orchestrator": {
            "module": "loop-a",
            "source": "git+a",
            "config": {"deep": {"y": 2}},
        },
        "context": {"module": "context-a"},
    }
    assert plan["tools"] == [
        {"module": "tool-a"},
        {"module": "tool-b", "config": {"k": 1}},
    ]
    assert "agents" not in plan


def test_lists_are_replaced_and_a_source_is_one_value() -> None:
    base: Plan = {
        "tools": [
            {
                "module": "tool-a",
                "source": {"git": "a", "ref": "b"},
                "config": {"list": [1, 2]},
            }
        ]
    }

    plan = merge_plans(
        base,
        {
            "tools": [
                {"module": "tool-a", "source": {"path": "c"}, "config": {"list": [3]}}
            ]
        },
    )

    assert plan["tools"] == [
        {"module": "tool-a", "source": {"path": "c"}, "config": {"list": [3]}}
    ]


def test_instances_of_one_module_are_told_apart() -> None:
    base: Plan = {
        "tools": [
            "tool-a",
            {"module": "tool-a", "instance_id": "second", "config": {"k": 1}},
        ]
    }

    plan = merge_plans(
        base,
        {"tools": [{"module": "tool-a", "instance_id": "second", "config": {"k": 2}}]},
    )

    assert plan["tools"] == [
        {"module": "tool-a"},
        {"module": "tool-a", "instance_id": "second", "config": {"k": 2}},
    ]


def test_an_agents_own_keys_are_left_out() -> None:
    agent = {
        "description": "helps",
        "system": {"instruction": "Help."},
        "tools": ["tool-c"],
    }

    assert set(merge_plans(BASE, agent)) == {"session", "tools", "agents"}


@pytest.mark.parametrize(
    ("overlay", "path"),
    [
        ({"session": "x"}, "session"),
        ({"tools": "tool-a"}, "tools"),
        ({"tools": [7]}, "tools[2]"),
        ({"tools": [{"modul": "x"}]}, "tools[2].modul"),
        ({"session": {"orchestrator": None}}, "session.orchestrator"),
        ({"session": {"limits": 3}}, "session.limits"),
        ({"orchestrator": 3}, "orchestrator"),
        ({"agents": 3}, "agents"),
    ],
)
def test_what_has_the_wrong_type_is_left_for_the_reader_to_name(
    overlay: Plan, path: str
) -> None:
    problems = MountPlanValidator().validate(merge_plans(BASE, overlay))

    assert path in [problem.path for problem in problems]


def test_modules_are_kept_by_id() -> None:
    plan = merge_plans(BASE, {})

    assert keep_modules(plan, "tools", lambda module: module == "tool-b")["tools"] == [
        {"module": "tool-b", "source": "git+b", "config": {"k": 1}}
    ]
    assert keep_modules(plan, "hooks", lambda module: True)["hooks"] == []


values = st.recursive(
    st.integers() | st.text(max_size=3) | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)
configs: st.SearchStrategy[object] = st.dictionaries(
    st.sampled_from("abcd"), values, max_size=3
)

flat = st.dictionaries(
    st.sampled_from("ab"),
    values.filter(lambda value: not isinstance(value, dict)),
    max_size=2,
)
steady_configs: st.SearchStrategy[object] = st.recursive(
    flat,
    lambda inner: st.builds(
        operator.or_, flat, st.dictionaries(st.sampled_from("cd"), inner, max_size=2)
    ),
    max_leaves=4,
)
"""Configurations of which a key is a mapping in all or in none."""


def modules(
    prefix: str, configs: st.SearchStrategy[object]
) -> st.SearchStrategy[object]:
    ids = st.sampled_from([f"{prefix}-a", f"{prefix}-b", f"{prefix}-c"])
    mapping = st.fixed_dictionaries(
        {"module": ids},
        optional={
            "config": configs,
            "source": st.text(max_size=3),
            "instance_id": st.sampled_from(["x", "y"]),
        },
    )
    return ids | mapping


def module_id(entry: object) -> tuple[object, object]:
    if isinstance(entry, str):
        return entry, None
    assert isinstance(entry, dict)
    return entry["module"], entry.get("instance_id")


def lists(
    prefix: str, configs: st.SearchStrategy[object]
) -> st.SearchStrategy[list[object]]:
    return st.lists(modules(prefix, configs), max_size=3, unique_by=module_id)


def overlays_of(configs: st.SearchStrategy[object]) -> st.SearchStrategy[Plan]:
    return st.fixed_dictionaries(
        {},
        optional={
            "session": st.fixed_dictionaries(
                {},
                optional={
                    "orchestrator": st.sampled_from(["loop-a", "loop-b"]),
                    "metadata": configs,
                    "limits": st.fixed_dictionaries(
                        {}, optional={"iterations": st.integers(1, 9)}
                    ),
                },
            ),
            "orchestrator": st.fixed_dictionaries({"config": configs}),
            "providers": lists("provider", configs),
            "tools": lists("tool", configs),
            "hooks": lists("hooks", configs),
            "agents": st.dictionaries(
                st.sampled_from(["one", "two"]), configs, max_size=2
            ),
        },
    )


def completed(overlay: Plan) -> Plan:
    session = overlay.get("session", {})
    assert isinstance(session, dict)
    return {
        **overlay,
        "session": {"orchestrator": "loop-a", "context": "context-a", **session},
    }


overlays = overlays_of(configs)
plans = overlays.map(completed)
steady_overlays = overlays_of(steady_configs)


def loop_of(plan: Plan) -> object:
    session = plan.get("session", {})
    assert isinstance(session, dict)
    return session.get("orchestrator")


@given(plans, overlays)
def test_nothing_given_is_changed_and_the_result_is_a_plan(
    base: Plan, overlay: Plan
) -> None:
    before = deepcopy((base, overlay))

    plan = merge_plans(base, overlay)

    assert (base, overlay) == before
    assert MountPlanValidator().validate(plan) == ()


@given(plans)
def test_empty_or_identical_overlay_leaves_plan_unchanged(
    base: Plan,
) -> None:
    for overlay in ({}, base):
        merged = MountPlan.read(merge_plans(base, overlay))
        plan = MountPlan.read(base)
        assert merged.session == plan.session
        assert merged.agents == plan.agents
        assert [
            [
                (spec.module, spec.source, spec.config, spec.instance_id)
                for spec in specs
            ]
            for specs in merged.modules.values()
        ] == [
            [
                (spec.module, spec.source, spec.config, spec.instance_id)
                for spec in specs
            ]
            for specs in plan.modules.values()
        ]


@given(steady_overlays.map(completed), steady_overlays, steady_overlays)
def test_two_overlays_may_be_laid_over_each_other_first(
    base: Plan, first: Plan, second: Plan
) -> None:
    """But where only the base tells what is meant.

    A configuration without its loop, a loop that comes back, a key that is a mapping in one and none in another.
    """
    assume(
        "orchestrator" not in first
        or loop_of(first) is not None
        or loop_of(second) is None
    )
    assume(loop_of(first) in (None, loop_of(base)) or loop_of(second) != loop_of(base))

    assert merge_plans(merge_plans(base, first), second) == merge_plans(
        base, merge_plans(first, second)
    )


@given(plans, overlays)
def test_every_module_of_both_is_in_result_and_bases_come_first(
    base: Plan, overlay: Plan
) -> None:
    plan = merge_plans(base, overlay)
    for section in ("providers", "tools", "hooks"):
        below, above, merged = (plan.get(section, []) for plan in (base, overlay, plan))
        assert isinstance(below, list)
        assert isinstance(above, list)
        assert isinstance(merged, list)
        ids = [module_id(entry) for entry in below]
        assert [module_id(entry) for entry in merged] == ids + [
            module_id(entry) for entry in above if module_id(entry) not in ids
        ]


def test_plan_without_a_list_of_modules_has_none_to_replace() -> None:
    plan = {"tools": "no list", "hooks": []}

    assert replace_modules(plan, "tools", [{"module": "tool-a"}]) == plan
