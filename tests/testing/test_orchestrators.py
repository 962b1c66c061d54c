"""The orchestrator with a script, and the least loop."""

from __future__ import annotations

import pytest

from amplifier.testing import (
    EventRecorder,
    MockContextManager,
    MockOrchestrator,
    MockTool,
    ScriptedOrchestrator,
    ScriptedProvider,
    answer,
    call,
    create_test_session,
)
from amplifier_sdk.checks import check_instance


def test_they_satisfy_the_contract() -> None:
    assert check_instance("orchestrator", ScriptedOrchestrator(["One"])) == []
    assert check_instance("orchestrator", MockOrchestrator()) == []


async def test_a_script_is_played_and_then_it_is_done() -> None:
    orchestrator, context = (
        ScriptedOrchestrator(responses=["One", "Two"]),
        MockContextManager(),
    )

    answers = [
        await orchestrator.execute(
            prompt=prompt,
            context=context,
            providers={},
            tools={},
            hooks=EventRecorder(),
        )
        for prompt in ("a", "b", "c")
    ]

    assert answers == ["One", "Two", "DONE"]
    assert (orchestrator.call_count, orchestrator.prompts) == (3, ["a", "b", "c"])
    assert context.messages[:2] == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "One"},
    ]


async def test_a_script_may_raise() -> None:
    recorder = EventRecorder()

    with pytest.raises(ValueError, match="boom"):
        await ScriptedOrchestrator([ValueError("boom")]).execute(
            "a", MockContextManager(), {}, {}, recorder
        )

    assert recorder.one("execution:end")["status"] == "error"


async def test_the_kernel_runs_it_with_and_without_providers() -> None:
    recorder = EventRecorder()
    orchestrator = ScriptedOrchestrator(["Hi", "Bye"])

    async with create_test_session(
        orchestrator=orchestrator, hooks=[recorder]
    ) as session:
        assert await session.execute("Hello") == "Hi"
        await session.coordinator.unmount("providers", "scripted")
        assert await session.execute("Go") == "Bye"

    assert recorder.data("prompt:submit")[0]["prompt"] == "Hello"
    assert [data["status"] for data in recorder.data("orchestrator:complete")] == [
        "success",
        "success",
    ]


async def test_the_least_loop_asks_until_no_tool_is_called() -> None:
    provider = ScriptedProvider(answer(call("mock_tool", {"x": 1}, id="c1")), "Done")
    tool, context = MockTool(), MockContextManager()

    text = await MockOrchestrator().execute(
        "Go", context, {"p": provider}, {"mock_tool": tool}, EventRecorder()
    )

    assert text == "Done"
    assert tool.calls == [{"x": 1}]
    assert context.roles == ["user", "assistant", "tool", "assistant"]
    assert context.results == {"c1": "Success"}
