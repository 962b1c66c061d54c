"""Foreign code that leaves a scope open fails alone, and its caller's task stays usable.

Each case is one way to leave a scope in one kind of foreign call. What follows in the
same task shows whether it was contained: a deadline, a task group, another session.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from threading import enumerate as threads
from types import ModuleType
from typing import Final, cast

import anyio
import pytest

from amplifier import AmplifierSession
from amplifier.kernel.foreign import ForeignCall
from amplifier_sdk import ChatRequest, ChatResponse
from amplifier_sdk.errors import (
    BudgetExceededError,
    ModuleLoadError,
    ScopeLeftOpenError,
)
from amplifier_sdk.events import PROVIDER_RESPONSE, TOOL_PRE
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.streaming import Delta
from tests.doubles import (
    MemoryContext,
    PlainLoop,
    PlainProvider,
    Recorder,
    ScriptedProvider,
    Worker,
    answer,
    build_session,
    call,
    calling,
    mounted_context,
    only_result,
)
from tests.kernel.conftest import Reports

KEPT: Final[list[object]] = []


@pytest.fixture(autouse=True)
def forget() -> None:
    KEPT.clear()


async def numbers() -> AsyncGenerator[int, None]:
    """Yield inside a task group, as no generator should."""
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep_forever)
        yield 1
        yield 2


async def limited_numbers() -> AsyncGenerator[int, None]:
    with anyio.move_on_after(5):
        yield 1
        yield 2


async def by_break() -> None:
    async for _ in numbers():
        break


async def by_break_below_a_deadline() -> None:
    with anyio.fail_after(5):
        await by_break()


async def by_two_breaks() -> None:
    async for _ in numbers():
        async for _ in numbers():
            break
        await anyio.lowlevel.checkpoint()
        break


async def by_an_error() -> None:
    async for _ in numbers():
        raise ValueError("no")


async def by_a_stored_generator() -> None:
    generator = numbers()
    KEPT.append(generator)
    await anext(generator)


async def by_a_scope() -> None:
    scope = anyio.CancelScope()
    KEPT.append(scope)
    scope.__enter__()


async def by_a_task_group() -> None:
    group = anyio.create_task_group()
    KEPT.append(group)
    await group.__aenter__()
    group.start_soon(anyio.sleep_forever)


async def by_task_groups_inside_each_other() -> None:
    await by_a_task_group()
    await by_a_task_group()


WAYS: Final = [
    by_break,
    by_break_below_a_deadline,
    by_two_breaks,
    by_an_error,
    by_a_stored_generator,
    by_a_scope,
    by_a_task_group,
    by_task_groups_inside_each_other,
]
Way = Callable[[], Awaitable[None]]

every_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)


async def task_is_usable() -> None:
    """Use what a corrupted task cannot: a deadline, a task group, a session."""
    gc.collect()
    await anyio.lowlevel.checkpoint()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.lowlevel.checkpoint)
        with anyio.move_on_after(0) as scope:
            await anyio.sleep_forever()
        assert scope.cancelled_caught
        async with build_session("fine") as session:
            assert await session.execute("go") == "fine"


async def contained(session: AmplifierSession) -> str | None:
    """Run a turn below a scope and return its answer, or `None` when it failed."""
    with anyio.CancelScope() as scope:
        text: str | None = None
        async with session:
            try:
                text = await session.execute("go")
            except ScopeLeftOpenError:
                await task_is_usable()
            except ValueError as error:
                assert str(error) == "no"
        await task_is_usable()
    assert not scope.cancelled_caught
    return text


@every_way
async def test_tool(way: Way) -> None:
    async def work(_: JSONObject) -> str:
        await way()
        return "done"

    session = build_session(calling(call("work")), "end", tools=[Worker(function=work)])

    assert await contained(session) == "end"
    result = only_result(mounted_context(session.coordinator).messages)
    assert "Tool 'work' left a task group or a cancel scope open" in result


@every_way
async def test_tools_beside_each_other(way: Way) -> None:
    async def work(_: JSONObject) -> str:
        await way()
        return "done"

    calls = calling(call("work", id="a"), call("fine", id="b"), call("work", id="c"))
    fine = Worker(name="fine")
    session = build_session(calls, "end", tools=[Worker(function=work), fine])

    assert await contained(session) == "end"
    messages = mounted_context(session.coordinator).messages
    texts = [message["content"] for message in messages if message["role"] == "tool"]
    assert ["left a task" in str(text) for text in texts] == [True, False, True]


@every_way
async def test_blocking_handler(way: Way) -> None:
    async def decide(event: str, data: object) -> None:
        await way()

    worker = Worker()
    session = build_session(calling(call("work")), "end", tools=[worker])
    session.coordinator.hooks.register(TOOL_PRE, decide)

    assert await contained(session) == "end"
    result = only_result(mounted_context(session.coordinator).messages)
    assert "ScopeLeftOpenError: Handler 'decide' left a task group" in result
    assert worker.inputs == []


@pytest.mark.parametrize("way", [by_break, by_two_breaks], ids=lambda way: way.__name__)
async def test_observer(way: Way) -> None:
    async def observe(event: str, data: object) -> None:
        await way()

    session = build_session("end")
    session.coordinator.hooks.register(PROVIDER_RESPONSE, observe)

    assert await contained(session) == "end"


@every_way
async def test_provider(way: Way) -> None:
    async def ask(_: ChatRequest) -> ChatResponse:
        await way()
        return answer("hello")

    assert await contained(build_session(provider=PlainProvider(ask))) is None


@every_way
async def test_streaming_provider(way: Way) -> None:
    class Streaming(ScriptedProvider):
        @asynccontextmanager
        async def stream(
            self, request: ChatRequest
        ) -> AsyncIterator[AsyncIterator[Delta | ChatResponse]]:
            yield self.items()

        async def items(self) -> AsyncGenerator[Delta | ChatResponse, None]:
            await way()
            yield answer("hello")

    assert await contained(build_session(provider=Streaming())) is None


async def test_stream_that_is_one_generator() -> None:
    """A provider may yield its answer inside a task group: the stream is closed."""

    class Streaming(ScriptedProvider):
        @asynccontextmanager
        async def stream(
            self, request: ChatRequest
        ) -> AsyncIterator[AsyncIterator[Delta | ChatResponse]]:
            yield self.items()

        async def items(self) -> AsyncGenerator[Delta | ChatResponse, None]:
            async with anyio.create_task_group():
                yield answer("hello")

    assert await contained(build_session(provider=Streaming())) is None


@every_way
async def test_context(way: Way) -> None:
    class Context(MemoryContext):
        async def get_messages_for_request(
            self, *args: object, **options: object
        ) -> list[MessageDict]:
            await way()
            return self.messages

    assert await contained(build_session("hello", context=Context())) is None


@every_way
async def test_orchestrator(way: Way) -> None:
    async def loop(*_: object) -> str:
        await way()
        return "end"

    assert await contained(build_session(loop=PlainLoop(loop))) is None


@every_way
async def test_mount(way: Way) -> None:
    async def mount(coordinator: object, config: object) -> None:
        await way()

    session = build_session("end", tools=[mount])

    assert await contained(session) == "end"
    (failure,) = session.failures
    assert isinstance(failure, ModuleLoadError)


@every_way
async def test_ready(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[str] = []

    async def mount(coordinator: object, config: object) -> None: ...

    async def on_session_ready(coordinator: object) -> None:
        reached.append("ready")
        await way()

    package = ModuleType("isolated_module")
    mount.__module__ = package.__name__
    setattr(package, "on_session_ready", on_session_ready)  # noqa: B010
    monkeypatch.setitem(sys.modules, package.__name__, package)
    session = build_session("end", tools=[mount])
    recorder = Recorder.of(session.coordinator.hooks, "module:*")

    assert await contained(session) == "end"
    assert reached == ["ready"]
    (failed,) = recorder.all("module:on_session_ready_failed")
    assert "left a task group" in str(failed["error"]) or way is by_an_error


async def test_scope_of_a_generator_is_left_without_a_failure() -> None:
    """It was closed in its own task, as `aclosing` would have."""

    async def work(input: JSONObject) -> str:
        async for _ in limited_numbers():
            break
        return "done"

    session = build_session(calling(call("work")), "end", tools=[Worker(function=work)])

    assert await contained(session) == "end"
    assert only_result(mounted_context(session.coordinator).messages) == "done"


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # trio's, of what is not closed
async def test_generator_that_outlives_its_call_is_the_event_loop_s() -> None:
    """A tool may read on from a generator in its next call."""
    closed: list[str] = []

    async def lines() -> AsyncGenerator[str, None]:
        try:
            yield "a"
            yield "b"
        finally:
            closed.append("closed")

    KEPT.append(lines())

    async def work(_: JSONObject) -> str:
        (generator,) = KEPT
        return str(await anext(cast("AsyncGenerator[str, None]", generator)))

    calls = calling(call("work", id="1")), calling(call("work", id="2"))
    session = build_session(*calls, "end", tools=[Worker(function=work)])

    assert await contained(session) == "end"
    messages = mounted_context(session.coordinator).messages
    texts = [message["content"] for message in messages if message["role"] == "tool"]
    assert texts == ["a", "b"]
    assert closed == []
    KEPT.clear()
    with anyio.fail_after(5):
        while not closed:
            gc.collect()
            await anyio.lowlevel.checkpoint()


async def test_generators_are_closed_whatever_others_raise(
    reports: Reports,
) -> None:
    closed: list[str] = []

    async def broken(error: BaseException) -> AsyncGenerator[int, None]:
        try:
            yield 1
        finally:
            closed.append(type(error).__name__)
            raise error

    async def work(input: JSONObject) -> str:
        for error in (ValueError(), ExceptionGroup("several", [OSError()])):
            async for _ in broken(error):
                break
        return "done"

    session = build_session(calling(call("work")), "end", tools=[Worker(function=work)])

    assert await contained(session) == "end"
    assert only_result(mounted_context(session.coordinator).messages) == "done"
    assert closed == ["ExceptionGroup", "ValueError"]
    assert [each["event"] for each in reports].count("generator.not_closed") == 2


async def test_interrupt_that_closes_a_generator_is_raised() -> None:
    async def interrupted() -> AsyncGenerator[int, None]:
        try:
            yield 1
        finally:
            raise KeyboardInterrupt

    async def work() -> None:
        async for _ in interrupted():
            break

    with pytest.raises(KeyboardInterrupt):
        await ForeignCall("call", anyio.CancelScope()).run(work())


async def test_runtime_error_of_a_call_is_raised_as_it_is() -> None:
    error = RuntimeError("its own")

    async def work() -> None:
        raise error

    with pytest.raises(RuntimeError) as caught:
        await ForeignCall("call", anyio.CancelScope()).run(work())

    assert caught.value is error


def test_generator_without_an_event_loop_is_closed_as_well() -> None:
    """Whoever drives a coroutine by hand has no hooks of an event loop."""

    async def work() -> AsyncGenerator[int, None]:
        generator = plain()
        await anext(generator)
        async for _ in plain():
            break
        return generator

    async def plain() -> AsyncGenerator[int, None]:
        yield 1
        yield 2

    driven = ForeignCall("call").run(work())
    with pytest.raises(StopIteration) as end:
        next(driven)

    end.value.value = None
    del end, driven
    gc.collect()


# -- cancellation


async def stubborn() -> None:
    """Go on however often it is cancelled."""
    while True:
        with suppress(BaseException):
            await anyio.sleep_forever()


async def test_tool_that_ignores_its_deadline_is_left_behind(
    reports: Reports,
) -> None:
    async def work(_: JSONObject) -> str:
        await stubborn()
        return "never"

    limits = {"tool_timeout": 0.01, "cleanup_timeout": 0.05}
    tool = Worker(function=work)
    session = build_session(calling(call("work")), "end", tools=[tool], limits=limits)

    with anyio.fail_after(5):
        assert await contained(session) == "end"
    result = only_result(mounted_context(session.coordinator).messages)
    assert "Tool 'work' did not finish within 0.01 s" in result
    assert "call.abandoned" in [each["event"] for each in reports]
    # It holds what is never resumed, also when the process ends.
    assert [each.name for each in threads()].count("abandoned calls") == 1


async def test_tool_that_ignores_the_end_of_its_turn_is_left_behind() -> None:
    async def work(_: JSONObject) -> str:
        await stubborn()
        return "never"

    limits = {"wall_time": 0.05, "cleanup_timeout": 0.05}
    tool = Worker(function=work)
    session = build_session(calling(call("work")), "end", tools=[tool], limits=limits)

    with anyio.fail_after(5):
        async with session:
            with pytest.raises(BudgetExceededError, match="wall_time"):
                await session.execute("go")
        await task_is_usable()


async def test_loop_that_ignores_the_end_of_its_turn_is_left_behind() -> None:
    async def loop(*_: object) -> str:
        await stubborn()
        return "never"

    limits = {"wall_time": 0.01, "cleanup_timeout": 0.05}
    session = build_session(loop=PlainLoop(loop), limits=limits)

    with anyio.fail_after(5):
        async with session:
            with pytest.raises(BudgetExceededError, match="wall_time"):
                await session.execute("go")
        await task_is_usable()


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_failure_of_a_task_in_a_group_left_open_is_reported(
    anyio_backend_name: str, reports: Reports
) -> None:
    """trio stores it in the nursery; the group of asyncio's is asked for by nobody."""
    assert anyio_backend_name == "trio"

    async def fail_as_it_ends() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise ValueError("no")

    async def work() -> None:
        for end in (fail_as_it_ends, anyio.sleep_forever):
            group = anyio.create_task_group()
            KEPT.append(group)
            await group.__aenter__()
            group.start_soon(end)
        await anyio.wait_all_tasks_blocked()

    with pytest.raises(ScopeLeftOpenError, match="Tool 'work' left a task group"):
        await ForeignCall("Tool 'work'", anyio.CancelScope()).run(work())

    assert [each["event"] for each in reports] == ["nursery.failed"]
    await task_is_usable()


async def test_call_that_answers_after_its_deadline_is_reported(
    reports: Reports,
) -> None:
    async def work() -> str:
        try:
            await anyio.sleep_forever()
        except BaseException:
            return "late"
        return "never"

    scope = anyio.CancelScope()

    assert await ForeignCall("Tool 'work'", scope, 0.01).run(work()) == "late"
    assert [each["event"] for each in reports] == ["call.ignored_cancellation"]


async def test_call_may_cancel_its_own_parts_as_often_as_it_likes() -> None:
    async def work() -> int:
        for _ in range(200):
            with anyio.move_on_after(0):
                await anyio.sleep_forever()
        return 1

    scope = anyio.CancelScope()

    assert await ForeignCall("call", scope, 60, grace=0).run(work()) == 1
