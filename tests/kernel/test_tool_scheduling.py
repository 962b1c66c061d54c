"""Which calls run beside each other, how long each may take, and what is kept when one of them goes wrong."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import attrs
import pytest

from amplifier.testing import VirtualClock
from amplifier_sdk import ToolContext, tool
from amplifier_sdk.contracts import ContextManager, Hooks, Provider, Tool
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.doubles import (
    MemoryJournal,
    PlainLoop,
    Recorder,
    Worker,
    answer,
    build_session,
    call,
    calling,
    mounted_context,
    open_call_ids,
)


@attrs.define(eq=False)
class Timed(Worker):
    """A tool with all that a tool may say of how it runs."""

    read_only: object = None
    timeout: object = None


@attrs.define(eq=False)
class Yard:
    """Notes which tools run beside each other, and in which order they start."""

    running: set[str] = attrs.field(factory=set)
    beside: dict[str, set[str]] = attrs.field(factory=dict)
    started: list[str] = attrs.field(factory=list)

    def tool(self, name: str, *, read_only: object = None) -> Timed:
        async def work(input: JSONObject) -> object:
            self.started.append(str(input.get("n", name)))
            self.running.add(name)
            for _ in range(4):
                await anyio.lowlevel.checkpoint()
                self.beside.setdefault(name, set()).update(self.running - {name})
            self.running.discard(name)
            return str(input.get("n", name))

        return Timed(name, work, read_only=read_only)


async def test_changing_calls_run_one_at_a_time_in_order() -> None:
    yard = Yard()
    tools = [yard.tool("write", read_only=False), yard.tool("edit", read_only=False)]
    tools += [yard.tool("read", read_only=True), yard.tool("plain")]
    names = ["write", "read", "edit", "plain", "write"]
    calls = [
        call(name, {"n": f"{name}-{n}"}, id=f"{n}") for n, name in enumerate(names)
    ]
    async with build_session(calling(*calls), "end", tools=tools) as session:
        await session.execute("go")

        results = list(mounted_context(session.coordinator).results.values())
    assert results == ["write-0", "read-1", "edit-2", "plain-3", "write-4"]
    assert [name for name in yard.started if name[:4] in ("writ", "edit")] == [
        "write-0",
        "edit-2",
        "write-4",
    ]
    assert {
        "write": {"edit"} & yard.beside["write"],
        "edit": {"write"} & yard.beside["edit"],
    } == {
        "write": set(),
        "edit": set(),
    }
    assert yard.beside["read"] >= {"plain", "write"}
    assert "write" in yard.beside["plain"]


@pytest.mark.parametrize("says", [True, None, 0, "no"])
async def test_calls_without_declared_changes_run_concurrently(
    says: object,
) -> None:
    yard = Yard()
    tools = [yard.tool("one", read_only=says), yard.tool("two", read_only=says)]
    async with build_session(
        calling(call("one"), call("two")), "end", tools=tools
    ) as session:
        await session.execute("go")
    assert yard.beside == {"one": {"two"}, "two": {"one"}}


async def test_a_call_of_no_tool_does_not_hold_up_the_others() -> None:
    yard = Yard()
    tools = [yard.tool("write", read_only=False), yard.tool("read", read_only=True)]
    calls = [call("write"), call("nothing"), call("read")]
    async with build_session(calling(*calls), "end", tools=tools) as session:
        await session.execute("go")

        first, second, third = mounted_context(session.coordinator).results.values()
    assert (first, third) == ("write", "read")
    assert str(second).startswith("Error: There is no tool 'nothing'")


def test_a_function_tool_says_what_it_does() -> None:
    @tool(read_only=False, timeout=5)
    def change() -> str:
        """Change something."""
        return ""

    @tool
    def plain() -> str:
        """Do something."""
        return ""

    assert (change.read_only, change.timeout, change.exclusive) == (False, 5, False)
    assert (plain.read_only, plain.timeout) == (None, None)


async def sleeps(input: JSONObject) -> object:
    await anyio.sleep(60)
    return "slept"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize(
    ("timeout", "result"),
    [
        (59, "Error: Tool 'work' did not finish within 59 s"),
        (59.5, "Error: Tool 'work' did not finish within 59.5 s"),
        (61, "slept"),
        (None, "Error: Tool 'work' did not finish within 30 s"),
        (0, "Error: Tool 'work' did not finish within 30 s"),
        (True, "Error: Tool 'work' did not finish within 30 s"),
        (float("inf"), "Error: Tool 'work' did not finish within 30 s"),
        ("61", "Error: Tool 'work' did not finish within 30 s"),
    ],
    ids=["shorter", "fraction", "longer", "none", "zero", "boolean", "endless", "text"],
)
def test_a_tool_s_own_time_limit_counts_before_the_session_s(
    timeout: object, result: str, backend: str
) -> None:
    async def main() -> list[JSONValue]:
        worker = Timed(function=sleeps, timeout=timeout)
        session = build_session(
            calling(call("work")), "end", tools=[worker], limits={"tool_timeout": 30}
        )
        async with session:
            await session.execute("go")
            return list(mounted_context(session.coordinator).results.values())

    assert VirtualClock().run(main, backend=backend) == [result]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_tool_that_reports_has_its_own_time_limit_too(backend: str) -> None:
    @tool(timeout=5)
    async def work(context: ToolContext) -> str:
        """Work."""
        await anyio.sleep(60)
        return "slept"

    async def main() -> list[JSONValue]:
        async with build_session(calling(call("work")), "end", tools=[work]) as session:
            await session.execute("go")
            return list(mounted_context(session.coordinator).results.values())

    assert VirtualClock().run(main, backend=backend) == [
        "Error: Tool 'work' did not finish within 5 s"
    ]


async def test_each_call_of_a_batch_has_its_own_deadline() -> None:
    slow = Timed("slow", sleeps, timeout=0.001)
    async with build_session(
        calling(call("slow"), call("work")), "end", tools=[slow, Worker()]
    ) as session:
        await session.execute("go")

        results = list(mounted_context(session.coordinator).results.values())
    assert results == ["Error: Tool 'slow' did not finish within 0.001 s", "done"]


class StoppedError(BaseException):
    """What no wall to foreign code stops."""


async def test_what_sibling_finished_is_kept_when_another_goes_wrong() -> None:
    finished = anyio.Event()

    async def work(input: JSONObject) -> object:
        finished.set()
        return "the work"

    async def fail(input: JSONObject) -> object:
        await finished.wait()
        await anyio.wait_all_tasks_blocked()
        raise StoppedError

    tools = [Worker("work", work), Worker("fail", fail), Worker("slow", sleeps)]
    session = build_session(
        calling(call("work"), call("fail"), call("slow")), tools=tools
    )
    recorder = Recorder.of(session.coordinator.hooks, "tool:*")
    async with session:
        with pytest.raises(StoppedError):
            await session.execute("go")

        results = mounted_context(session.coordinator).results
    assert results == {
        "id-work": "the work",
        "id-fail": "Error: the call did not finish: the turn was cancelled",
        "id-slow": "Error: the call did not finish: the turn was cancelled",
    }
    ends = {
        str(data["tool_name"]): name
        for name, data in recorder.events
        if name != "tool:pre"
    }
    assert ends == {"work": "tool:post", "fail": "tool:error", "slow": "tool:error"}


@pytest.mark.parametrize("announces", [True, False])
async def test_a_loop_written_by_hand_keeps_what_a_sibling_finished(
    announces: bool,
) -> None:
    done = anyio.Event()

    async def by_hand(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        calls = [
            call("work", {"n": 1}, id="a"),
            call("work", {"n": 2}, id="b"),
            call("slow", id="c"),
        ]
        await context.add_message(calling(*calls).to_message())

        async def run(number: int) -> None:
            asked = calls[number]
            if announces:
                await hooks.emit(
                    "tool:pre", {"tool_name": asked.name, "tool_input": asked.arguments}
                )
            await tools[asked.name].execute(asked.arguments)
            if number == 1:
                done.set()

        async def breaks() -> None:
            await done.wait()
            await anyio.wait_all_tasks_blocked()
            raise RuntimeError("The loop broke")

        async with anyio.create_task_group() as group:
            group.start_soon(breaks)
            for number in range(3):
                group.start_soon(run, number)
        return ""

    async def work(input: JSONObject) -> object:
        return f"work {input['n']}"

    session = build_session(
        answer(""),
        loop=PlainLoop(by_hand),
        tools=[Worker("work", work), Worker("slow", sleeps)],
    )
    recorder = Recorder.of(session.coordinator.hooks, "tool:*")
    async with session:
        with pytest.raises(ExceptionGroup):
            await session.execute("go")

        memory = mounted_context(session.coordinator)
        assert memory.results == {
            "a": "work 1",
            "b": "work 2",
            "c": "Error: the call did not finish: the turn failed",
        }
        assert open_call_ids(memory.messages) == []
    reported = [data["tool_name"] for data in recorder.all("tool:error")]
    # a loop that announces its calls tells their ends too
    assert reported == ([] if announces else ["slow"])


async def test_handwritten_loop_without_history_still_closes_call() -> None:
    async def by_hand(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        await context.add_message(
            calling(call("work", id="a"), call("work", id="b")).to_message()
        )
        await tools["work"].execute({})
        raise RuntimeError("The loop broke")

    async with build_session(
        answer(""), loop=PlainLoop(by_hand), tools=[Worker()]
    ) as session:
        with pytest.raises(RuntimeError):
            await session.execute("go")

        results = mounted_context(session.coordinator).results
    assert results == {
        "a": "done",
        "b": "Error: the call did not finish: the turn failed",
    }


class FailingJournal(MemoryJournal):
    """A journal whose disk is full when a call ends."""

    async def append(self, record: object, /) -> None:
        if type(record).__name__ == "CallFinished":
            raise OSError("no space left")


async def test_a_call_whose_journal_fails_is_announced_as_failed() -> None:
    session = build_session(
        calling(call("work")), tools=[Worker()], journal=FailingJournal()
    )
    recorder = Recorder.of(session.coordinator.hooks, "tool:*")
    async with session:
        with pytest.raises(OSError, match="no space left"):
            await session.execute("go")
    assert recorder.names == ["tool:pre", "tool:error"]
    error = recorder.one("tool:error")["error"]
    assert isinstance(error, dict)
    assert (error["type"], error["message"]) == (
        "OSError",
        "The call did not finish: no space left",
    )


@pytest.mark.parametrize("place", ["handler", "tool"])
async def test_a_cancelled_call_is_announced_as_failed(place: str) -> None:
    reached = anyio.Event()

    async def wait(*_: object) -> None:
        reached.set()
        await anyio.sleep_forever()

    session = build_session(
        calling(call("work")),
        tools=[Worker(function=wait if place == "tool" else None)],
    )
    recorder = Recorder.of(session.coordinator.hooks, "tool:*")
    if place == "handler":
        session.coordinator.hooks.register("tool:pre", wait)
    with anyio.fail_after(5):
        async with session, anyio.create_task_group() as group:
            group.start_soon(session.execute, "go")
            await reached.wait()
            group.cancel_scope.cancel()
    assert recorder.names == ["tool:pre", "tool:error"]
    error = recorder.one("tool:error")["error"]
    assert isinstance(error, dict)
    assert (error["type"], error["message"]) == (
        "cancelled",
        "The call did not finish: it was cancelled",
    )


async def test_interrupt_in_one_of_several_calls_ends_the_turn() -> None:
    """It is raised where the calls were made, and the call beside it is cancelled."""
    ends: list[str] = []

    async def interrupt(_: JSONObject) -> str:
        raise KeyboardInterrupt

    async def wait(_: JSONObject) -> str:
        try:
            await anyio.sleep_forever()
        finally:
            ends.append("wait")
        return "never"

    tools = [Worker("stop", interrupt), Worker("wait", wait)]
    session = build_session(calling(call("wait"), call("stop")), "end", tools=tools)

    with anyio.fail_after(5), pytest.raises(KeyboardInterrupt):
        async with session:
            await session.execute("go")

    assert ends == ["wait"]
