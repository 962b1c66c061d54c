"""Whatever happens in a turn, what began is ended, once, in order, and under the step that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import anyio
import attrs
import pytest
from anyio.abc import TaskGroup
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amplifier import AmplifierSession
from amplifier.testing import (
    EventRecorder,
    MockContextManager,
    MockTool,
    ScriptedProvider,
)
from amplifier_kit.scripted import Part, ScriptedAnswer, answer, call
from amplifier_sdk.errors import LLMError, RateLimitError, ToolError, TurnCancelled
from amplifier_sdk.history import open_calls
from amplifier_sdk.jsontypes import JSONValue
from tests.loops.parts import LOOPS, open_loop

ENDS: Final = {
    "execution:start": ("execution:end",),
    "plan:start": ("plan:end",),
    "provider:request": ("provider:response", "provider:error"),
    "content_block:start": ("content_block:end",),
    "tool:pre": ("tool:post", "tool:error"),
}
"""Every event that begins something, and those of which exactly one ends it."""

STEPS: Final = {name for start, ends in ENDS.items() for name in (start, *ends)} - {
    *("execution:start", "execution:end", "plan:start", "plan:end")
}
"""The events of a step that is no part of the turn's own."""

STOPS: Final = ("graceful", "immediate", "caller")


@attrs.frozen
class Script:
    """One turn: what the model answers, how each tool behaves, and after how many events somebody stops it."""

    answers: Sequence[ScriptedAnswer]
    stop_after: int | None
    stop: str
    plans: bool


def parts() -> st.SearchStrategy[Part]:
    tools = st.sampled_from(["good", "bad", "broken", "slow", "missing"])
    arguments = st.sampled_from([{"x": 1}, {"x": "one"}, "{not json"])
    return st.one_of(
        st.sampled_from(["Some words. ", "More. ", ""]),
        st.builds(call, tools, arguments),
        st.builds(call, tools, arguments),
        st.sampled_from(
            [RateLimitError("busy"), LLMError("down"), OSError("no route"), 0.0]
        ),
    )


SCRIPTS: Final = st.builds(
    Script,
    answers=st.lists(
        st.builds(lambda made: answer(*made), st.lists(parts(), max_size=4)),
        min_size=1,
        max_size=4,
    ),
    stop_after=st.none() | st.integers(0, 40),
    stop=st.sampled_from(STOPS),
    plans=st.booleans(),
)


def tools() -> list[MockTool]:
    schema: Mapping[str, JSONValue] = {
        "type": "object",
        "properties": {"x": {"type": "integer"}},
    }

    async def slow(_: object) -> str:
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        return "slow"

    return [
        MockTool("good", "fine", input_schema=schema),
        MockTool("bad", ToolError("it cannot be done")),
        MockTool("broken", ValueError("a bug")),
        MockTool("slow", slow),
    ]


async def play(loop: str, script: Script) -> tuple[EventRecorder, MockContextManager]:
    """Run a script's turn and return what was heard and what is remembered."""
    provider = ScriptedProvider(*script.answers)
    config = {"planning": script.plans} if loop == "events" else {}
    session = open_loop(
        loop, provider, *tools(), config=config, limits={"iterations": 6}
    )
    recorder = EventRecorder.of(session.coordinator.hooks)
    with anyio.fail_after(10):
        async with session:
            memory = session.coordinator.context
            assert isinstance(memory, MockContextManager)
            async with anyio.create_task_group() as group:
                group.start_soon(run_turn, session)
                await stop_turn(script, session, recorder, group)
    return recorder, memory


async def run_turn(session: AmplifierSession) -> None:
    with suppress(LLMError, OSError, TurnCancelled):
        await session.execute("Go")


async def stop_turn(
    script: Script, session: AmplifierSession, recorder: EventRecorder, group: TaskGroup
) -> None:
    """Stop the turn after so many events, unless it has ended by then."""
    if script.stop_after is None:
        return
    while len(recorder.events) < script.stop_after:
        if "execution:end" in recorder.names:
            return
        await anyio.lowlevel.checkpoint()
    if script.stop == "caller":
        group.cancel_scope.cancel()
    else:
        await session.cancel(immediate=script.stop == "immediate")


def key_of(event: str, data: dict[str, object]) -> tuple[str, object, object]:
    """Say what an event is about: a call by its id, a block by its index, anything by the step that it belongs to."""
    return (
        event.split(":", maxsplit=1)[0],
        data.get("span_id"),
        data.get("tool_call_id", data.get("block_index")),
    )


def check(recorder: EventRecorder) -> None:
    """Assert that all that began is ended once, after it began, and nothing else is ended."""
    running: dict[tuple[str, object, object], str] = {}
    refused = 0
    for event, data in recorder.events:
        key = key_of(event, data)
        if event in ENDS:
            assert key not in running, f"{event} began twice: {recorder.names}"
            running[key] = event
        elif any(event in ends for ends in ENDS.values()):
            began = running.pop(key, None)
            if began is None:
                assert event == "tool:error", (
                    f"{event} ended what had not begun: {recorder.names}"
                )
                refused += 1  # a call that was refused before handlers were asked
            else:
                assert event in ENDS[began]
    assert running == {}, f"{running} never ended: {recorder.names}"


def check_ids(recorder: EventRecorder) -> None:
    """Assert that the steps nest: a request under the turn, a call under the request that it answers."""
    turn = next(data for event, data in recorder.events if event == "execution:start")
    request = turn
    for event, data in recorder.events:
        if event in STEPS:
            if event == "provider:request":
                request = data
            if event.startswith("tool:"):
                above = request
            else:
                above = turn
            assert data["turn_id"] == turn["turn_id"], event
            assert data["parent_span_id"] == above["span_id"], event
            assert isinstance(data["iteration"], int), event
        elif event.split(":")[0] in ("prompt", "execution", "orchestrator", "plan"):
            assert data["span_id"] == turn["span_id"], event


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("loop", LOOPS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(script=SCRIPTS)
def test_whatever_happens_in_a_turn_its_events_are_balanced(
    loop: str, backend: str, script: Script
) -> None:
    recorder, memory = anyio.run(play, loop, script, backend=backend)
    names = recorder.names
    if "execution:start" not in names:  # it was stopped before it began
        return
    check(recorder)
    check_ids(recorder)
    ending = [
        name
        for name in names
        if name in ("prompt:complete", "orchestrator:complete", "execution:end")
    ]
    assert ending in (
        ["orchestrator:complete", "execution:end"],
        [*ending[:1], "orchestrator:complete", "execution:end"],
    )
    status = recorder.one("execution:end")["status"]
    assert ("prompt:complete" in names) == (
        status in ("success", "incomplete", "empty")
    )
    assert open_calls(memory.messages) == ()
