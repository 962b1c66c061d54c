"""Stopping a turn, wherever it is: the step ends, what is known is kept, the history stays valid."""

from __future__ import annotations

import gc
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, MutableMapping
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import Final
from weakref import ref

import anyio
import anyio.from_thread
import attrs
import pytest

from amplifier import AmplifierSession, ModuleCoordinator
from amplifier.kernel.cancellation import CancellationState, CancellationToken
from amplifier_sdk import ChatRequest, ChatResponse, tool
from amplifier_sdk.contracts import ContextManager, Coordinator, Hooks, Provider, Tool
from amplifier_sdk.delegation import ChildResult
from amplifier_sdk.errors import TurnCancelled
from amplifier_sdk.events import (
    CANCEL_COMPLETED,
    CANCEL_REQUESTED,
    PROVIDER_REQUEST,
    SESSION_START,
    TOOL_POST,
    TOOL_PRE,
)
from amplifier_sdk.journal import CallFinished, JournalRecord
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.results import HookResult
from amplifier_sdk.streaming import Delta, TextDelta
from amplifier_sdk.threads import abandoned
from tests.doubles import (
    Blocking,
    Generated,
    Listener,
    MemoryContext,
    MemoryJournal,
    Person,
    PlainLoop,
    PlainProvider,
    Recorder,
    ScriptedProvider,
    Step,
    Worker,
    answer,
    build_session,
    call,
    calling,
    mounted_context,
    only_result,
    open_call_ids,
)
from tests.kernel.families import Family, family, fresh
from tests.kernel.turns import cancel_from_outside, cancelled_turn

Reports = list[MutableMapping[str, object]]


@attrs.define(eq=False)
class Gate:
    """A place in a turn where the first to come waits."""

    reached: anyio.Event = attrs.field(factory=anyio.Event)
    released: anyio.Event = attrs.field(factory=anyio.Event)

    async def wait(self) -> None:
        if not self.reached.is_set():
            self.reached.set()
            await self.released.wait()

    def release(self) -> None:
        self.released.set()


class ThreadGate(Gate):
    """The same for code in a worker thread."""

    def __init__(self) -> None:
        super().__init__()
        self.thread_may_end = threading.Event()

    def wait_in_thread(self) -> None:
        anyio.from_thread.run_sync(self.reached.set)
        assert self.thread_may_end.wait(20)

    def release(self) -> None:
        self.thread_may_end.set()


def in_a_plain_provider(gate: Gate) -> AmplifierSession:
    async def ask(request: ChatRequest) -> ChatResponse:
        await gate.wait()
        return calling(call("work"))

    return build_session(provider=PlainProvider(ask, "again"), tools=[Worker()])


