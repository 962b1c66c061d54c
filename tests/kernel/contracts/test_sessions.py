"""How sessions start, fail, are cancelled and end."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
import pytest

from amplifier import (
    AmplifierSession,
    ModuleLoader,
)
from amplifier.kernel.cancellation import CancellationState, CancellationToken
from amplifier_sdk.contracts import (
    ContextManager,
    Coordinator,
    Hooks,
    Provider,
    Tool,
)
from amplifier_sdk.errors import (
    ConfigError,
    ModuleLoadError,
    TurnCancelled,
)
from amplifier_sdk.events import (
    CANCEL_COMPLETED,
    CANCEL_REQUESTED,
    CancelCompleted,
    CancelRequested,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.doubles import (
    EchoLoop,
    MemoryContext,
    PlainLoop,
    Recorder,
    Step,
    Worker,
    build_loader,
    build_plan,
    build_session,
    call,
    calling,
    mounting,
)
from tests.kernel.families import family

LEAST = {"session": {"orchestrator": "loop", "context": "context"}}


def a_session(plan: Mapping[str, object], **options: object) -> AmplifierSession:
    modules = {"loop": mounting(EchoLoop()), "context": mounting(MemoryContext())}
    return AmplifierSession(
        plan,
        ModuleLoader(modules=modules, search_paths=[], **options),  # type: ignore[arg-type]
    )


class ToldLoop(EchoLoop):
    """A loop of the original's manner: it tells of a cancellation itself."""

    name = "loop-told"

    async def execute(
        self,
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        try:
            return await super().execute(prompt, context, providers, tools, hooks)
        except TurnCancelled:
            await hooks.emit(CANCEL_REQUESTED, CancelRequested(state="graceful"))
            await hooks.emit(CANCEL_COMPLETED, CancelCompleted(was_immediate=False))
            raise


def test_a_cancellation_state_reads_as_its_word() -> None:
    token = CancellationToken()
    assert (token.state, str(token.state)) == ("none", "none")

    token.request_graceful()
    assert token.state == "graceful"
    assert token.state == CancellationState.GRACEFUL
    assert f"{token.state}" == str(token.state) == "graceful"

    token.request_immediate()
    assert token.state is CancellationState("immediate")


async def test_a_turn_without_a_provider_says_why_there_is_none() -> None:
    plan = {**LEAST, "providers": ["provider-missing"]}

    async with a_session(plan, path=[]) as session:
        with pytest.raises(
            ConfigError,
            match="no provider is mounted: Module 'provider-missing': not found",
        ):
            await session.execute("go")


async def test_a_loop_may_declare_that_it_needs_no_provider() -> None:
    class Alone(PlainLoop):
        needs_provider = False

    async def answer(*arguments: object) -> str:
        return "alone"

    modules = {"loop": mounting(Alone(answer)), "context": mounting(MemoryContext())}

    async with AmplifierSession(
        LEAST, ModuleLoader(modules=modules, path=[])
    ) as session:
        assert await session.execute("go") == "alone"


async def test_what_a_module_raised_is_the_cause() -> None:
    cause = OSError("no key")
    modules = {"loop": mounting(EchoLoop()), "context": mounting(cause)}

    with pytest.raises(ModuleLoadError) as caught:
        await AmplifierSession(
            LEAST, ModuleLoader(modules=modules, path=[])
        ).initialize()

    assert caught.value.__cause__ is cause


async def test_a_second_start_and_a_second_cleanup_do_nothing() -> None:
    calls: list[str] = []

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        calls.append("mounted")
        await coordinator.mount("tools", Worker("x"))
        return lambda: calls.append("released")

    session = build_session("hi", tools=[mount])
    for _ in range(2):
        await session.initialize()
    for _ in range(2):
        await session.cleanup()

    assert calls == ["mounted", "released"]


@pytest.mark.parametrize("is_resumed", [False, True])
async def test_the_first_turn_announces_the_session_once(is_resumed: bool) -> None:
    session = build_session(
        "a", "b", is_resumed=is_resumed, settings={"metadata": {"by": "me"}}
    )
    recorder = Recorder.of(session.coordinator.hooks)
    async with session:
        assert recorder.events == []
        await session.execute("x")
        await session.execute("y")

    name = "session:resume" if is_resumed else "session:start"
    assert recorder.names[0] == name
    assert recorder.names.count(name) == 1
    assert recorder.one(name)["metadata"] == {"by": "me"}
    assert ("config" in recorder.one(name)) is not is_resumed


async def test_session_end_comes_before_the_release() -> None:
    order: list[str] = []

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        coordinator.register_cleanup(lambda: order.append("released"))

    session = build_session("a", tools=[mount])
    recorder = Recorder.of(session.coordinator.hooks, "session:end")
    session.coordinator.hooks.register(
        "session:end", lambda event, data: order.append("session:end")
    )
    async with session:
        await session.execute("x")

    assert order == ["session:end", "released"]
    end = recorder.one("session:end")
    assert (end["session_id"], end["status"]) == (session.session_id, "completed")
    assert isinstance(end["stats"], dict)


async def test_a_session_initialises_itself() -> None:
    session = build_session("a")

    assert await session.execute("x") == "a"

    await session.cleanup()


@pytest.mark.parametrize("needs_provider", [True, False])
async def test_no_providers_are_an_error_unless_none_is_needed(
    needs_provider: bool,
) -> None:
    from amplifier import AmplifierSession

    class Loop(PlainLoop):
        pass

    async def repeat(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        return prompt

    loop = Loop(repeat)
    if not needs_provider:
        setattr(Loop, "needs_provider", False)  # noqa: B010  # as a loop declares it
    session = AmplifierSession(
        build_plan(), build_loader({"loop": loop, "context": MemoryContext()})
    )
    async with session:
        if needs_provider:
            with pytest.raises(ConfigError, match="no provider is mounted"):
                await session.execute("x")
        else:
            assert await session.execute("x") == "x"


async def test_what_a_loop_raises_is_what_the_caller_gets() -> None:
    error = KeyError("mine")
    async with build_session(error) as session:
        with pytest.raises(KeyError) as caught:
            await session.execute("x")

    assert caught.value is error
    assert session.status.last_error == {"type": "KeyError", "message": "'mine'"}


async def test_cleaning_up_twice_releases_once() -> None:
    mounted: list[str] = []
    released: list[str] = []

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        mounted.append("one")
        coordinator.hooks.register(
            "session:end", lambda event, data: released.append("heard")
        )
        coordinator.register_cleanup(lambda: released.append("released"))

    session = build_session(tools=[mount])
    await session.initialize()
    await session.initialize()
    await session.cleanup()
    await session.cleanup()

    assert mounted == ["one"]
    assert released == ["heard", "released"]


@pytest.mark.parametrize("loop", [EchoLoop, ToldLoop])
@pytest.mark.parametrize("asks", ["session", "coordinator", "token"])
async def test_a_cancellation_is_reported_once(loop: type[EchoLoop], asks: str) -> None:
    called: list[str] = []

    async def stop(input: JSONObject) -> object:
        match asks:
            case "session":
                await session.cancel()
            case "coordinator":
                await session.coordinator.request_cancel()
            case _:
                session.coordinator.cancellation.request_graceful()
        return "done"

    session = build_session(
        calling(call("work")), "fine", tools=[Worker(function=stop)], loop=loop()
    )
    recorder = Recorder.of(session.coordinator.hooks, "cancel:*")
    session.coordinator.cancellation.on_cancel(lambda: called.append("called"))
    async with session:
        with pytest.raises(TurnCancelled):
            await session.execute("x")
        assert recorder.names == [CANCEL_REQUESTED, CANCEL_COMPLETED]
        assert called == ["called"]

        assert await session.execute("y") == "fine"
        assert recorder.names == [CANCEL_REQUESTED, CANCEL_COMPLETED]


async def test_a_cancel_ends_with_its_turn() -> None:
    async def stop(input: JSONObject) -> object:
        await session.cancel()
        return "done"

    steps: list[Step] = [calling(call("work")), "fine", calling(call("work"))]
    session = build_session(*steps, tools=[Worker(function=stop)])
    recorder = Recorder.of(session.coordinator.hooks, "cancel:*")
    async with session:
        with pytest.raises(TurnCancelled):
            await session.execute("x")
        assert await session.execute("y") == "fine"
        assert not session.coordinator.cancellation.is_cancelled
        with pytest.raises(TurnCancelled):
            await session.execute("z")

    assert recorder.names == [CANCEL_REQUESTED, CANCEL_COMPLETED] * 2


@pytest.mark.parametrize("how", ["constructor", "fork", "spawn"])
async def test_a_child_is_a_session_with_a_parent(how: str) -> None:
    made = family("child")
    async with made.session as session:
        match how:
            case "constructor":
                child = type(session)(
                    session.config, session.loader, parent_id=session.session_id
                )
                async with child:
                    assert await child.execute("x") == "child"
            case "fork":
                async with session.fork() as child:
                    assert await child.execute("x") == "child"
            case _:
                assert (
                    await session.spawn(agent_name="self", instruction="x")
                ).output == "child"
        assert made.child.parent_id == session.session_id
        assert made.events.one("session:fork")["parent"] == session.session_id


@pytest.mark.parametrize("cascades", [True, False])
async def test_cleaning_up_reaches_the_children_unless_not(cascades: bool) -> None:
    made = family()
    await made.session.initialize()
    child = made.session.fork()
    with anyio.fail_after(5):
        await made.session.cleanup(cascade_children=cascades)

        assert child.is_closed is cascades
        await child.cleanup()
