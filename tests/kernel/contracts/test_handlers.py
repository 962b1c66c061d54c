"""How handlers are named, and which events they hear."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from amplifier import (
    HookRegistry,
)
from amplifier_sdk.events import (
    ALL_EVENTS,
)
from tests.doubles import (
    Recorder,
    Sentry,
)


def test_a_handler_has_a_unique_name_of_its_own() -> None:
    def guard(event: str, data: Mapping[str, object]) -> None: ...

    hooks = HookRegistry()
    for _ in range(3):
        hooks.register("x", guard)
    hooks.register("x", Sentry())

    assert hooks.list_handlers("x") == {"x": ["guard", "guard#2", "guard#3", "Sentry"]}


@pytest.mark.parametrize(
    ("pattern", "heard"),
    [("*", True), ("provider:*", True), ("*:error", True), ("tool:*", False)],
)
async def test_a_pattern_hears_what_fits(pattern: str, heard: bool) -> None:
    hooks = HookRegistry()
    recorder = Recorder()
    hooks.register(pattern, recorder.hear)

    await hooks.emit("provider:error", {})

    assert recorder.names == (["provider:error"] if heard else [])


async def test_at_one_priority_a_pattern_is_behind_the_name() -> None:
    hooks, order = HookRegistry(), []
    hooks.register("*", lambda event, data: order.append("any"))
    hooks.register("tool:*", lambda event, data: order.append("tools"))
    hooks.register("tool:post", lambda event, data: order.append("name"))
    hooks.register("*", lambda event, data: order.append("early"), priority=-1)
    hooks.register("tool:post", lambda event, data: order.append("late"), priority=1)

    await hooks.emit("tool:post", {})

    assert order == ["early", "name", "any", "tools", "late"]


async def test_any_other_name_is_an_event_as_well() -> None:
    hooks, recorder = HookRegistry(), Recorder()
    hooks.register("agent:*", recorder.hear)
    hooks.register("error:tool", recorder.hear)

    await hooks.emit("agent:start", {"name": "x"})
    await hooks.emit("error:tool", None)

    assert recorder.names == ["agent:start", "error:tool"]
    assert not {"agent:start", "error:tool"} & set(ALL_EVENTS)
    assert len(ALL_EVENTS) == len(set(ALL_EVENTS)) == 43