def in_the_middle_of_a_stream(gate: Gate) -> AmplifierSession:
    turns: Iterator[ChatResponse] = iter(
        [calling(call("work"), text="Half done"), answer("again")]
    )

    async def generate(
        request: ChatRequest,
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        response = next(turns)
        yield TextDelta(text=response.text[:5])
        await gate.wait()
        yield TextDelta(text=response.text[5:])
        yield response

    return build_session(provider=Generated(generate), tools=[Worker()])


def in_an_async_tool(gate: Gate) -> AmplifierSession:
    async def work(input: JSONObject) -> object:
        await gate.wait()
        return "released"

    return build_session(
        calling(call("work"), text="I will work"),
        "again",
        tools=[Worker(function=work)],
    )


def in_a_thread(gate: Gate) -> AmplifierSession:
    assert isinstance(gate, ThreadGate)

    @tool
    def work() -> str:
        """Block."""
        gate.wait_in_thread()
        return "released"

    return build_session(calling(call("work")), "again", tools=[work])


def in_a_batch(gate: Gate) -> AmplifierSession:
    finished = anyio.Event()

    async def quick(input: JSONObject) -> object:
        finished.set()
        return "kept"

    async def slow(input: JSONObject) -> object:
        await finished.wait()
        await gate.wait()
        return "released"

    async def late(input: JSONObject) -> object:
        await gate.released.wait()
        return "released"

    tools = [Worker("quick", quick), Worker("slow", slow), Worker("late", late)]
    return build_session(
        calling(call("quick"), call("slow"), call("late")), "again", tools=tools
    )


def in_a_handler(event: str, gate: Gate) -> AmplifierSession:
    async def hear(name: str, data: dict[str, object]) -> HookResult | None:
        await gate.wait()
        return None

    session = build_session(calling(call("work")), "again", tools=[Worker()])
    session.coordinator.hooks.register(event, hear)
    return session


def in_a_context_write(role: str, gate: Gate) -> AmplifierSession:
    async def hold(message: MessageDict) -> None:
        if message["role"] == role:
            await gate.wait()

    context = MemoryContext()
    context.on_add = hold
    return build_session(
        calling(call("work"), call("work", id="second")),
        "again",
        tools=[Worker()],
        context=context,
    )


def in_a_question_to_the_person(gate: Gate) -> AmplifierSession:
    class Slow(Person):
        async def request_approval(self, *question: object) -> str:
            await gate.wait()
            return "Allow"

    session = build_session(
        calling(call("work")), "again", tools=[Worker()], approval=Slow()
    )
    session.coordinator.hooks.register(
        TOOL_PRE, lambda event, data: HookResult.ask("May it?"), name="guard"
    )
    return session


def in_the_provider_of_a_child(gate: Gate) -> AmplifierSession:
    async def ask(request: ChatRequest) -> ChatResponse:
        await gate.wait()
        return calling(call("work"))

    made = family(
        calling(call("delegate")), ask, "again", tools={"tool-work": fresh(Worker)}
    )
    return made.session


def in_a_tool_of_a_grandchild(gate: Gate) -> AmplifierSession:
    async def work(input: JSONObject) -> object:
        await gate.wait()
        return "released"

    steps: list[Step] = [
        calling(call("delegate")),
        calling(call("delegate")),
        calling(call("work")),
        "again",
    ]
    return family(
        *steps, tools={"tool-work": fresh(lambda: Worker(function=work))}
    ).session


PLACES: Final[dict[str, Callable[[Gate], AmplifierSession]]] = {
    "provider": in_a_plain_provider,
    "stream": in_the_middle_of_a_stream,
    "async tool": in_an_async_tool,
    "thread": in_a_thread,
    "batch": in_a_batch,
    "question": in_a_question_to_the_person,
    "child": in_the_provider_of_a_child,
    "grandchild": in_a_tool_of_a_grandchild,
    "session:start handler": partial(in_a_handler, SESSION_START),
    "provider:request handler": partial(in_a_handler, PROVIDER_REQUEST),
    "tool:pre handler": partial(in_a_handler, TOOL_PRE),
    "tool:post handler": partial(in_a_handler, TOOL_POST),
    "write of the prompt": partial(in_a_context_write, "user"),
    "write of the answer": partial(in_a_context_write, "assistant"),
    "write of a result": partial(in_a_context_write, "tool"),
}


@contextmanager
def ending(gate: Gate) -> Iterator[None]:
    """Let a thread end, whatever the test finds."""
    try:
        yield
    finally:
        gate.release()


def a_gate(place: str) -> Gate:
    return ThreadGate() if place == "thread" else Gate()


async def the_next_turn_works(session: AmplifierSession) -> None:
    messages = mounted_context(session.coordinator).messages
    assert open_call_ids(messages) == []
    for provider in session.coordinator.providers.values():
        assert isinstance(provider, (ScriptedProvider, PlainProvider))
        provider.steps[:-1] = []

    assert await session.execute("and now?") == "again"

    assert open_call_ids(messages) == []
    assert messages[-2] == {"role": "user", "content": "and now?"}


def its_cancellations(session: AmplifierSession) -> Recorder:
    """Record what a session says of its cancellation, and not what its children say of theirs."""
    recorder = Recorder()
    session.coordinator.hooks.register(
        "cancel:*", recorder.hear, -1000, decides=False, inherited=False
    )
    return recorder


@pytest.mark.parametrize("place", PLACES)
async def test_graceful_cancel_finishes_step_and_starts_no_other(
    place: str,
) -> None:
    gate = a_gate(place)
    with anyio.fail_after(10), ending(gate):
        async with PLACES[place](gate) as session:
            recorder = its_cancellations(session)

            async with cancelled_turn(session, gate.reached) as cancelled:
                await session.cancel()
                gate.release()

            assert not cancelled[0].immediate
            assert recorder.names == [CANCEL_REQUESTED, CANCEL_COMPLETED]
            assert recorder.one(CANCEL_REQUESTED)["state"] == "graceful"
            assert recorder.one(CANCEL_COMPLETED)["was_immediate"] is False
            await the_next_turn_works(session)


@pytest.mark.parametrize("place", PLACES)
async def test_an_immediate_cancel_ends_the_running_step(place: str) -> None:
    gate = a_gate(place)
    with anyio.fail_after(10), ending(gate):
        async with PLACES[place](gate) as session:
            recorder = its_cancellations(session)

            async with cancelled_turn(session, gate.reached) as cancelled:
                await session.cancel(immediate=True)

            assert cancelled[0].immediate
            assert recorder.names == [CANCEL_REQUESTED, CANCEL_COMPLETED]
            assert recorder.one(CANCEL_REQUESTED)["state"] == "immediate"
            assert recorder.one(CANCEL_COMPLETED)["was_immediate"] is True
            await the_next_turn_works(session)


@pytest.mark.parametrize("place", PLACES)
async def test_a_second_cancel_may_be_more_urgent(place: str) -> None:
    gate = a_gate(place)
    with anyio.fail_after(10), ending(gate):
        async with PLACES[place](gate) as session:
            recorder = its_cancellations(session)

            async with cancelled_turn(session, gate.reached):
                await session.cancel()
                await session.cancel()
                await session.cancel(immediate=True)
                await session.cancel(immediate=True)

            assert [data["state"] for data in recorder.all(CANCEL_REQUESTED)] == [
                "graceful",
                "immediate",
            ]
            assert recorder.one(CANCEL_COMPLETED)["was_immediate"] is True
            await the_next_turn_works(session)


@pytest.mark.parametrize("place", PLACES)
async def test_cancelling_caller_ends_turn_and_closes_history(
    place: str,
) -> None:
    gate = a_gate(place)
    with anyio.fail_after(10), ending(gate):
        async with PLACES[place](gate) as session:
            recorder = Recorder.of(session.coordinator.hooks, "cancel:*")
            await cancel_from_outside(session, gate.reached)

            assert recorder.events == []
            await the_next_turn_works(session)


@pytest.mark.parametrize("place", sorted(PLACES.keys() - {"thread"}))
async def test_a_cancelled_session_is_freed(place: str) -> None:
    """A host of many sessions has no room for those that it closed.

    A thread that nothing can cancel has its arguments until it ends.
    """

    async def cancel_once() -> ref[ModuleCoordinator]:
        gate = a_gate(place)
        with anyio.fail_after(10), ending(gate):
            async with PLACES[place](gate) as session:
                async with cancelled_turn(session, gate.reached):
                    await session.cancel(immediate=True)
                return ref(session.coordinator)

    coordinator = await cancel_once()
    await anyio.wait_all_tasks_blocked()
    gc.collect()

    assert coordinator() is None


async def test_what_model_had_begun_is_kept_as_incomplete_answer() -> None:
    gate = Gate()
    with anyio.fail_after(5):
        async with in_the_middle_of_a_stream(gate) as session:
            async with cancelled_turn(session, gate.reached) as cancelled:
                await session.cancel(immediate=True)

            assert cancelled[0].partial_text == "Half "
            assert mounted_context(session.coordinator).messages == [
                {"role": "user", "content": "go"},
                {
                    "role": "assistant",
                    "content": "Half ",
                    "metadata": {"incomplete": True},
                },
            ]


async def test_whole_answer_is_not_stored_twice_when_tool_cancelled() -> None:
    gate = Gate()
    with anyio.fail_after(5):
        async with in_an_async_tool(gate) as session:
            async with cancelled_turn(session, gate.reached) as cancelled:
                await session.cancel(immediate=True)

            assert "at once" in str(cancelled[0])
            assert cancelled[0].partial_text == "I will work"
            assert mounted_context(session.coordinator).roles == [
                "user",
                "assistant",
                "tool",
            ]


async def test_a_finished_call_of_a_cancelled_batch_keeps_its_result() -> None:
    gate = Gate()
    with anyio.fail_after(5):
        async with in_a_batch(gate) as session:
            async with cancelled_turn(session, gate.reached):
                await anyio.wait_all_tasks_blocked()
                await session.cancel(immediate=True)

            context = mounted_context(session.coordinator)
            assert context.results == {
                "id-quick": "kept",
                "id-slow": "Error: the call did not finish: the turn was cancelled",
                "id-late": "Error: the call did not finish: the turn was cancelled",
            }
            made_up = {"synthesized": True}
            assert [message.get("metadata") for message in context.messages[-3:]] == [
                None,
                made_up,
                made_up,
            ]


async def test_calls_that_a_graceful_cancel_kept_from_starting_say_so() -> None:
    gate = Gate()
    with anyio.fail_after(5):
        async with in_a_plain_provider(gate) as session:
            async with cancelled_turn(session, gate.reached):
                await session.cancel()
                gate.release()

            assert (
                only_result(mounted_context(session.coordinator).messages)
                == "Error: Not run: the turn was cancelled"
            )


async def test_cancelled_post_handlers_withhold_result_of_run_call() -> None:
    """A `tool:post` handler may be what takes a secret out, so the raw result must not slip past it."""
    gate = Gate()
    with anyio.fail_after(5):
        async with in_a_handler(TOOL_POST, gate) as session:
            async with cancelled_turn(session, gate.reached):
                await session.cancel(immediate=True)

            text = only_result(mounted_context(session.coordinator).messages)
            assert (
                text
                == "Error: The call ran, but the turn ended before its result was checked"
            )


async def test_result_being_journaled_when_turn_was_cancelled_is_kept() -> None:
    gate = Gate()

    class Slow(MemoryJournal):
        async def append(self, record: JournalRecord) -> None:
            await super().append(record)
            if isinstance(record, CallFinished):
                await gate.wait()

    session = build_session(
        calling(call("work")), "again", tools=[Worker()], journal=Slow()
    )
    with anyio.fail_after(5):
        async with session:
            await cancel_from_outside(session, gate.reached)

            assert only_result(mounted_context(session.coordinator).messages) == "done"


async def test_repeated_call_id_is_not_answered_with_old_result() -> None:
    gate = Gate()
    runs: list[int] = []

    async def work(input: JSONObject) -> object:
        runs.append(1)
        if len(runs) == 2:
            await gate.wait()
        return f"run {len(runs)}"

    session = build_session(
        calling(call("work")), calling(call("work")), tools=[Worker(function=work)]
    )
    with anyio.fail_after(5):
        async with session:
            await cancel_from_outside(session, gate.reached)

            texts = [
                m["content"]
                for m in mounted_context(session.coordinator).messages
                if m["role"] == "tool"
            ]
            assert texts == [
                "run 1",
                "Error: the call did not finish: the turn was cancelled",
            ]


async def test_call_that_never_ran_gets_no_foreign_result() -> None:
    """The second call waits for the first one when the turn is cancelled."""
    gate = Gate()

    async def work(input: JSONObject) -> object:
        if "wait" in input:
            await gate.wait()
        return "old"

    first = calling(call("work", id="0"), call("work", id="1"))
    second = calling(
        call("work", {"wait": True}, id="0"), call("work", {"x": 1}, id="1")
    )
    session = build_session(
        first, second, tools=[Worker(function=work)], limits={"parallel_tools": 1}
    )
    with anyio.fail_after(5):
        async with session:
            await cancel_from_outside(session, gate.reached)

            texts = [
                m["content"]
                for m in mounted_context(session.coordinator).messages
                if m["role"] == "tool"
            ]
            assert texts == [
                "old",
                "old",
                *["Error: the call did not finish: the turn was cancelled"] * 2,
            ]


async def test_thread_that_outlives_cancel_is_listed_until_it_ends() -> None:
    gate = ThreadGate()
    with anyio.fail_after(10), ending(gate):
        async with in_a_thread(gate) as session:
            await cancel_from_outside(session, gate.reached)

            assert [thread.name for thread in abandoned()] == ["work"]


async def test_the_loop_goes_on_while_a_sync_tool_blocks() -> None:
    gate = ThreadGate()
    beats = 0
    with anyio.fail_after(10), ending(gate):
        async with in_a_thread(gate) as session, anyio.create_task_group() as group:
            group.start_soon(session.execute, "go")
            await gate.reached.wait()
            for _ in range(1000):
                await anyio.lowlevel.checkpoint()
                beats += 1
            gate.release()

    assert beats == 1000


async def test_cancel_before_turn_reached_its_loop_still_stops_it() -> None:
    """The first turn mounts the modules, which may take long."""
    is_in, go_on = anyio.Event(), anyio.Event()

    async def mount(coordinator: object, config: object) -> object:
        is_in.set()
        await go_on.wait()
        return Worker()

    session = build_session("never", tools=[mount])

    with anyio.fail_after(5):
        async with cancelled_turn(session, is_in):
            await session.cancel(immediate=True)
            go_on.set()
    await session.cleanup()


async def test_a_cancel_between_turns_does_not_stop_the_next_one() -> None:
    async with build_session("fine") as session:
        await session.cancel(immediate=True)

        assert await session.execute("go") == "fine"


async def test_a_turn_that_ends_in_spite_of_a_cancel_has_its_answer() -> None:
    session = build_session("unused")

    async def finish(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        await session.cancel()
        return "done all the same"

    session = build_session(loop=PlainLoop(finish))
    recorder = Recorder.of(session.coordinator.hooks, "cancel:*")
    async with session:
        assert await session.execute("go") == "done all the same"

    assert recorder.names == [CANCEL_REQUESTED, CANCEL_COMPLETED]


async def test_callbacks_run_once_per_request_and_failures_stop_none(
    reports: Reports,
) -> None:
    calls: list[str] = []
    coordinator = ModuleCoordinator()

    async def later() -> None:
        calls.append("async")

    def fail() -> None:
        raise ValueError("no")

    token = coordinator.cancellation
    for callback in (lambda: calls.append("sync"), fail, later):
        token.on_cancel(callback)

    await coordinator.request_cancel()
    await coordinator.request_cancel()
    await coordinator.request_cancel(immediate=True)

    assert calls == ["sync", "async", "sync", "async"]
    assert [report["event"] for report in reports] == [
        "cancellation.callback_failed"
    ] * 2


async def test_everybody_is_told_of_cancel_that_turn_asks_for_itself() -> None:
    """The step that asks is cancelled before anybody is told."""
    reported: list[str] = []

    async def hear(event: str, data: object) -> None:
        await anyio.lowlevel.checkpoint()
        reported.append(event)

    async def stop() -> None:
        await anyio.lowlevel.checkpoint()
        reported.append("callback")

    async def work(input: JSONObject) -> None:
        await session.cancel(immediate=True)

    session = build_session(calling(call("work")), tools=[Worker(function=work)])
    session.coordinator.hooks.register("cancel:*", hear)
    session.coordinator.cancellation.on_cancel(stop)
    with anyio.fail_after(5):
        async with session:
            with pytest.raises(TurnCancelled):
                await session.execute("go")

    assert reported == ["cancel:requested", "callback", "cancel:completed"]


async def test_hanging_cancel_handler_does_not_block_canceller() -> None:
    blocking, listener = Blocking(), Listener()
    session = build_session(
        calling(call("block")), tools=[blocking], limits={"cleanup_timeout": 0.05}
    )
    session.coordinator.hooks.register(CANCEL_REQUESTED, listener)
    with anyio.fail_after(5):
        async with session, cancelled_turn(session, blocking.started):
            await session.cancel(immediate=True)

    assert listener.cancelled


async def test_a_callback_may_be_taken_back() -> None:
    calls: list[str] = []
    token = CancellationToken()
    forget = token.on_cancel(lambda: calls.append("gone"))
    token.on_cancel(lambda: calls.append("kept"))
    forget()
    forget()

    await token.trigger_callbacks()

    assert calls == ["kept"]


async def test_hanging_cancel_handler_does_not_hold_cleanup_for_ever() -> None:
    blocking = Blocking()
    session = build_session(
        calling(call("block")), tools=[blocking], limits={"cleanup_timeout": 0.05}
    )
    session.coordinator.hooks.register("cancel:*", Listener())

    with anyio.fail_after(5):
        async with cancelled_turn(session, blocking.started):
            await session.cleanup()


async def test_failing_context_close_is_reported_and_hides_nothing(
    reports: Reports,
) -> None:
    async def refuse(message: MessageDict) -> None:
        if message["role"] == "tool":
            raise OSError("disk full")

    context = MemoryContext()
    context.on_add = refuse
    async with build_session(
        calling(call("work")), tools=[Worker()], context=context
    ) as session:
        with pytest.raises(OSError, match="disk full"):
            await session.execute("go")

    assert [report["event"] for report in reports] == ["history.not_closed"]


def test_a_token_tells_how_far_it_was_asked_to_stop() -> None:
    token = CancellationToken()
    assert (token.is_cancelled, token.is_graceful, token.is_immediate) == (
        False,
        False,
        False,
    )

    assert token.request_graceful()
    assert not token.request_cancellation()
    assert (token.is_cancelled, token.is_graceful, token.is_immediate) == (
        True,
        True,
        False,
    )

    assert token.request_immediate()
    assert not token.request_immediate()
    assert not token.request_graceful()
    assert (token.is_cancelled, token.is_graceful, token.is_immediate) == (
        True,
        False,
        True,
    )

    token.reset()
    assert str(token.state) == "none"


def test_a_state_reads_as_its_bare_word() -> None:
    assert [str(state) for state in CancellationState] == [
        "none",
        "graceful",
        "immediate",
    ]
    assert [state.value for state in CancellationState] == [
        "none",
        "graceful",
        "immediate",
    ]


def test_a_request_reaches_the_tokens_of_children() -> None:
    parent, child, late, urgent, gone = (CancellationToken() for _ in range(5))
    parent.register_child(child)
    parent.register_child(gone)
    parent.unregister_child(gone)
    parent.unregister_child(gone)

    parent.request_graceful()
    parent.register_child(late)
    assert (child.state, late.state) == (
        CancellationState.GRACEFUL,
        CancellationState.GRACEFUL,
    )

    parent.request_immediate()
    parent.register_child(urgent)
    assert child.state == late.state == urgent.state == CancellationState.IMMEDIATE
    assert gone.state is CancellationState.NONE


async def test_a_token_names_the_tools_that_run() -> None:
    blocking = Blocking()
    with anyio.fail_after(5):
        async with build_session(
            calling(call("block")), "done", tools=[blocking]
        ) as session:
            token = session.coordinator.cancellation
            async with anyio.create_task_group() as group:
                group.start_soon(session.execute, "go")
                await blocking.started.wait()
                assert (token.running_tools, token.running_tool_names) == (
                    {"id-block"},
                    ["block"],
                )
                blocking.release.set()

            assert token.running_tools == set()


# -- children


def pairs(made: Family, session_id: str) -> list[str]:
    """What a session said of its cancellation."""
    return [
        f"{name} {data.get('state', data.get('was_immediate'))}"
        for name, data in made.events.events
        if name.startswith("cancel:") and data["session_id"] == session_id
    ]


@pytest.mark.parametrize("urgency", ["graceful", "immediate", "double"])
async def test_cancel_reaches_children_and_each_session_says_so_once(
    urgency: str,
) -> None:
    gate = Gate()
    heard: list[str] = []

    async def work(input: JSONObject) -> object:
        await gate.wait()
        return "released"

    def watch(coordinator: ModuleCoordinator) -> None:
        coordinator.cancellation.on_cancel(lambda: heard.append(coordinator.session_id))

    steps: list[Step] = [
        calling(call("delegate"), text="I ask."),
        calling(call("work"), text="Half"),
        "again",
    ]
    made = family(
        *steps, tools={"tool-work": fresh(lambda: Worker(function=work))}, watch=watch
    )
    with anyio.fail_after(5):
        async with made.session as session:
            async with cancelled_turn(session, gate.reached):
                child = made.child.session_id
                if urgency != "immediate":
                    await session.cancel()
                if urgency != "graceful":
                    await session.cancel(immediate=True)
                gate.release()

            states = {
                "graceful": ["graceful"],
                "immediate": ["immediate"],
                "double": ["graceful", "immediate"],
            }[urgency]
            expected = [f"cancel:requested {state}" for state in states]
            expected.append(f"cancel:completed {urgency != 'graceful'}")
            assert pairs(made, session.session_id) == pairs(made, child) == expected
            assert heard.count(child) == heard.count(session.session_id) == len(states)
            assert made.names("session:end", child) == ["session:end"]
            await the_next_turn_works(session)

            made.provider.steps[:] = ["resumed"]
            result = await session.resume(sub_session_id=child, instruction="and now?")
            assert (result.output, result.turn_count) == ("resumed", 2)
            messages = [
                message.to_dict() for message in made.provider.requests[-1].messages
            ]
            assert open_call_ids(messages) == []


async def test_child_cancelled_alone_gives_parent_what_it_had_written() -> None:
    gate = Gate()

    async def work(input: JSONObject) -> object:
        await gate.wait()
        return "released"

    steps: list[Step] = [
        calling(call("delegate")),
        calling(call("work"), text="Half"),
        "I go on",
    ]
    made = family(*steps, tools={"tool-work": fresh(lambda: Worker(function=work))})
    with anyio.fail_after(5):
        async with made.session as session, anyio.create_task_group() as group:

            async def run() -> None:
                assert await session.execute("go") == "I go on"

            group.start_soon(run)
            await gate.reached.wait()
            child = made.child.session
            assert child is not None
            await child.cancel(immediate=True)

    (result,) = made.results
    assert (result.output, result.status) == ("Half", "cancelled")
    assert pairs(made, made.session.session_id) == []


async def test_a_child_made_after_a_cancel_does_not_start() -> None:
    async def stop(input: JSONObject) -> object:
        await made.session.cancel()
        result = await made.session.spawn(agent_name="helper", instruction="x")
        return result.to_dict()

    made = family(
        calling(call("work")), tools={"tool-work": fresh(lambda: Worker(function=stop))}
    )
    async with made.session as session:
        with pytest.raises(TurnCancelled):
            await session.execute("go")

        assert '"status": "cancelled"' in only_result(
            mounted_context(session.coordinator).messages
        )
    assert len(made.provider.requests) == 1


async def test_an_idle_child_hears_nothing_and_runs_again() -> None:
    gate = Gate()

    async def ask(request: ChatRequest) -> ChatResponse:
        await gate.wait()
        return answer("late")

    made = family(ask, "child")
    with anyio.fail_after(5):
        async with made.session as session, session.fork(session_id="c1") as child:

            async def run() -> None:
                assert await session.execute("go") == "late"

            async with anyio.create_task_group() as group:
                group.start_soon(run)
                await gate.reached.wait()
                await session.cancel()
                gate.release()

            assert pairs(made, "c1") == []
            assert await child.execute("x") == "child"


@pytest.mark.parametrize("immediate", [False, True])
@pytest.mark.parametrize("generations", [1, 2, 3])
async def test_cancel_reaches_what_runs_below_session_that_is_idle(
    generations: int, immediate: bool
) -> None:
    gate = Gate()
    heard: list[str] = []

    async def work(input: JSONObject) -> object:
        await gate.wait()
        return "released"

    def watch(coordinator: ModuleCoordinator) -> None:
        coordinator.cancellation.on_cancel(lambda: heard.append(coordinator.session_id))

    made = family(
        calling(call("work"), text="Half"),
        tools={"tool-work": fresh(lambda: Worker(function=work))},
        limits={"delegation_depth": 3},
        watch=watch,
    )
    with anyio.fail_after(5):
        async with made.session as session, AsyncExitStack() as stack:
            lowest = session
            for _ in range(generations):
                lowest = await stack.enter_async_context(lowest.fork())
            async with cancelled_turn(lowest, gate.reached):
                await session.cancel(immediate=immediate)
                if not immediate:
                    assert heard == [lowest.session_id], (
                        "it is told at once, not when its step has ended"
                    )
                gate.release()

            assert len(made.provider.requests) == 1
            assert heard == [lowest.session_id]
            requested = f"cancel:requested {'immediate' if immediate else 'graceful'}"
            assert pairs(made, lowest.session_id) == [
                requested,
                f"cancel:completed {immediate}",
            ]
            assert pairs(made, session.session_id) == []
            made.provider.steps[:] = ["again", "and again"]
            assert await session.execute("new work") == "again"
            assert await lowest.execute("new work") == "and again"


async def test_a_cancel_reaches_a_child_that_is_being_opened() -> None:
    """A spawn in the background has begun: its turn starts no step, though nothing ran when it was cancelled."""
    gate = Gate()

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        if coordinator.parent_id is not None:
            await gate.wait()

    made = family(hooks={"hooks-slow": mount})
    results: list[ChildResult] = []

    async def run() -> None:
        results.append(await made.session.spawn(agent_name="helper", instruction="x"))

    with anyio.fail_after(5):
        async with made.session as session, anyio.create_task_group() as group:
            group.start_soon(run)
            await gate.reached.wait()
            await session.cancel()
            gate.release()

    assert [result.status for result in results] == ["cancelled"]
    assert made.provider.requests == []


async def test_cancel_reaches_background_and_waiting_children() -> None:
    gate = Gate()

    async def ask(request: ChatRequest) -> ChatResponse:
        await gate.wait()
        raise AssertionError

    made = family(ask, limits={"parallel_children": 1})
    results: list[ChildResult] = []

    async def run() -> None:
        results.append(await made.session.spawn(agent_name="helper", instruction="x"))

    with anyio.fail_after(5):
        async with made.session as session, anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(run)
            await gate.reached.wait()
            await anyio.wait_all_tasks_blocked()
            await session.cancel(immediate=True)

    assert [result.status for result in results] == ["cancelled"] * 3
    assert len(made.provider.requests) == 1


@pytest.mark.parametrize("way", ["spawn", "fork"])
async def test_task_that_outlives_cancelled_turn_begins_nothing_below(
    way: str,
) -> None:
    gate = Gate()
    ended: list[str] = []

    async def outlive() -> None:
        await gate.wait()
        if way == "spawn":
            ended.append(
                (await made.session.spawn(agent_name="helper", instruction="x")).status
            )
            return
        async with made.session.fork() as child:
            with pytest.raises(TurnCancelled):
                await child.execute("x")
            ended.append("cancelled")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:

            async def work(input: JSONObject) -> object:
                group.start_soon(outlive)
                await made.session.cancel()
                return "done"

            made = family(
                calling(call("work")),
                "again",
                tools={"tool-work": fresh(lambda: Worker(function=work))},
            )
            async with made.session as session:
                with pytest.raises(TurnCancelled):
                    await session.execute("go")
                gate.release()
                await anyio.wait_all_tasks_blocked()

                assert ended == ["cancelled"]
                assert len(made.provider.requests) == 1
                await the_next_turn_works(session)


async def test_child_of_idle_session_sees_grandparents_request() -> None:
    async def stop(input: JSONObject) -> object:
        await made.session.cancel()
        async with child.fork() as grandchild:
            with pytest.raises(TurnCancelled):
                await grandchild.execute("x")
        return "done"

    made = family(
        calling(call("work")), tools={"tool-work": fresh(lambda: Worker(function=stop))}
    )
    async with made.session as session, session.fork() as child:
        with pytest.raises(TurnCancelled):
            await session.execute("go")
    assert len(made.provider.requests) == 1


async def test_parent_cleanup_stops_childs_running_turn() -> None:
    gate = Gate()

    async def ask(request: ChatRequest) -> ChatResponse:
        await gate.wait()
        raise AssertionError

    made = family(ask)
    session = made.session
    await session.initialize()
    child = session.fork()

    async def run() -> None:
        with pytest.raises(TurnCancelled, match="at once"):
            await child.execute("x")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await gate.reached.wait()
            await session.cleanup()

    assert child.is_closed
    assert [data["session_id"] for data in made.events.all("session:end")] == [
        child.session_id,
        session.session_id,
    ]


# -- all of it, over and over


@pytest.mark.parametrize("place", [place for place in PLACES if place != "thread"])
@pytest.mark.parametrize("immediate", [False, True], ids=["graceful", "immediate"])
async def test_sessions_may_be_cancelled_again_and_again(
    place: str, immediate: bool
) -> None:
    """Twenty turns, each stopped at one place: quickly, with a valid history and nothing left behind."""
    took = []
    before = len(anyio.get_running_tasks())
    with anyio.fail_after(20):
        for _ in range(20):
            gate = Gate()
            async with PLACES[place](gate) as session:
                async with cancelled_turn(session, gate.reached):
                    started = anyio.current_time()
                    await session.cancel(immediate=immediate)
                    gate.release()
                took.append(anyio.current_time() - started)
                assert (
                    open_call_ids(mounted_context(session.coordinator).messages) == []
                )
                assert session.coordinator.cancellation.running_tools == set()

    # a busy machine may hold up a few; a quiet one needs milliseconds
    assert sorted(took)[10] < 1
    assert len(anyio.get_running_tasks()) == before
