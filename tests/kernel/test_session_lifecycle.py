"""Opening, initialising and cleaning up sessions: from any task, in any order, on both backends."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping

import anyio
import pytest

from amplifier import AmplifierSession
from amplifier_sdk.contracts import ContextManager, Coordinator, Hooks, Provider, Tool
from amplifier_sdk.errors import (
    ConfigError,
    ModuleLoadError,
    ModuleValidationError,
    SessionBusyError,
    SessionClosedError,
    SessionError,
    TurnCancelled,
)
from amplifier_sdk.events import (
    CANCEL_REQUESTED,
    SESSION_END,
    SESSION_FORK,
    SESSION_RESUME,
    SESSION_START,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.results import HookResult
from amplifier_sdk.secret import withhold
from tests.doubles import (
    Blocking,
    EchoLoop,
    Listener,
    MemoryContext,
    Mount,
    PlainLoop,
    Recorder,
    ScriptedProvider,
    Sentry,
    Worker,
    answer,
    build_loader,
    build_plan,
    build_session,
    call,
    calling,
    mounted_context,
    open_call_ids,
)

Reports = list[MutableMapping[str, object]]


def registering(order: list[str], name: str) -> Mount:
    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        coordinator.register_cleanup(lambda: order.append(name))

    return mount


async def test_a_session_runs_turns_one_after_the_other() -> None:
    async with build_session("one", "two") as session:
        assert await session.execute("a") == "one"
        assert await session.execute("b") == "two"

        assert mounted_context(session.coordinator).roles == [
            "user",
            "assistant",
            "user",
            "assistant",
        ]


async def test_executing_a_bare_session_initialises_it() -> None:
    session = build_session("hello")

    assert await session.execute("hi") == "hello"
    assert session.initialized

    await session.cleanup()
    assert not session.initialized


async def test_a_conversation_begins_with_the_instruction_of_the_plan() -> None:
    session = build_session("hello", instruction="Be brief.")
    async with session:
        await session.execute("hi")
        messages = await session.coordinator.context.get_messages()

    assert messages[0] == {"role": "system", "content": "Be brief."}
    assert [message["role"] for message in messages[1:]] == ["user", "assistant"]


@pytest.mark.parametrize(
    ("stored", "roles"),
    [
        ({"role": "system", "content": "Be kind."}, ["system", "user", "assistant"]),
        (
            {"role": "system", "content": "Tea.", "metadata": {"source": "memory"}},
            ["system", "system", "user", "assistant"],
        ),
        (
            {"role": "user", "content": "Hello"},
            ["system", "user", "user", "assistant"],
        ),
    ],
)
async def test_what_a_context_begins_with_stays(
    stored: MessageDict, roles: list[str]
) -> None:
    context = MemoryContext()
    await context.add_message(stored)
    session = build_session("hello", context=context, instruction="Be brief.")
    async with session:
        await session.execute("hi")
        messages = await session.coordinator.context.get_messages()

    assert [message["role"] for message in messages] == roles
    assert stored in messages


async def test_initialising_twice_mounts_once() -> None:
    session = build_session(tools=[Worker()])

    await session.initialize()
    tools = dict(session.coordinator.tools)
    await session.initialize()

    assert session.coordinator.tools == tools
    await session.cleanup()


async def test_initialising_from_two_tasks_at_once_mounts_once() -> None:
    mounted: list[str] = []
    first_is_in = anyio.Event()
    go_on = anyio.Event()

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        mounted.append("tool")
        first_is_in.set()
        await go_on.wait()
        return Worker()

    session = build_session(tools=[mount])
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(session.initialize)
            await first_is_in.wait()
            group.start_soon(session.initialize)
            await anyio.wait_all_tasks_blocked()
            go_on.set()

    assert mounted == ["tool"]
    await session.cleanup()


async def test_initialize_execute_cleanup_may_use_different_tasks() -> None:
    session = build_session("one", "two")
    answers: list[str] = []

    async def run(prompt: str) -> None:
        answers.append(await session.execute(prompt))

    for step in (
        session.initialize,
        lambda: run("a"),
        lambda: run("b"),
        session.cleanup,
        session.cleanup,
    ):
        async with anyio.create_task_group() as group:
            group.start_soon(step)

    assert answers == ["one", "two"]


async def test_two_sessions_overlap_in_any_order() -> None:
    first, second = build_session("first"), build_session("second")

    await first.initialize()
    await second.initialize()
    assert await second.execute("x") == "second"
    assert await first.execute("x") == "first"
    await first.cleanup()
    await second.cleanup()


async def test_two_open_sessions_run_their_turns_beside_each_other() -> None:
    blocking = Blocking()
    steps = (calling(call("block")), "slow")
    with anyio.fail_after(5):
        async with (
            build_session(*steps, tools=[blocking]) as slow,
            build_session("fast") as fast,
        ):
            answers: list[str] = []

            async def run() -> None:
                answers.append(await slow.execute("x"))

            async with anyio.create_task_group() as group:
                group.start_soon(run)
                await blocking.started.wait()
                answers.append(await fast.execute("x"))
                blocking.release.set()

    assert answers == ["fast", "slow"]


async def test_sessions_may_be_left_in_tasks_of_their_own() -> None:
    """Each `async with` lives in one task; two of them need not nest."""
    first_is_open, second_is_open, first_is_closed = (
        anyio.Event(),
        anyio.Event(),
        anyio.Event(),
    )

    async def first() -> None:
        async with build_session("a") as session:
            first_is_open.set()
            await second_is_open.wait()
            assert await session.execute("x") == "a"
        first_is_closed.set()

    async def second() -> None:
        await first_is_open.wait()
        async with build_session("b") as session:
            second_is_open.set()
            await first_is_closed.wait()
            assert await session.execute("x") == "b"

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(first)
            group.start_soon(second)


async def test_cleanup_releases_backwards_and_once() -> None:
    order: list[str] = []
    modules = [registering(order, name) for name in "abc"]
    session = build_session(tools=modules)

    await session.initialize()
    await session.cleanup()
    await session.cleanup()

    assert order == ["c", "b", "a"]


async def test_cleanup_of_a_session_that_never_started_is_quiet() -> None:
    session = build_session()
    recorder = Recorder.of(session.coordinator.hooks)

    await session.cleanup()

    assert recorder.events == []


@pytest.mark.parametrize("what", ["initialize", "execute", "enter", "stream"])
async def test_a_cleaned_up_session_refuses_to_go_on(what: str) -> None:
    session = build_session("never")
    await session.cleanup()

    with pytest.raises(
        SessionClosedError, match=f"{session.session_id} was cleaned up; make a new one"
    ):
        match what:
            case "initialize":
                await session.initialize()
            case "execute":
                await session.execute("hi")
            case "enter":
                async with session:
                    pass
            case _:
                async with session.stream("hi") as events:
                    async for _ in events:
                        pass


async def test_a_session_is_opened_once() -> None:
    async with build_session("fine") as session:
        with pytest.raises(SessionError, match="is open already"):
            await session.__aenter__()

        assert await session.execute("still") == "fine"


async def test_leaving_a_session_that_was_never_entered_does_nothing() -> None:
    session = build_session("fine")

    assert await session.__aexit__(None, None, None) is None
    assert await session.execute("x") == "fine"
    await session.cleanup()


async def test_error_in_block_propagates_and_releases_everything() -> None:
    order: list[str] = []
    error = KeyError("mine")

    with pytest.raises(KeyError) as caught:
        async with build_session(tools=[registering(order, "a")]):
            raise error

    assert caught.value is error
    assert order == ["a"]


@pytest.mark.parametrize("is_chained", [False, True])
async def test_an_error_of_the_block_keeps_what_it_came_of(is_chained: bool) -> None:
    """Its traceback shows the error that was being handled, and no group that nobody raised."""
    first = OSError("disk full")

    with pytest.raises(ValueError, match="not saved") as caught:
        async with build_session():
            try:
                raise first
            except OSError as error:
                if is_chained:
                    raise ValueError("not saved") from error
                raise ValueError("not saved")  # noqa: B904  # that is the point

    raised = caught.value
    assert raised.__context__ is first
    assert (raised.__cause__, raised.__suppress_context__) == (
        (first, True) if is_chained else (None, False)
    )


async def test_an_exception_group_of_the_block_stays_a_group() -> None:
    inner = ValueError("one")

    with pytest.raises(ExceptionGroup) as caught:
        async with build_session():
            raise ExceptionGroup("mine", [inner])

    assert caught.value.message == "mine"
    assert caught.value.exceptions == (inner,)


async def test_session_start_precedes_first_turn_only() -> None:
    order: list[str] = []
    session = build_session("one", "two", tools=[registering(order, "released")])
    for event in (SESSION_START, SESSION_END):
        session.coordinator.hooks.register(
            event, lambda name, data: order.append(str(name))
        )

    async with session:
        assert order == []
        await session.execute("a")
        await session.execute("b")

    assert order == ["session:start", "session:end", "released"]


async def test_session_end_tells_what_was_spent() -> None:
    session = build_session(calling(call("work")), answer("done"), tools=[Worker()])
    recorder = Recorder.of(session.coordinator.hooks, "session:end")

    async with session:
        await session.execute("go")

    end = recorder.one("session:end")
    assert end["status"] == "completed"
    assert end["session_id"] == session.session_id
    assert end["stats"] == {
        "provider_calls": 2,
        "tool_calls": 1,
        "tool_failures": 0,
        "children": 0,
        "input_tokens": 0,
        "output_tokens": 0,
        "total_tokens": 0,
        "cost_usd": None,
    }


async def test_a_resumed_session_says_so() -> None:
    session = build_session("hi", is_resumed=True)
    recorder = Recorder.of(session.coordinator.hooks, "session:*")

    async with session:
        await session.execute("go on")

    assert recorder.names == [SESSION_RESUME, SESSION_END]


async def test_a_child_session_announces_its_parent_when_it_starts() -> None:
    session = build_session("hi", session_id="child", parent_id="parent")
    recorder = Recorder.of(session.coordinator.hooks)

    async with session:
        pass

    assert recorder.names == [SESSION_FORK, SESSION_END]
    assert recorder.one(SESSION_FORK)["parent"] == "parent"
    assert recorder.one(SESSION_END)["parent_id"] == "parent"


async def test_session_start_carries_metadata_and_redacted_plan() -> None:
    settings = {"metadata": {"user": "ada", "api_key": "sk-secret"}}
    session = build_session("hi", settings=settings)
    recorder = Recorder.of(session.coordinator.hooks, "session:start")

    async with session:
        await session.execute("go")

    start = recorder.one("session:start")
    assert start["metadata"] == settings["metadata"]
    assert "sk-secret" in str(session.config)
    assert "sk-secret" not in str(start["config"])
    assert start["config"] == withhold(session.config)


@pytest.mark.parametrize("raw", [False, True])
async def test_session_resume_carries_plan_where_plan_asks_for_it(
    raw: bool,
) -> None:
    session = build_session("hi", settings={"raw": raw}, is_resumed=True)
    recorder = Recorder.of(session.coordinator.hooks, "session:resume")

    async with session:
        await session.execute("go")

    assert ("config" in recorder.one("session:resume")) is raw


async def test_what_session_start_handler_injects_is_in_first_request() -> None:
    provider = ScriptedProvider("hi")
    session = build_session(provider=provider)
    session.coordinator.hooks.register(
        SESSION_START, Sentry([HookResult.inject("Today is Monday.")]), name="calendar"
    )

    async with session:
        await session.execute("what day is it?")

    assert ("system", "Today is Monday.") in provider.last_messages


async def test_a_second_turn_at_once_is_refused() -> None:
    blocking = Blocking()
    with anyio.fail_after(5):
        async with build_session(
            calling(call("block")), "done", tools=[blocking]
        ) as session:
            async with anyio.create_task_group() as group:
                group.start_soon(session.execute, "first")
                await blocking.started.wait()

                with pytest.raises(
                    SessionBusyError, match=r"runs a turn; wait for it or cancel it"
                ):
                    await session.execute("second")
                with pytest.raises(SessionBusyError):
                    async with session.stream("third"):
                        pass
                blocking.release.set()

            assert mounted_context(session.coordinator).roles == [
                "user",
                "assistant",
                "tool",
                "assistant",
            ]


async def test_a_second_turn_is_refused_while_the_first_still_mounts() -> None:
    is_in, go_on = anyio.Event(), anyio.Event()

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        is_in.set()
        await go_on.wait()
        return Worker()

    session = build_session("one", tools=[mount])
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(session.execute, "first")
            await is_in.wait()
            with pytest.raises(SessionBusyError):
                await session.execute("second")
            go_on.set()

    assert mounted_context(session.coordinator).roles == ["user", "assistant"]
    await session.cleanup()


async def test_a_failed_turn_leaves_the_session_usable() -> None:
    async with build_session(ValueError("no"), "yes") as session:
        with pytest.raises(ValueError, match="no"):
            await session.execute("a")

        assert await session.execute("b") == "yes"


async def test_cleanup_from_another_task_stops_the_running_turn_first() -> None:
    blocking = Blocking()
    order: list[str] = []
    session = build_session(
        calling(call("block")), tools=[blocking, registering(order, "released")]
    )
    for event in (CANCEL_REQUESTED, SESSION_END):
        session.coordinator.hooks.register(
            event, lambda name, data: order.append(str(name))
        )

    async def run() -> None:
        with pytest.raises(TurnCancelled):
            await session.execute("x")
        order.append("turn ended")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await blocking.started.wait()
            await session.cleanup()

    assert sorted(order) == [
        "cancel:requested",
        "released",
        "session:end",
        "turn ended",
    ]
    assert (order[0], order[-1]) == ("cancel:requested", "released")
    assert blocking.ended == "cancelled"
    assert open_call_ids(mounted_context(session.coordinator).messages) == []


async def test_turn_resisting_cancel_does_not_block_cleanup() -> None:
    started, release = anyio.Event(), anyio.Event()
    order: list[str] = []

    async def resist(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        with anyio.CancelScope(shield=True):
            started.set()
            await release.wait()
        return "late"

    session = build_session(
        loop=PlainLoop(resist),
        tools=[registering(order, "released")],
        limits={"cleanup_timeout": 0.05},
    )

    async def run() -> None:
        assert await session.execute("x") == "late"

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await started.wait()
            await session.cleanup()
            assert order == ["released"]
            release.set()


async def test_cleanup_during_mounting_releases_late_mounts() -> None:
    is_in, go_on = anyio.Event(), anyio.Event()
    order: list[str] = []

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        is_in.set()
        await go_on.wait()
        coordinator.register_cleanup(lambda: order.append("released"))
        return Worker()

    session = build_session("never", tools=[mount])

    async def start() -> None:
        with pytest.raises(SessionClosedError):
            await session.initialize()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(start)
            await is_in.wait()
            await session.cleanup()
            go_on.set()

    assert order == ["released"]
    assert not session.initialized


async def test_a_cancelled_cleanup_still_releases_everything() -> None:
    order: list[str] = []
    blocking = Blocking()
    session = build_session(
        calling(call("block")), tools=[blocking, registering(order, "released")]
    )

    async def run() -> None:
        with pytest.raises(TurnCancelled):
            await session.execute("x")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await blocking.started.wait()
            with anyio.CancelScope() as scope:
                scope.cancel()
                await session.cleanup()

    assert order == ["released"]


async def test_hanging_session_end_handler_does_not_block_cleanup() -> None:
    order: list[str] = []
    session = build_session(
        tools=[registering(order, "released")], limits={"cleanup_timeout": 0.05}
    )
    session.coordinator.hooks.register(SESSION_END, Listener())

    with anyio.fail_after(5):
        async with session:
            pass

    assert order == ["released"]


async def test_cleanup_that_raises_hangs_or_exits_does_not_stop_rest(
    reports: Reports,
) -> None:
    order: list[str] = []

    async def hang() -> None:
        await anyio.sleep_forever()

    def fail() -> None:
        raise ValueError("cannot close")

    def leave() -> None:
        raise SystemExit(3)

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        coordinator.register_cleanup(lambda: order.append("first in"))
        for cleanup in (hang, fail, leave):
            coordinator.register_cleanup(cleanup)

    with anyio.fail_after(5):
        async with build_session(tools=[mount], limits={"cleanup_timeout": 0.05}):
            pass

    assert order == ["first in"]
    assert [
        (report["event"], str(report["cleanup"]).rsplit(".", 1)[-1])
        for report in reports
    ] == [
        ("cleanup.failed", "leave"),
        ("cleanup.failed", "fail"),
        ("cleanup.timed_out", "hang"),
    ]


async def test_base_exception_in_cleanup_is_raised_after_the_rest() -> None:
    order: list[str] = []

    class Leak(BaseException):
        pass

    def leak() -> None:
        raise Leak

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        coordinator.register_cleanup(lambda: order.append("first in"))
        coordinator.register_cleanup(leak)

    session = build_session(tools=[mount])
    await session.initialize()

    with pytest.raises(Leak):
        await session.cleanup()

    assert order == ["first in"]
    assert not session.initialized


async def test_an_interrupted_cleanup_still_releases_everything() -> None:
    """No shield holds a Ctrl-C: it is raised wherever the code is."""
    order: list[str] = []

    async def interrupt(event: str, data: object) -> None:
        raise KeyboardInterrupt

    session = build_session(tools=[registering(order, "released")])
    session.coordinator.hooks.register(SESSION_END, interrupt)
    await session.initialize()

    with pytest.raises(KeyboardInterrupt):
        await session.cleanup()

    assert order == ["released"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_asyncio_cancelled_cleanup_still_ends_all_steps() -> None:
    """What `asyncio.wait_for` and the first Ctrl-C under `asyncio.run` do, which anyio's shields do not hold."""
    order: list[str] = []
    blocking = Blocking()

    async def resist(input: JSONObject) -> None:
        with anyio.CancelScope(shield=True):
            await blocking.execute(input)

    session = build_session(
        calling(call("work")),
        tools=[Worker(function=resist), registering(order, "released")],
    )
    session.coordinator.hooks.register(
        SESSION_END, lambda event, data: order.append("told")
    )
    turn = asyncio.create_task(session.execute("x"))
    await blocking.started.wait()
    child = session.fork()

    closing = asyncio.create_task(session.cleanup())
    await anyio.wait_all_tasks_blocked()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing

    assert order == ["told", "released"]
    assert child.is_closed
    blocking.release.set()
    with pytest.raises(TurnCancelled):
        await turn


