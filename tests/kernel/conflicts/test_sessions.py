"""Where the contracts and the original's code disagree about sessions: what holds here.

The number in each name is the row of the list of conflicts.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

import anyio
import pytest

from amplifier_sdk.contracts import ContextManager, Coordinator, Hooks, Provider, Tool
from amplifier_sdk.errors import ConfigError, LLMError, TurnCancelled
from amplifier_sdk.events import CANCEL_COMPLETED, CANCEL_REQUESTED, CancelCompleted, CancelRequested
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.results import HookResult
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
    mounted_context,
)
from tests.kernel.families import family

Reports = list[MutableMapping[str, object]]


@pytest.mark.parametrize("takes_it", [True, False])
async def test_row_12_a_loop_gets_the_coordinator_only_if_it_takes_one(takes_it: bool) -> None:
    seen: list[object] = []

    class Taking:
        async def execute(
            self,
            prompt: str,
            context: ContextManager,
            providers: dict[str, Provider],
            tools: dict[str, Tool],
            hooks: Hooks,
            coordinator: object,
        ) -> str:
            seen.append(coordinator)
            return "taken"

    async def five(
        prompt: str, context: ContextManager, providers: dict[str, Provider], tools: dict[str, Tool], hooks: Hooks
    ) -> str:
        return "five"

    async with build_session("x", loop=Taking() if takes_it else PlainLoop(five)) as session:
        assert await session.execute("go") == ("taken" if takes_it else "five")

        assert seen == ([session.coordinator] if takes_it else [])


async def test_row_21_injections_are_measured_in_characters_and_the_budget_is_counted_anew_each_turn(
    reports: Reports,
) -> None:
    text = "é" * 40  # ten tokens, eighty bytes
    session = build_session("a", "b", settings={"injection_size_limit": 40, "injection_budget_per_turn": 10})
    session.coordinator.hooks.register("prompt:submit", lambda event, data: HookResult.inject(text), name="one")
    async with session:
        for prompt in "xy":
            await session.execute(prompt)
        assert reports == []
        session.coordinator.hooks.register("prompt:submit", lambda event, data: HookResult.inject(text), name="two")
        with pytest.raises(LLMError, match="script"):
            await session.execute("z")

    assert [(report["event"], report["tokens"]) for report in reports] == [("injection.over_budget", 20)]


async def test_row_21_an_injection_over_the_size_limit_is_truncated_and_reported(reports: Reports) -> None:
    session = build_session("a", settings={"injection_size_limit": 3})
    session.coordinator.hooks.register("prompt:submit", lambda event, data: HookResult.inject("four"), name="one")
    async with session:
        assert await session.execute("x") == "a"
        stored = [text["content"] for text in mounted_context(session.coordinator).messages]
    assert stored[0] == "fou"
    assert [(report["event"], report["characters"]) for report in reports] == [("injection.truncated", 4)]


@pytest.mark.parametrize("is_resumed", [False, True])
async def test_row_32_the_first_turn_announces_the_session_once_before_its_loop(is_resumed: bool) -> None:
    session = build_session("a", "b", is_resumed=is_resumed, settings={"metadata": {"by": "me"}})
    recorder = Recorder.of(session.coordinator.hooks)
    async with session:
        assert recorder.events == []
        await session.execute("x")
        await session.execute("y")

    name = "session:resume" if is_resumed else "session:start"
    assert recorder.names[0] == name
    assert recorder.names.count(name) == 1
    assert recorder.one(name)["metadata"] == {"by": "me"}
    assert "config" not in recorder.one(name)


async def test_row_33_session_end_comes_before_the_release_with_status_and_stats() -> None:
    order: list[str] = []

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        coordinator.register_cleanup(lambda: order.append("released"))

    session = build_session("a", tools=[mount])
    recorder = Recorder.of(session.coordinator.hooks, "session:end")
    session.coordinator.hooks.register("session:end", lambda event, data: order.append("session:end"))
    async with session:
        await session.execute("x")

    assert order == ["session:end", "released"]
    end = recorder.one("session:end")
    assert (end["session_id"], end["status"]) == (session.session_id, "completed")
    assert isinstance(end["stats"], dict)


async def test_row_34_a_session_initialises_itself() -> None:
    session = build_session("a")

    assert await session.execute("x") == "a"

    await session.cleanup()


@pytest.mark.parametrize("needs_provider", [True, False])
async def test_row_35_a_turn_without_providers_is_an_error_unless_its_loop_needs_none(needs_provider: bool) -> None:
    from amplifier import AmplifierSession

    class Loop(PlainLoop):
        pass

    async def repeat(
        prompt: str, context: ContextManager, providers: dict[str, Provider], tools: dict[str, Tool], hooks: Hooks
    ) -> str:
        return prompt

    loop = Loop(repeat)
    if not needs_provider:
        setattr(Loop, "needs_provider", False)  # noqa: B010  # as a loop declares it
    session = AmplifierSession(build_plan(), build_loader({"loop": loop, "context": MemoryContext()}))
    async with session:
        if needs_provider:
            with pytest.raises(ConfigError, match="no provider is mounted"):
                await session.execute("x")
        else:
            assert await session.execute("x") == "x"


async def test_row_36_what_a_loop_raises_is_what_the_caller_gets() -> None:
    error = KeyError("mine")
    async with build_session(error) as session:
        with pytest.raises(KeyError) as caught:
            await session.execute("x")

    assert caught.value is error
    assert session.status.last_error == {"type": "KeyError", "message": "'mine'"}


async def test_row_37_cleaning_up_twice_releases_once_and_initialising_twice_mounts_once() -> None:
    mounted: list[str] = []
    released: list[str] = []

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        mounted.append("one")
        coordinator.hooks.register("session:end", lambda event, data: released.append("heard"))
        coordinator.register_cleanup(lambda: released.append("released"))

    session = build_session(tools=[mount])
    await session.initialize()
    await session.initialize()
    await session.cleanup()
    await session.cleanup()

    assert mounted == ["one"]
    assert released == ["heard", "released"]


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


@pytest.mark.parametrize("loop", [EchoLoop, ToldLoop])
@pytest.mark.parametrize("asks", ["session", "coordinator", "token"])
async def test_row_38_a_cancellation_is_told_once_whoever_tells_it(loop: type[EchoLoop], asks: str) -> None:
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

    session = build_session(calling(call("work")), "fine", tools=[Worker(function=stop)], loop=loop())
    recorder = Recorder.of(session.coordinator.hooks, "cancel:*")
    session.coordinator.cancellation.on_cancel(lambda: called.append("called"))
    async with session:
        with pytest.raises(TurnCancelled):
            await session.execute("x")
        assert recorder.names == [CANCEL_REQUESTED, CANCEL_COMPLETED]
        assert called == ["called"]

        assert await session.execute("y") == "fine"
        assert recorder.names == [CANCEL_REQUESTED, CANCEL_COMPLETED]


async def test_row_38_a_cancel_is_forgotten_when_the_next_turn_starts_and_may_be_asked_again() -> None:
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
async def test_row_44_a_child_is_a_session_with_a_parent(how: str) -> None:
    made = family("child")
    async with made.session as session:
        match how:
            case "constructor":
                child = type(session)(session.config, session.loader, parent_id=session.session_id)
                async with child:
                    assert await child.execute("x") == "child"
            case "fork":
                async with session.fork() as child:
                    assert await child.execute("x") == "child"
            case _:
                assert (await session.spawn(agent_name="self", instruction="x")).output == "child"
        assert made.child.parent_id == session.session_id
        assert made.events.one("session:fork")["parent"] == session.session_id


@pytest.mark.parametrize("cascades", [True, False])
async def test_row_44_cleaning_up_reaches_the_children_unless_told_otherwise(cascades: bool) -> None:
    made = family()
    await made.session.initialize()
    child = made.session.fork()
    with anyio.fail_after(5):
        await made.session.cleanup(cascade_children=cascades)

        assert child.is_closed is cascades
        await child.cleanup()
