"""A turn begins with a history that vendors accept: what is wrong with it is mended, stored and told."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import TypeAlias, cast, overload

import anyio
import pytest

from amplifier import AmplifierSession
from amplifier_sdk.contracts import ContextManager, Hooks, Provider, Tool
from amplifier_sdk.errors import TurnCancelled
from amplifier_sdk.events import (
    PROMPT_SUBMIT,
    PROVIDER_TOOL_SEQUENCE_REPAIRED,
    TOOL_POST,
    TOOL_PRE,
)
from amplifier_sdk.history import Repair, diagnose, tool_message
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.loops import Loop, Turn
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.results import HookResult
from tests.doubles import (
    MemoryContext,
    PlainLoop,
    Recorder,
    ScriptedProvider,
    Sentry,
    Worker,
    build_session,
    call,
    calling,
    mounted_context,
    open_call_ids,
)

Reports = list[MutableMapping[str, object]]
Slice: TypeAlias = "slice[int | None, int | None, int | None]"

GO: MessageDict = {"role": "user", "content": "go"}
ONE: JSONValue = [{"type": "text", "text": "one"}]
TWO: JSONValue = [{"type": "text", "text": "two"}]


def asking(*ids: str) -> MessageDict:
    return {
        "role": "assistant",
        "content": [
            {"type": "tool_call", "id": id, "name": "work", "input": {}} for id in ids
        ],
    }


class Restored(MemoryContext):
    """A memory with a history of an earlier session."""

    def __init__(self, *messages: MessageDict) -> None:
        super().__init__()
        self.messages = [*messages]
        self.given: list[Sequence[MessageDict]] = []

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        self.given.append(messages)
        await super().set_messages(messages)


class Mending(Restored):
    """A memory that is told of repairs, as one that keeps a file."""

    def __init__(self, *messages: MessageDict) -> None:
        super().__init__(*messages)
        self.repairs: list[Repair] = []

    async def repair_messages(self, repair: Repair, /) -> None:
        self.repairs.append(repair)
        self.messages = [*repair.messages]


class Stubborn(Restored):
    """A memory whose file is the authority: what it is given later it does not take."""

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        self.given.append(messages)


async def run(session: AmplifierSession, prompts: int = 1) -> Recorder:
    """Run turns and return who heard their events."""
    recorder = Recorder.of(session.coordinator.hooks)
    with anyio.fail_after(5):
        async with session:
            for _ in range(prompts):
                await session.execute("again")
    return recorder


def problems(recorder: Recorder) -> list[object]:
    """Return what the one repair that was announced names."""
    found = recorder.one(PROVIDER_TOOL_SEQUENCE_REPAIRED)["repairs"]
    assert isinstance(found, list)
    return [finding["problem"] for finding in found]


async def test_what_crash_left_open_is_closed_before_model_is_asked(
    reports: Reports,
) -> None:
    context = Restored(GO, asking("a", "b"), tool_message("b", "work", "done"))
    provider = ScriptedProvider("end")

    recorder = await run(
        build_session(provider=provider, context=context, is_resumed=True)
    )

    (request,) = provider.requests
    assert [message.tool_call_id for message in request.messages] == [
        None,
        None,
        "a",
        "b",
        None,
    ]
    assert diagnose(context.messages) == ()
    assert context.messages[2]["metadata"] == {"synthesized": True}
    assert recorder.names.index("session:resume") < recorder.names.index(
        PROVIDER_TOOL_SEQUENCE_REPAIRED
    )
    reported = recorder.one(PROVIDER_TOOL_SEQUENCE_REPAIRED)
    assert (reported["provider"], reported["repair_count"], reported["stored"]) == (
        None,
        1,
        True,
    )
    assert problems(recorder) == ["unanswered_call"]
    (logged,) = [entry for entry in reports if entry["event"] == "history.repaired"]
    assert logged["findings"] == [
        "Message 1: A call has no result (work 'a'); a result that says so is put after it"
    ]


async def test_a_context_that_takes_repairs_is_told_what_was_wrong() -> None:
    context = Mending(GO, asking("a"))

    recorder = await run(build_session("end", context=context))

    (repair,) = context.repairs
    assert [finding.problem for finding in repair.findings] == ["unanswered_call"]
    assert context.given == []
    assert recorder.one(PROVIDER_TOOL_SEQUENCE_REPAIRED)["stored"] is True


async def test_a_repair_that_a_context_does_not_take_is_told_as_such() -> None:
    recorder = await run(build_session("end", context=Stubborn(GO, asking("a"))))

    assert recorder.one(PROVIDER_TOOL_SEQUENCE_REPAIRED)["stored"] is False


async def test_a_sound_history_is_left_alone() -> None:
    context = Restored(GO, asking("a"), tool_message("a", "work", "done"))

    recorder = await run(
        build_session("end", "end", context=context, is_resumed=True), prompts=2
    )

    assert recorder.get_events(PROVIDER_TOOL_SEQUENCE_REPAIRED) == []
    assert context.given == []


async def test_what_a_handler_of_the_repair_injects_is_stored() -> None:
    session = build_session("end", context=Restored(GO, asking("a")))
    session.coordinator.hooks.register(
        PROVIDER_TOOL_SEQUENCE_REPAIRED, Sentry([HookResult.inject("it was mended")])
    )

    await run(session)

    assert [m["content"] for m in mounted_context(session.coordinator).messages][
        3:5
    ] == ["it was mended", "again"]


async def test_what_an_application_breaks_between_two_turns_is_mended() -> None:
    context = Restored()
    session = build_session("one", "two", context=context)
    recorder = Recorder.of(session.coordinator.hooks)
    async with session:
        await session.execute("first")
        await context.add_message(tool_message("nobody's", "work", "done"))
        await session.execute("second")

    assert [message["content"] for message in context.messages] == [
        "first",
        ONE,
        "second",
        TWO,
    ]
    assert problems(recorder) == ["orphan_result"]


async def test_call_left_open_by_loop_is_closed_before_next_turn() -> None:
    async def leave(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        await context.add_message({"role": "user", "content": prompt})
        await context.add_message(asking(prompt))
        return "later"

    context = Restored()
    session = build_session(loop=PlainLoop(leave), context=context)
    recorder = Recorder.of(session.coordinator.hooks)
    async with session:
        await session.execute("first")
        await session.execute("second")

    assert open_call_ids(context.messages[:-1]) == []
    assert problems(recorder) == ["unanswered_call"]


async def test_another_context_is_looked_at_as_a_resumed_one() -> None:
    session = build_session("one", "two", context=Restored())
    recorder = Recorder.of(session.coordinator.hooks)
    async with session:
        await session.execute("first")
        await session.coordinator.mount("context", Restored(GO, asking("a")))
        await session.execute("second")

    assert problems(recorder) == ["unanswered_call"]


class Counted(Sequence[MessageDict]):
    """A history that counts how often a message is read."""

    def __init__(self, messages: list[MessageDict]) -> None:
        self.messages = messages
        self.read = 0

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[MessageDict]:
        for message in self.messages:
            self.read += 1
            yield message

    @overload
    def __getitem__(self, index: int) -> MessageDict: ...
    @overload
    def __getitem__(self, index: Slice) -> list[MessageDict]: ...
    def __getitem__(self, index: int | Slice) -> MessageDict | list[MessageDict]:
        self.read += 1
        return self.messages[index]


class CountedContext(MemoryContext):
    """A memory that gives out one history, for ever the same object."""

    def __init__(self, messages: list[MessageDict]) -> None:
        super().__init__()
        self.messages = messages
        self.history = Counted(messages)

    async def get_messages(self) -> list[MessageDict]:
        # a context may give out any sequence that reads like a list
        return cast("list[MessageDict]", self.history)


@pytest.mark.parametrize("earlier", [10, 1000])
async def test_each_turn_reads_only_last_message_of_history(
    earlier: int,
) -> None:
    context = CountedContext([GO, {"role": "assistant", "content": "well"}] * earlier)
    session = build_session("one", "two", context=context)
    async with session:
        await session.execute("first")
        context.history.read = 0
        await session.execute("second")

    assert context.history.read == 1


# -- what handlers inject while calls wait for their results


def roles(session: AmplifierSession) -> list[object]:
    return [
        message["role"] for message in mounted_context(session.coordinator).messages
    ]


@pytest.mark.parametrize("event", [TOOL_PRE, TOOL_POST])
async def test_what_is_injected_at_a_call_stands_behind_the_results(event: str) -> None:
    provider = ScriptedProvider(
        calling(call("work", id="a"), call("work", id="b")), "end"
    )
    session = build_session(provider=provider, tools=[Worker()])
    session.coordinator.hooks.register(
        event, Sentry([HookResult.inject("one"), HookResult.inject("two")])
    )

    await run(session)

    assert [message.role for message in provider.requests[1].messages] == [
        *("user", "assistant", "tool", "tool"),
        *("system", "system"),
    ]
    assert diagnose(mounted_context(session.coordinator).messages) == ()


async def test_what_is_injected_elsewhere_is_stored_at_once() -> None:
    session = build_session("end")
    session.coordinator.hooks.register(
        PROMPT_SUBMIT, Sentry([HookResult.inject("first of all")])
    )

    await run(session)

    assert roles(session) == ["system", "user", "assistant"]


async def test_injection_in_cancelled_turn_is_stored_after_calls() -> None:
    session = build_session(
        calling(call("work", id="a"), call("work", id="b")),
        tools=[Worker(exclusive=True)],
    )

    async def stop(event: str, data: dict[str, object]) -> HookResult:
        await session.cancel(immediate=True)
        return HookResult.inject("stopped here")

    session.coordinator.hooks.register(TOOL_PRE, Sentry([HookResult.inject("before")]))
    session.coordinator.hooks.register(TOOL_POST, stop)
    with anyio.fail_after(5):
        async with session:
            with pytest.raises(TurnCancelled):
                await session.execute("go")

    messages = mounted_context(session.coordinator).messages
    assert diagnose(messages) == ()
    assert [message["role"] for message in messages][:4] == [
        "user",
        "assistant",
        "tool",
        "tool",
    ]
    assert messages[4]["content"] == "before"


async def test_loop_asking_provider_itself_sees_injections() -> None:
    seen: list[list[object]] = []

    async def by_hand(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        await context.add_message({"role": "user", "content": prompt})
        await context.add_message(asking("a"))
        await tools["work"].execute({})
        await context.add_message(tool_message("a", "work", "done"))
        seen.append(
            [message["role"] for message in await context.get_messages_for_request()]
        )
        return "end"

    session = build_session(loop=PlainLoop(by_hand), tools=[Worker()])
    session.coordinator.hooks.register(
        TOOL_POST, Sentry([HookResult.inject("mind the gap")])
    )

    await run(session)

    assert seen == [["user", "assistant", "tool", "system"]]


async def test_injection_at_last_result_is_stored_at_turn_end() -> None:
    async def by_hand(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        await context.add_message(asking("a"))
        await tools["work"].execute({})
        await context.add_message(tool_message("a", "work", "done"))
        return "end"

    session = build_session(loop=PlainLoop(by_hand), tools=[Worker()])
    session.coordinator.hooks.register(
        TOOL_POST, Sentry([HookResult.inject("mind the gap")])
    )

    await run(session)

    assert roles(session) == ["assistant", "tool", "system"]


async def test_what_injected_at_call_stored_by_loop_that_asks_no_more() -> None:
    class Once(Loop):
        """Asks once, and ends when the calls are run."""

        async def run(self, turn: Turn) -> str:
            response = await turn.complete()
            await turn.run_tools(response.tool_calls or ())
            return "end"

    session = build_session(calling(call("work")), loop=Once(), tools=[Worker()])
    session.coordinator.hooks.register(
        TOOL_POST, Sentry([HookResult.inject("mind the gap")])
    )

    await run(session)

    assert roles(session) == ["user", "assistant", "tool", "system"]


async def test_a_loop_written_by_hand_has_the_whole_context() -> None:
    seen: list[object] = []

    async def by_hand(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        seen.append(isinstance(context, ContextManager))
        await context.clear()
        await context.set_messages([GO])
        seen.append(len(await context.get_messages()))
        seen.append(getattr(context, "given"))  # noqa: B009  # it is no part of the contract
        return "end"

    await run(build_session(loop=PlainLoop(by_hand), context=Restored()))

    assert seen == [True, 1, [[GO]]]
