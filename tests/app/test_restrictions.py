"""Of a plan of now, only what restricts is added to a recorded one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.app.plans.restrictions import restrict
from amplifier.app.store.plan_secrets import conceal, reveal
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.secret import WITHHELD

DENY: JSONValue = {"decision": "deny", "tools": ["x"]}
TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
ALLOW: JSONValue = {"decision": "allow", "tools": ["y"]}


def module(**config: JSONValue) -> JSONObject:
    return {"module": "m", "config": config}


@pytest.mark.parametrize(
    ("recorded", "present", "result"),
    [
        (
            {"rules": [ALLOW]},
            {"rules": [DENY, {"pattern": "ls", "action": "auto_approve"}]},
            {"rules": [ALLOW, DENY]},
        ),
        ({}, {"rules": [DENY, ALLOW]}, {"rules": [DENY]}),
        ({"otherwise": "allow"}, {"otherwise": "deny"}, {"otherwise": "deny"}),
        ({"otherwise": "deny"}, {"otherwise": "allow"}, {"otherwise": "deny"}),
        ({}, {"unlisted": "allow"}, {}),
        (
            {"require_sandbox": False},
            {"require_sandbox": True},
            {"require_sandbox": True},
        ),
        (
            {"require_sandbox": True},
            {"require_sandbox": False},
            {"require_sandbox": True},
        ),
        (
            {"require_approval": ["a"]},
            {"require_approval": ["b", "a"]},
            {"require_approval": ["a", "b"]},
        ),
        (
            {"denied_write_paths": ["a"]},
            {"denied_write_paths": ["b", "!a"]},
            {"denied_write_paths": ["a", "b"]},
        ),
        (
            {"tools": {}},
            {"tools": {"bash": {"require_approval": True}}},
            {"tools": {"bash": {"require_approval": True}}},
        ),
        ({"timeout": 3}, {"timeout": 9, "allowed_paths": ["/"]}, {"timeout": 3}),
        ({}, {"tools": {"bash": {"require_approval": False}}}, {}),
    ],
)
def test_of_a_configuration_only_what_restricts_is_added(
    recorded: JSONObject, present: JSONObject, result: JSONObject
) -> None:
    for section in ("tools", "hooks"):
        found = restrict(
            {section: [module(**recorded)]}, {section: [module(**present)]}
        )
        assert found.plan[section] == [module(**result)]
        assert found.problems == ()


def test_a_list_that_was_left_to_its_default_cannot_be_added_to() -> None:
    (problem,) = restrict(
        {"tools": ["m"]}, {"tools": [module(denied_read_paths=["a"])]}
    ).problems
    assert problem.path == "m.denied_read_paths"


@pytest.mark.parametrize(
    ("recorded", "present", "result"),
    [
        ({"iterations": 9}, {"iterations": 3}, {"iterations": 3}),
        ({"iterations": 3}, {"iterations": 9}, {"iterations": 3}),
        ({}, {"iterations": 70}, {}),
        (
            {},
            {"iterations": 7, "session_tokens": 5},
            {"iterations": 7, "session_tokens": 5},
        ),
        ({"cost_usd": "0.50"}, {"cost_usd": 0.25}, {"cost_usd": 0.25}),
        (
            {"cost_usd": "0.50"},
            {"cost_usd": "many", "tokens": None},
            {"cost_usd": "0.50"},
        ),
    ],
)
def test_the_lower_limit_counts(
    recorded: JSONObject, present: JSONObject, result: JSONObject
) -> None:
    session: JSONObject = {"orchestrator": {"module": "l"}}
    plan = restrict(
        {"session": {**session, "limits": recorded}},
        {"session": {**session, "limits": present}},
    ).plan
    limits = plan["session"]
    assert isinstance(limits, dict)
    assert limits.get("limits") == result


def test_changes_are_asked_about_once_that_is_wanted() -> None:
    asks: JSONObject = {"session": {"ask_before_changes": True}}
    assert restrict({"session": {}}, asks).plan["session"] == {
        "ask_before_changes": True
    }
    assert restrict(asks, {"session": {"ask_before_changes": False}}).plan == asks


def test_agents_are_restricted_and_missing_ones_left_out() -> None:
    recorded: JSONObject = {
        "agents": {
            "a": {
                "tools": ["t", "u"],
                "hooks": ["h"],
                "session": {"limits": {"tokens": 9}},
            },
            "b": {"description": "B"},
            "gone": {"tools": ["t"]},
        }
    }
    present: JSONObject = {
        "agents": {
            "a": {
                "tools": ["t", "v"],
                "hooks": ["h", "g"],
                "session": {"limits": {"tokens": 5}},
            },
            "b": {"hooks": ["g"]},
            "new": {},
        }
    }

    found = restrict(recorded, present)

    assert found.removed == ("u", "agent gone")
    assert found.plan["agents"] == {
        "a": {
            "tools": [{"module": "t"}],
            "hooks": [{"module": "h"}, {"module": "g"}],
            "session": {"limits": {"tokens": 5}},
        },
        "b": {"description": "B", "hooks": [{"module": "g"}]},
    }


def test_the_loop_is_restricted_where_it_is_the_same() -> None:
    loop: JSONObject = {
        "session": {"orchestrator": {"module": "l", "config": {"require_x": True}}}
    }
    assert restrict({"session": {"orchestrator": "l"}}, loop).plan == loop
    assert restrict({"session": {"orchestrator": "k"}}, loop).plan == {
        "session": {"orchestrator": {"module": "k"}}
    }


TEXTS = st.sampled_from(
    [
        "a",
        "${A}",
        "sk-proj-" + "a1B2c3D4" * 6,
        "https://me:hunter2hunter2@example.com/",
        "",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["api_key", "url", "x", "token"]), inner, max_size=3
        )
    ),
    max_leaves=9,
)
PLANS = st.dictionaries(
    st.sampled_from(["tools", "session", "password"]), VALUES, max_size=3
)


@given(PLANS)
def test_what_is_concealed_is_revealed_by_the_same_plan(plan: JSONObject) -> None:
    stored = conceal(plan)
    assert "a1B2c3D4" not in str(stored)
    assert "hunter2" not in str(stored)
    assert reveal(stored, [{}, plan]) == (plan, [])


def test_what_is_nowhere_is_named() -> None:
    plan: JSONObject = {
        "tools": [
            {"module": "t", "config": {"api_key": "s", "args": ["--token", TOKEN]}}
        ]
    }
    stored = conceal(plan)
    assert stored == {
        "tools": [
            {
                "module": "t",
                "config": {"api_key": WITHHELD, "args": ["--token", WITHHELD]},
            }
        ]
    }
    _, problems = reveal(
        stored,
        [
            {"tools": ["t"]},
            {"tools": [{"module": "t", "config": {"args": ["--token"]}}]},
        ],
    )
    assert [problem.path for problem in problems] == [
        "tools[0].config.api_key",
        "tools[0].config.args[1]",
    ]


def test_a_key_that_is_a_secret_hides_all_below_it() -> None:
    assert conceal({"a": {TOKEN: 1}}) == {"a": WITHHELD}


def test_an_object_of_a_program_is_stored_as_text() -> None:
    assert conceal({"source": range(3)}) == {"source": "range(0, 3)"}
