"""What running tools report reaches the reader of the turn and the handlers, before the result, and holds nobody up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Final

import anyio
import pytest

from amplifier import AmplifierSession
from amplifier_sdk import (
    Tool,
    ToolContext,
    ToolError,
    ToolOutput,
    ToolProgress,
    ToolResult,
    tool,
)
from amplifier_sdk.events import TOOL_POST
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.progress import TOOL_OUTPUT, TOOL_PROGRESS
from amplifier_sdk.streaming import StreamEvent, ToolFinished, ToolStarted
from amplifier_sdk.threads import abandoned
from tests.doubles import build_session, call, calling


@tool
async def build(steps: int, context: ToolContext) -> str:
    """Build in steps."""
    for number in range(steps):
        context.progress("compiling", done=number + 1, total=steps)
        context.output(f"file {number}\n")
        await anyio.wait_all_tasks_blocked()
    return f"{context.call_id} {context.tool_name}"


@tool
def build_in_a_thread(steps: int, context: ToolContext) -> str:
    """Build in steps, in a thread."""
    for number in range(steps):
        context.progress("compiling", done=number + 1)
        context.output(f"file {number}\n")
    return "built"


@tool
async def build_at_once(steps: int, context: ToolContext | None = None) -> str:
    """Build without ever letting others run."""
    assert context is not None
    for number in range(steps):
        context.output(f"{number},")
        context.progress(f"step {number}")
    return "built"


class ByHand:
    """A tool without a decorator that takes its context."""

    name = "by_hand"
    description = "Say hello."
    takes_context: Final = True

    async def execute(
        self, input: JSONObject, /, *, context: ToolContext | None = None
    ) -> ToolResult:
        assert context is not None
        context.output("hello")
        return ToolResult(output=context.tool_name)


REPORTING: Final[list[Tool]] = [build, build_in_a_thread, build_at_once, ByHand()]


async def streamed(name: str, arguments: JSONObject) -> list[StreamEvent]:
    """Return what the reader of a turn with one call sees of the call."""
    with anyio.fail_after(10):
        async with (
            build_session(
                calling(call(name, arguments, id="c1")), "end", tools=REPORTING
            ) as session,
            session.stream("go") as events,
        ):
            seen = [event async for event in events]
    kinds = (ToolStarted, ToolProgress, ToolOutput, ToolFinished)
    return [event for event in seen if isinstance(event, kinds)]


def text_of(events: Sequence[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ToolOutput))


def result_of(events: Sequence[StreamEvent]) -> object:
    last = events[-1]
    assert isinstance(last, ToolFinished)
    return last.result.output


async def test_reader_sees_progress_and_output_between_start_and_end() -> None:
    events = await streamed("build", {"steps": 2})

    assert [type(event) for event in events] == [
        *(ToolStarted, ToolOutput, ToolProgress, ToolOutput, ToolProgress, ToolFinished)
    ]
    assert events[2] == ToolProgress(
        call_id="c1", tool_name="build", message="compiling", done=1, total=2
    )
    assert text_of(events) == "file 0\nfile 1\n"
    assert result_of(events) == "c1 build"


async def test_a_tool_in_a_thread_reports_too() -> None:
    events = await streamed("build_in_a_thread", {"steps": 50})

    assert text_of(events) == "".join(f"file {number}\n" for number in range(50))
    assert [event.done for event in events if isinstance(event, ToolProgress)][-1] == 50
    assert result_of(events) == "built"


async def test_what_a_thread_reports_comes_while_it_works() -> None:
    seen = threading.Event()

    @tool
    def wait(context: ToolContext) -> str:
        """Wait until the report was read."""
        context.progress("waiting")
        return "read" if seen.wait(5) else "unread"

    with anyio.fail_after(10):
        async with (
            build_session(calling(call("wait")), "end", tools=[wait]) as session,
            session.stream("go") as events,
        ):
            async for event in events:
                if isinstance(event, ToolProgress):
                    seen.set()
                if isinstance(event, ToolFinished):
                    assert event.result.output == "read"


async def test_unread_reports_are_joined_and_no_output_is_lost() -> None:
    events = await streamed("build_at_once", {"steps": 1000})

    assert len(events) == 4
    assert text_of(events) == "".join(f"{number}," for number in range(1000))
    assert events[2] == ToolProgress(
        call_id="c1", tool_name="build_at_once", message="step 999"
    )


async def test_a_tool_written_by_hand_may_take_its_context() -> None:
    events = await streamed("by_hand", {})

    assert text_of(events) == "hello"
    assert result_of(events) == "by_hand"


async def test_handlers_hear_the_reports_before_the_result() -> None:
    heard: list[tuple[str, object]] = []

    async def note(event: str, data: dict[str, object]) -> None:
        heard.append((event, data.get("text") or data.get("done")))
        assert data["tool_call_id"] == "c1"
        assert data["tool_name"] == "build"

    async with build_session(
        calling(call("build", {"steps": 1}, id="c1")), "end", tools=REPORTING
    ) as session:
        for event in (TOOL_OUTPUT, TOOL_PROGRESS, TOOL_POST):
            session.coordinator.hooks.register(event, note)
        await session.execute("go")

    assert heard == [
        ("tool:output", "file 0\n"),
        ("tool:progress", 1),
        ("tool:post", None),
    ]


@pytest.mark.parametrize("event", [TOOL_OUTPUT, TOOL_PROGRESS], ids=str)
async def test_one_kind_of_listener_is_enough(event: str) -> None:
    heard: list[str] = []

    async with build_session(
        calling(call("build", {"steps": 1})), "end", tools=REPORTING
    ) as session:
        session.coordinator.hooks.register(event, lambda name, _: heard.append(name))
        await session.execute("go")

    assert heard == [event]


async def test_where_nobody_listens_the_tool_runs_all_the_same() -> None:
    async with build_session(
        calling(call("build", {"steps": 3}, id="c1")), "end", tools=REPORTING
    ) as session:
        assert await session.execute("go") == "end"
        results = [
            m["content"]
            for m in await session.coordinator.context.get_messages()
            if m["role"] == "tool"
        ]

    assert results == ["c1 build"]


async def test_a_call_outside_a_session_runs_without_listeners() -> None:
    assert (await build.execute({"steps": 1})).output == " build"
    assert await build(1, ToolContext("mine", "by hand")) == "mine by hand"


async def test_a_handler_that_fails_costs_no_report_and_no_result() -> None:
    def fail(event: str, data: object) -> None:
        raise OSError("disk")

    async with build_session(
        calling(call("build", {"steps": 2}, id="c1")), "end", tools=REPORTING
    ) as session:
        session.coordinator.hooks.register(TOOL_OUTPUT, fail)
        async with session.stream("go") as events:
            seen = [event async for event in events]

    assert text_of(seen) == "file 0\nfile 1\n"


class Halt(BaseException):
    """Something that nobody may catch."""


async def test_what_ends_a_turn_in_a_handler_ends_it_as_it_is() -> None:
    def halt(event: str, data: object) -> None:
        raise Halt

    async with build_session(
        calling(call("build", {"steps": 2})), "end", tools=REPORTING
    ) as session:
        session.coordinator.hooks.register(TOOL_OUTPUT, halt)
        with pytest.raises(Halt):
            await session.execute("go")


async def test_parallel_calls_report_each_for_itself() -> None:
    calls = [call("build", {"steps": 2}, id="a"), call("build", {"steps": 2}, id="b")]
    async with (
        build_session(calling(*calls), "end", tools=REPORTING) as session,
        session.stream("go") as events,
    ):
        seen = [event async for event in events]

    for call_id in ("a", "b"):
        mine = [e for e in seen if isinstance(e, ToolOutput) and e.call_id == call_id]
        assert "".join(e.text for e in mine) == "file 0\nfile 1\n"


class Endless:
    """A sync tool that works until its context tells it to stop."""

    def __init__(self) -> None:
        self.working = threading.Event()
        self.stopped = threading.Event()

    @tool
    def work(self, context: ToolContext) -> str:
        """Work on."""
        try:
            while True:
                context.check()
                self.working.set()
        except ToolError:
            self.stopped.set()
            raise


async def _read(session: AmplifierSession) -> None:
    async with session.stream("go") as events:
        async for _ in events:
            pass


async def _execute(session: AmplifierSession) -> None:
    await session.execute("go")


@pytest.mark.parametrize("use", [_read, _execute])
async def test_thread_whose_call_was_cancelled_stops_at_next_check(
    use: Callable[[AmplifierSession], Coroutine[object, object, None]],
) -> None:
    endless = Endless()
    async with (
        build_session(calling(call("work")), tools=[endless.work]) as session,
        anyio.create_task_group() as group,
    ):
        group.start_soon(use, session)
        await anyio.to_thread.run_sync(endless.working.wait, 10)
        group.cancel_scope.cancel()

    assert await anyio.to_thread.run_sync(endless.stopped.wait, 10)
    with anyio.fail_after(10):
        while abandoned():
            await anyio.lowlevel.checkpoint()


async def test_a_tool_past_its_deadline_is_told_too() -> None:
    endless = Endless()
    limits = {"tool_timeout": 0.05}
    async with build_session(
        calling(call("work")), "end", tools=[endless.work], limits=limits
    ) as session:
        assert await session.execute("go") == "end"

    assert await anyio.to_thread.run_sync(endless.stopped.wait, 10)


async def test_a_tool_that_fails_has_its_reports_brought_first() -> None:
    @tool
    async def fail(context: ToolContext) -> str:
        """Fail."""
        context.output("so far")
        raise OSError("disk")

    async with (
        build_session(calling(call("fail")), "end", tools=[fail]) as session,
        session.stream("go") as events,
    ):
        seen = [
            event
            async for event in events
            if isinstance(event, (ToolOutput, ToolFinished))
        ]

    assert text_of(seen) == "so far"
    assert isinstance(seen[-1], ToolFinished)
    assert seen[-1].result.error == {"message": "disk", "type": "OSError"}
