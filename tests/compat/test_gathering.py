"""A loop of the original that runs all calls of an answer at once, as its streaming loop does."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import anyio
import pytest

from amplifier import AmplifierSession
from amplifier.testing import (
    EventRecorder,
    MemoryJournal,
    MockTool,
    create_test_session,
)
from amplifier_sdk import HookResult, ToolResult
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import BudgetExceededError, LLMError, TurnCancelled
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.compat.modules import gathering
from tests.doubles import answer, call, calling

CALLS = calling(call("work", {"n": 1}, id="a"), call("work", {"n": 2}, id="b"))


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    """Such loops run on asyncio alone."""
    return "asyncio", {}


async def results(session: AmplifierSession) -> list[tuple[object, str]]:
    messages = await session.coordinator.context.get_messages()
    return [
        (each["tool_call_id"], str(each["content"]))
        for each in messages
        if each["role"] == "tool"
    ]


async def test_calls_run_at_once_and_keep_their_order() -> None:
    running = [anyio.Event(), anyio.Event()]
    journal, recorder = MemoryJournal(), EventRecorder()

    async def work(given: JSONObject) -> ToolResult:
        index = int(str(given["n"])) - 1
        running[index].set()
        await running[1 - index].wait()
        return ToolResult(output={"n": given["n"]})

    async with create_test_session(
        CALLS,
        answer("done"),
        tools=[MockTool("work", work)],
        hooks=[recorder],
        orchestrator=gathering,
        journal=journal,
    ) as session:
        assert await session.execute("go") == "done"
        assert await results(session) == [("a", '{"n": 1}'), ("b", '{"n": 2}')]

    assert session.spending.tool_calls == 2
    assert session.spending.provider_calls == 2
    assert (
        journal.kinds.count("CallStarted") == journal.kinds.count("CallFinished") == 2
    )
    assert len(recorder.data("tool:pre")) == len(recorder.data("tool:post")) == 2
    assert recorder.one("execution:end")["status"] == "completed"


async def test_a_call_of_several_is_denied_alone() -> None:
    class Guard:
        async def mount(
            self, coordinator: Coordinator, config: Mapping[str, JSONValue]
        ) -> None:
            coordinator.hooks.register("tool:pre", self.deny)

        async def deny(self, event: str, data: dict[str, object]) -> HookResult | None:
            if data["tool_call_id"] == "b":
                return HookResult.deny("one is enough")
            return None

    work = MockTool("work", "ok")
    async with create_test_session(
        CALLS, answer("done"), tools=[work], hooks=[Guard()], orchestrator=gathering
    ) as session:
        await session.execute("go")
        first, second = await results(session)

    assert first == ("a", "ok")
    assert "one is enough" in second[1]
    assert work.call_count == 1


async def test_a_cancel_reaches_every_call_and_closes_the_history() -> None:
    both = anyio.Event()
    started: set[object] = set()
    ended: set[object] = set()

    async def work(given: JSONObject) -> ToolResult:
        started.add(given["n"])
        if len(started) == 2:
            both.set()
        try:
            await anyio.sleep(3_600)
        finally:
            ended.add(given["n"])
        return ToolResult(output="never")

    async with create_test_session(
        CALLS, tools=[MockTool("work", work)], orchestrator=gathering
    ) as session:
        async with anyio.create_task_group() as group:

            async def cancel() -> None:
                await both.wait()
                await session.cancel(immediate=True)

            group.start_soon(cancel)
            with pytest.raises(TurnCancelled):
                await session.execute("go")
        ids = [call_id for call_id, _ in await results(session)]

    assert ended == started == {1, 2}
    assert sorted(map(str, ids)) == ["a", "b"]


async def test_a_limit_holds_in_calls_at_once() -> None:
    work = MockTool("work", "ok")
    async with create_test_session(
        CALLS, answer("done"), tools=[work], orchestrator=gathering
    ) as session:
        with suppress(BudgetExceededError):
            await session.execute("go", {"tool_calls": 1})

    assert work.call_count == 1


async def test_an_error_of_the_provider_reaches_the_loop_and_the_caller() -> None:
    recorder = EventRecorder()
    error = LLMError("down", retryable=True, status_code=503)
    async with create_test_session(
        error, hooks=[recorder], orchestrator=gathering
    ) as session:
        with pytest.raises(LLMError, match="down"):
            await session.execute("go")

    assert recorder.data("provider:error")[-1]["status_code"] == 503