async def test_failed_start_releases_what_was_mounted_and_names_cause() -> None:
    order: list[str] = []
    session = build_session(
        tools=[registering(order, "a"), registering(order, "b")],
        hooks=[Failing(RuntimeError("no policy"))],
    )

    with pytest.raises(
        ModuleLoadError,
        match=r"Module 'hook-0': mounting failed: RuntimeError: no policy",
    ):
        await session.initialize()

    assert order == ["b", "a"]
    with pytest.raises(SessionClosedError):
        await session.initialize()


async def test_a_failed_start_inside_async_with_raises_its_own_error() -> None:
    with pytest.raises(ModuleLoadError, match="no policy"):
        async with build_session(hooks=[Failing(RuntimeError("no policy"))]):
            pytest.fail("the block must not run")


async def test_a_cancelled_start_releases_what_was_mounted() -> None:
    order: list[str] = []
    is_in = anyio.Event()

    async def hang(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        is_in.set()
        await anyio.sleep_forever()

    session = build_session(tools=[registering(order, "a"), hang])
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(session.initialize)
            await is_in.wait()
            group.cancel_scope.cancel()

    assert order == ["a"]
    assert not session.initialized


async def test_outer_cancellation_of_open_session_releases_everything() -> None:
    order: list[str] = []
    with anyio.fail_after(5), anyio.CancelScope() as scope:
        async with build_session(
            tools=[registering(order, "a"), registering(order, "b")]
        ):
            scope.cancel()
            await anyio.sleep_forever()

    assert scope.cancelled_caught
    assert order == ["b", "a"]


@pytest.mark.parametrize("missing", ["orchestrator", "context"])
async def test_a_session_does_not_start_without_a_loop_or_a_context(
    missing: str,
) -> None:
    async def nothing(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> None:
        return None

    session = build_session(
        loop=nothing if missing == "orchestrator" else None,
        context=nothing if missing == "context" else None,
    )

    with pytest.raises(
        ModuleLoadError,
        match=f"mounted no {missing}; the session cannot start without one",
    ):
        await session.initialize()


async def test_a_turn_without_a_provider_says_why_there_is_none() -> None:
    modules = {
        "loop": EchoLoop(),
        "context": MemoryContext(),
        "broken": Failing(OSError("no key")),
    }
    session = AmplifierSession(build_plan(providers=["broken"]), build_loader(modules))

    with pytest.raises(
        ConfigError,
        match=r"no provider is mounted: Module 'broken': mounting failed: OSError: no key",
    ):
        await session.execute("hi")

    await session.cleanup()


async def test_a_plan_without_providers_says_what_to_write() -> None:
    session = AmplifierSession(
        build_plan(), build_loader({"loop": EchoLoop(), "context": MemoryContext()})
    )

    with pytest.raises(ConfigError, match="name one in the plan's 'providers'"):
        await session.execute("hi")

    await session.cleanup()


async def test_a_loop_that_needs_no_provider_runs_without_one() -> None:
    class Parrot(PlainLoop):
        needs_provider = False

    async def repeat(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        return prompt

    modules = {"loop": Parrot(repeat), "context": MemoryContext()}
    async with AmplifierSession(build_plan(), build_loader(modules)) as session:
        assert await session.execute("hi") == "hi"


async def test_a_loop_that_returns_no_text_is_named() -> None:
    class Mute:
        async def execute(
            self,
            prompt: str,
            context: ContextManager,
            providers: dict[str, Provider],
            tools: dict[str, Tool],
            hooks: Hooks,
        ) -> None:
            return None

    async with build_session("x", loop=Mute()) as session:
        with pytest.raises(
            ModuleValidationError,
            match=r"'loop': its execute returned NoneType; it must return",
        ):
            await session.execute("hi")


@pytest.mark.parametrize("spelling", ["coordinator", "kwargs", "neither"])
async def test_the_coordinator_is_passed_to_loops_that_take_it(spelling: str) -> None:
    received: list[object] = []

    class Named(EchoLoop):
        async def execute(
            self,
            prompt: str,
            context: ContextManager,
            providers: dict[str, Provider],
            tools: dict[str, Tool],
            hooks: Hooks,
            coordinator: object = None,
        ) -> str:
            received.append(coordinator)
            return await super().execute(prompt, context, providers, tools, hooks)

    class CatchingAll(EchoLoop):
        async def execute(
            self,
            prompt: str,
            context: ContextManager,
            providers: dict[str, Provider],
            tools: dict[str, Tool],
            hooks: Hooks,
            **rest: object,
        ) -> str:
            received.append(rest["coordinator"])
            return await super().execute(prompt, context, providers, tools, hooks)

    loops = {"coordinator": Named, "kwargs": CatchingAll, "neither": EchoLoop}
    async with build_session("a", "b", loop=loops[spelling]()) as session:
        assert [await session.execute("x"), await session.execute("y")] == ["a", "b"]

        assert (
            received == []
            if spelling == "neither"
            else [session.coordinator, session.coordinator]
        )


async def test_a_session_is_a_uuid_unless_named() -> None:
    first, second = build_session(), build_session()

    assert first.session_id != second.session_id
    assert build_session(session_id="mine").session_id == "mine"


async def test_the_account_of_a_session_adds_up_its_turns() -> None:
    session = build_session(
        calling(call("work"), call("none", id="other")),
        "a",
        answer("b"),
        tools=[Worker()],
    )

    async with session:
        await session.execute("x")
        await session.execute("y")

    assert session.spending.provider_calls == 3
    assert session.spending.tool_calls == 2
    assert session.spending.tool_failures == 1


class Failing:
    """A module whose mount raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def mount(
        self, coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        raise self.error
