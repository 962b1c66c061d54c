"""The recorder of events, as listener, as hook module and in place of a registry."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
import pytest

from amplifier import HookRegistry
from amplifier.testing import (
    EventRecorder,
    MockContextManager,
    MockOrchestrator,
    ScriptedProvider,
    TestCoordinator,
)
from amplifier_sdk import HookResult
from amplifier_sdk.decisions import HOOK_DECIDED
from amplifier_sdk.events import TOOL_POST, TOOL_PRE, ToolPre


async def test_it_records_what_it_is_given_and_lets_it_go_on() -> None:
    recorder = EventRecorder()

    result = await recorder.record("tool:pre", {"tool_name": "Write"})

    assert result == HookResult()
    assert recorder.events == [("tool:pre", {"tool_name": "Write"})]


async def test_data_are_copied_and_values_kept() -> None:
    recorder, value = EventRecorder(), object()
    data = {"value": value}

    await recorder.record("mine", data)
    data.clear()
    await recorder.record("none")

    assert recorder.events == [("mine", {"value": value}), ("none", {})]
    assert recorder.one("mine")["value"] is value


async def test_events_are_found_by_name_and_pattern() -> None:
    recorder = EventRecorder()
    for number, name in enumerate(["tool:pre", "tool:post", "tool:pre"]):
        await recorder.record(name, {"number": number})

    assert recorder.names == ["tool:pre", "tool:post", "tool:pre"]
    assert len(recorder.get_events()) == 3
    assert recorder.get_events("tool:pre") == [
        ("tool:pre", {"number": 0}),
        ("tool:pre", {"number": 2}),
    ]
    assert len(recorder.get_events("tool:*")) == 3
    assert recorder.data("tool:post") == [{"number": 1}]
    assert recorder.one("tool:post") == {"number": 1}


async def test_one_event_must_be_one() -> None:
    recorder = EventRecorder()
    with pytest.raises(LookupError, match="0 events match 'tool:pre'; heard: nothing"):
        recorder.one("tool:pre")

    await recorder.record("a")
    await recorder.record("a")
    with pytest.raises(LookupError, match="2 events match 'a'; heard: a, a"):
        recorder.one("a")


async def test_it_forgets_on_demand() -> None:
    recorder = EventRecorder()
    await recorder.record("a")

    events = recorder.get_events()
    recorder.clear()

    assert recorder.events == []
    assert len(events) == 1


async def test_it_hears_a_registry_before_everybody_else() -> None:
    hooks = HookRegistry()
    hooks.register(TOOL_PRE, lambda event, data: HookResult.deny("no"), priority=-1000)
    recorder = EventRecorder.of(hooks)

    emission = await hooks.emit(TOOL_PRE, ToolPre(tool_name="Write", tool_input={}))

    assert emission.denied
    assert recorder.one(TOOL_PRE)["tool_name"] == "Write"


async def test_it_hears_what_matches_until_it_is_taken_back() -> None:
    hooks, recorder = HookRegistry(), EventRecorder()
    stop = recorder.listen(hooks, "tool:*")

    await hooks.emit("tool:pre", {})
    await hooks.emit("other", {})
    stop()
    await hooks.emit("tool:pre", {})

    assert recorder.names == ["tool:pre"]


async def test_it_is_a_handler() -> None:
    hooks, recorder = HookRegistry(), EventRecorder()
    hooks.register("mine", recorder)

    await hooks.emit("mine", {"x": 1})

    assert recorder.one("mine")["x"] == 1


async def test_it_is_a_hook_module() -> None:
    coordinator, recorder = TestCoordinator(), EventRecorder()
    cleanup = await recorder.mount(coordinator, {})

    await coordinator.hooks.emit("mine", {})
    cleanup()
    await coordinator.hooks.emit("mine", {})

    assert recorder.names == ["mine"]


async def test_it_stands_in_for_a_registry() -> None:
    recorder, heard = EventRecorder(), []

    def hear(event: str, data: Mapping[str, object]) -> HookResult:
        heard.append(event)
        return HookResult(action="modify", data={"x": 2})

    recorder.register("mine", hear, name="hear")
    emission = await recorder.emit("mine", {"x": 1})
    collected = await recorder.emit_and_collect("mine", {"x": 1})
    await recorder.emit("test:event", None)

    assert emission.data == {"x": 2}
    assert collected == [{"x": 2}]
    assert heard == ["mine", "mine"]
    assert [name for name in recorder.names if name != HOOK_DECIDED] == [
        "mine",
        "mine",
        "test:event",
    ]
    assert HOOK_DECIDED in recorder.names
    assert recorder.data("mine")[0]["x"] == 1
    assert recorder.has_handlers("anything")


async def test_a_loop_runs_with_it_as_hooks() -> None:
    recorder, context = EventRecorder(), MockContextManager()
    provider = ScriptedProvider("Hi")

    answer = await MockOrchestrator().execute(
        "Hello", context, {"scripted": provider}, {}, recorder
    )

    assert answer == "Hi"
    assert context.roles == ["user", "assistant"]
    assert recorder.one("prompt:submit")["prompt"] == "Hello"
    assert recorder.names[-1] == "execution:end"


async def test_a_test_can_wait_for_events() -> None:
    recorder = EventRecorder()
    found: list[object] = []

    async def wait() -> None:
        found.append(await recorder.wait_for(TOOL_POST, count=2))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            await recorder.record("tool:post", {"number": 1})
            await recorder.record("other")
            await anyio.wait_all_tasks_blocked()
            assert found == []
            await recorder.record("tool:post", {"number": 2})
        assert await recorder.wait_for("tool:post") == {"number": 1}

    assert found == [{"number": 2}]


async def test_waiting_in_vain_says_what_was_heard() -> None:
    recorder = EventRecorder()
    with pytest.raises(
        TimeoutError, match=r"0 of 1 'tool:post' within 0\.01 s; heard: nothing"
    ):
        await recorder.wait_for("tool:post", timeout=0.01)

    await recorder.record("tool:pre")
    with pytest.raises(
        TimeoutError, match=r"0 of 1 'tool:post' within 0\.01 s; heard: tool:pre"
    ):
        await recorder.wait_for("tool:post", timeout=0.01)
