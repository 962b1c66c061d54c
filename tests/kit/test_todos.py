"""Plans: how their items are read, and how a session's plan is found."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier import ModuleCoordinator
from amplifier_kit.todos import MAX_TEXT, TODO_STATUSES, TODOS, TodoItem, todos_of
from amplifier_sdk.jsontypes import JSONObject, JSONValue

STEP: JSONObject = {
    "content": "Run the tests",
    "activeForm": "Running the tests",
    "status": "pending",
}


def test_an_item_is_read_and_written_as_models_write_it() -> None:
    item = TodoItem.read({**STEP, "priority": "high"})

    assert item == TodoItem(content="Run the tests", active_form="Running the tests")
    assert item.to_json() == STEP


def test_an_item_that_is_being_done_is_shown_by_its_active_form() -> None:
    assert TodoItem.read(STEP).text == "Run the tests"
    assert TodoItem.read({**STEP, "status": "in_progress"}).text == "Running the tests"
    assert TodoItem.read({**STEP, "status": "completed"}).text == "Run the tests"


def test_each_text_becomes_one_line_without_what_nobody_sees() -> None:
    item = TodoItem.read({**STEP, "content": " Run\n\tthe\u202e \x1b[31mtests\ud800 "})

    assert item.content == "Run the [31mtests"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        pytest.param("Run", "an item is an object", id="text"),
        pytest.param(
            {**STEP, "status": "done"},
            "status is one of pending, in_progress, completed",
            id="status",
        ),
        pytest.param(
            {**STEP, "status": ["pending"]}, "status is one of", id="list-of-status"
        ),
        pytest.param(
            {"content": "x", "status": "pending"},
            "activeForm is a text; got nothing",
            id="missing",
        ),
        pytest.param({**STEP, "content": 7}, "content is a text; got int", id="number"),
        pytest.param(
            {**STEP, "content": " \u200b\n"}, "content says nothing", id="blank"
        ),
        pytest.param(
            {**STEP, "content": "x" * (MAX_TEXT + 1)}, "say it shorter", id="long"
        ),
    ],
)
def test_what_is_no_item_is_refused_with_what_is_wrong(
    value: JSONValue, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        TodoItem.read(value)


@given(st.text(max_size=600), st.text(max_size=600), st.sampled_from(TODO_STATUSES))
def test_what_was_read_comes_back_as_it_was_written(
    content: str, active: str, status: str
) -> None:
    try:
        item = TodoItem.read(
            {"content": content, "activeForm": active, "status": status}
        )
    except ValueError:
        return

    assert TodoItem.read(item.to_json()) == item
    assert item.content.isprintable() or item.content.splitlines() == [item.content]


def test_a_plan_is_found_under_its_capability() -> None:
    class Plan:
        shown = 0

        async def items(self) -> Sequence[TodoItem]:
            return []

    coordinator = ModuleCoordinator()
    assert todos_of(coordinator) is None
    plan = Plan()
    coordinator.register_capability(TODOS, plan)
    assert todos_of(coordinator) is plan
    coordinator.register_capability(TODOS, "no plan")
    assert todos_of(coordinator) is None
