"""Reading a turn as it happens: nothing is lost, nothing is held for ever, errors arrive where they belong."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.kernel.turn.stream import CAPACITY, TurnStream
from amplifier_sdk import ChatRequest, ChatResponse
from amplifier_sdk.chat import Usage
from amplifier_sdk.errors import LLMError, SessionBusyError, TurnCancelled
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.streaming import (
    Delta,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UsageReported,
)
from tests.doubles import (
    Blocking,
    Generated,
    PlainProvider,
    Recorder,
    Worker,
    answer,
    build_session,
    call,
    calling,
    mounted_context,
    open_call_ids,
)


async def test_a_turn_is_read_event_by_event() -> None:
    usage = Usage(input_tokens=1, output_tokens=2, total_tokens=3)
    work = call("work")
    async with (
        build_session(
            calling(work, text="Let me see."),
            answer("Done.", usage=usage),
            tools=[Worker()],
        ) as session,
        session.stream("go") as events,
    ):
        seen = [event async for event in events]

    assert [type(event) for event in seen] == [
        TextDelta,
        ToolCallDelta,
        ToolStarted,
        ToolFinished,
        TextDelta,
        UsageReported,
        TurnFinished,
    ]
    started, finished, reported, end = seen[2], seen[3], seen[5], seen[6]
    assert isinstance(started, ToolStarted)
    assert isinstance(finished, ToolFinished)
    assert (started.call.id, finished.call.id, finished.result.output) == (
        work.id,
        work.id,
        "done",
    )
    assert reported == UsageReported(provider="scripted", usage=usage, total=usage)
    assert end == TurnFinished(
        text="Done.", usage=usage, iterations=2, finish_reason="stop", tool_calls=1
    )


async def test_a_function_gets_each_event_in_the_turn_s_own_task() -> None:
    usage = Usage(input_tokens=1, output_tokens=2, total_tokens=3)
    tasks: list[int] = []
    seen: list[type[StreamEvent]] = []

    def sink(event: StreamEvent) -> None:
        seen.append(type(event))
        tasks.append(anyio.get_current_task().id)

    work = call("work")
    async with build_session(
        calling(work), answer("Done.", usage=usage), tools=[Worker()]
    ) as session:
        assert await session.execute("go", sink=sink) == "Done."

    assert seen == [
        ToolCallDelta,
        ToolStarted,
        ToolFinished,
        TextDelta,
        UsageReported,
        TurnFinished,
    ]
    assert set(tasks) == {anyio.get_current_task().id}


async def test_what_a_function_returns_holds_the_turn_back() -> None:
    given: list[str] = []
    shown: list[str] = []

    async def talk(request: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
        for text in "abc":
            given.append(text)
            yield TextDelta(text=text)
            assert shown == given
        yield answer("abc")

    async def show(event: StreamEvent) -> None:
        await anyio.lowlevel.checkpoint()
        if isinstance(event, TextDelta):
            shown.append(event.text)

    async with build_session(provider=Generated(talk)) as session:
        assert await session.execute("go", sink=show) == "abc"

    assert shown == ["a", "b", "c"]


async def test_what_a_function_raises_ends_the_turn() -> None:
    def sink(event: StreamEvent) -> None:
        raise LookupError(type(event).__name__)

    async with build_session("hi") as session:
        with pytest.raises(LookupError, match="TextDelta"):
            await session.execute("go", sink=sink)

        assert not session.is_busy
        assert session.last_turn is None


async def test_streaming_a_bare_session_initialises_it() -> None:
    session = build_session("hi")
    async with session.stream("go") as events:
        assert [type(event) for event in [e async for e in events]] == [
            TextDelta,
            UsageReported,
            TurnFinished,
        ]
    await session.cleanup()


async def test_a_refused_call_is_finished_without_being_started() -> None:
    async with (
        build_session(calling(call("nothing")), "end") as session,
        session.stream("go") as events,
    ):
        seen = [type(event) async for event in events]

    assert seen == [ToolCallDelta, ToolFinished, TextDelta, UsageReported, TurnFinished]


@pytest.mark.parametrize("number", [10, CAPACITY, CAPACITY * 20])
async def test_a_reader_that_comes_late_loses_nothing(number: int) -> None:
    async def generate(
        request: ChatRequest,
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        for n in range(number):
            yield TextDelta(text=f"{n},")
        yield answer("".join(f"{n}," for n in range(number)))

    with anyio.fail_after(5):
        async with (
            build_session(provider=Generated(generate)) as session,
            session.stream("go") as events,
        ):
            await anyio.wait_all_tasks_blocked()
            seen = [event async for event in events]

    texts = [event.text for event in seen if isinstance(event, TextDelta)]
    assert "".join(texts) == "".join(f"{n}," for n in range(number))
    assert len(texts) == min(number, CAPACITY)
    assert isinstance(seen[-1], TurnFinished)


async def test_merging_deltas_copies_each_character_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copied, merged = 0, TextDelta.merged

    def counted(first: TextDelta, second: TextDelta) -> TextDelta:
        nonlocal copied
        result = merged(first, second)
        copied += len(result.text)
        return result

    monkeypatch.setattr(TextDelta, "merged", counted)
    stream, number = TurnStream(), 4096
    for _ in range(CAPACITY + number):
        await stream.send(TextDelta(text="a"))
    stream.close()
    texts = [event.text async for event in stream if isinstance(event, TextDelta)]

    assert sum(map(len, texts)) == CAPACITY + number
    assert copied <= 13 * (number + 1)


async def test_slow_reader_holds_turn_back_if_deltas_cannot_merge() -> None:
    calls = [call("work", id=f"c{n}") for n in range(CAPACITY)]
    worker = Worker()
    with anyio.fail_after(5):
        async with (
            build_session(calling(*calls), "end", tools=[worker]) as session,
            session.stream("go") as events,
        ):
            await anyio.wait_all_tasks_blocked()
            assert len(worker.inputs) < CAPACITY

            seen = [event async for event in events]

    assert len(worker.inputs) == CAPACITY
    assert sum(isinstance(event, ToolFinished) for event in seen) == CAPACITY


deltas = st.one_of(
    st.builds(TextDelta, text=st.text(max_size=3), index=st.integers(0, 1)),
    st.builds(ThinkingDelta, text=st.text(max_size=3), index=st.integers(0, 1)),
    st.builds(
        ToolCallDelta,
        id=st.sampled_from("ab"),
        name=st.just("t"),
        arguments=st.text(max_size=3),
        index=st.just(2),
    ),
)


def joined(events: Sequence[StreamEvent]) -> list[tuple[object, ...]]:
    """Write deltas as runs: what they are part of, and the joined text of each run."""
    runs: list[tuple[object, ...]] = []
    for event in events:
        match event:
            case TextDelta() | ThinkingDelta():
                key: tuple[object, ...] = (type(event), event.index)
                text = event.text
            case ToolCallDelta():
                key, text = (type(event), event.id), event.arguments
            case _:
                raise AssertionError(event)
        if runs and runs[-1][:2] == key:
            runs[-1] = (*key, f"{runs[-1][2]}{text}")
        else:
            runs.append((*key, text))
    return runs


@given(st.lists(deltas, max_size=40), st.lists(st.integers(0, 5), max_size=20))
def test_whatever_reader_s_pace_joined_deltas_are_same(
    sent: list[Delta], pauses: list[int]
) -> None:
    async def run() -> None:
        stream = TurnStream()
        seen: list[StreamEvent] = []
        everything: list[Delta] = [
            *(TextDelta(text="x", index=n % 2) for n in range(CAPACITY)),
            *sent,
        ]

        async def write() -> None:
            for delta in everything:
                await stream.send(delta)
            stream.close()

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            for pause in pauses:
                for _ in range(pause):
                    await anyio.lowlevel.checkpoint()
                with anyio.move_on_after(0):
                    seen.append(await anext(stream))
            seen.extend([event async for event in stream])
        assert joined(seen) == joined(everything)

    anyio.run(run)


async def test_provider_waits_for_reader_of_unmergeable_deltas() -> None:
    sent = 0

    async def generate(
        request: ChatRequest,
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        nonlocal sent
        for sent in range(CAPACITY + 2):
            yield TextDelta(text="x", index=sent % 2)
        yield answer("x" * (CAPACITY + 2))

    async with (
        build_session(provider=Generated(generate)) as session,
        session.stream("go") as events,
    ):
        await anyio.wait_all_tasks_blocked()
        waited_at = sent
        seen = [event async for event in events]

    assert waited_at == CAPACITY
    assert sum(isinstance(event, TextDelta) for event in seen) == CAPACITY + 2


@pytest.mark.parametrize(
    ("first", "second", "whole"),
    [
        (TextDelta(text="a"), TextDelta(text="b"), TextDelta(text="ab")),
        (ThinkingDelta(text="a"), ThinkingDelta(text="b"), ThinkingDelta(text="ab")),
        (
            ToolCallDelta(id="c", name="t", arguments='{"x"'),
            ToolCallDelta(id="c", name="t", arguments=": 1}"),
            ToolCallDelta(id="c", name="t", arguments='{"x": 1}'),
        ),
    ],
)
async def test_delta_joins_one_it_continues_when_there_is_no_room(
    first: Delta, second: Delta, whole: Delta
) -> None:
    stream = TurnStream()
    for _ in range(CAPACITY):
        await stream.send(first)
    with anyio.fail_after(5):
        await stream.send(second)
    stream.close()

    assert [event async for event in stream] == [*[first] * (CAPACITY - 1), whole]


async def test_what_the_turn_raises_comes_after_all_that_came_before() -> None:
    async def generate(
        request: ChatRequest,
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        yield TextDelta(text="Once")
        raise LLMError("connection lost")

    seen: list[StreamEvent] = []
    async with build_session(provider=Generated(generate)) as session:
        with pytest.raises(LLMError, match="connection lost"):
            async with session.stream("go") as events:
                async for event in events:
                    seen.append(event)  # noqa: PERF401  # what was read before the error counts

    assert seen == [TextDelta(text="Once")]


async def test_error_that_nobody_read_is_raised_at_end_of_block() -> None:
    async with build_session(LLMError("no")) as session:
        with anyio.fail_after(5), pytest.raises(LLMError, match="no"):
            async with session.stream("go"):
                await anyio.wait_all_tasks_blocked()


async def test_an_error_of_the_reader_is_its_own() -> None:
    blocking = Blocking()
    with anyio.fail_after(5):
        async with build_session(calling(call("block")), tools=[blocking]) as session:
            with pytest.raises(ZeroDivisionError):
                async with session.stream("go"):
                    await blocking.started.wait()
                    raise ZeroDivisionError

    assert blocking.ended == "cancelled"


async def test_a_group_that_the_reader_raises_stays_a_group() -> None:
    async with build_session("hi") as session:
        with pytest.raises(ExceptionGroup, match="mine") as caught:
            async with session.stream("go"):
                raise ExceptionGroup("mine", [ValueError("one")])

    assert [type(error) for error in caught.value.exceptions] == [ValueError]


async def test_leaving_early_cancels_the_turn_and_closes_its_history() -> None:
    blocking = Blocking()
    with anyio.fail_after(5):
        async with build_session(
            calling(call("block")), "again", tools=[blocking]
        ) as session:
            async with session.stream("go") as events:
                async for event in events:
                    if isinstance(event, ToolStarted):
                        await blocking.started.wait()
                        break

            assert blocking.ended == "cancelled"
            assert open_call_ids(mounted_context(session.coordinator).messages) == []
            assert await session.execute("once more") == "again"


async def test_leaving_while_the_turn_waits_for_the_reader_ends_it() -> None:
    calls = [call("work", id=f"c{n}") for n in range(CAPACITY)]
    with anyio.fail_after(5):
        async with build_session(calling(*calls), "again", tools=[Worker()]) as session:
            async with session.stream("go"):
                await anyio.wait_all_tasks_blocked()

            assert await session.execute("once more") == "again"


async def test_a_cancelled_turn_tells_its_reader() -> None:
    blocking = Blocking()
    with anyio.fail_after(5):
        async with build_session(calling(call("block")), tools=[blocking]) as session:
            with pytest.raises(TurnCancelled):
                async with session.stream("go") as events:
                    async for event in events:
                        if isinstance(event, ToolStarted):
                            await session.cancel(immediate=True)


@pytest.mark.parametrize("is_read", [True, False])
async def test_turn_has_its_own_reader_while_one_before_is_still_read(
    is_read: bool,
) -> None:
    """The last event of the turn before waits for room, which the turn itself no longer does."""
    works, go_on = anyio.Event(), anyio.Event()

    async def work(input: JSONObject) -> str:
        if "wait" in input:
            works.set()
            await go_on.wait()
        return "done"

    first = calling(
        *(call("work", id=f"id-{number}") for number in range(CAPACITY // 2))
    )
    second = calling(call("work", {"wait": True}))
    provider = PlainProvider(first, answer("one"), second, answer("two"))
    seen: list[type[StreamEvent]] = []

    async def another() -> None:
        if not is_read:
            assert await session.execute("two") == "two"
            return
        async with session.stream("two") as events:
            seen.extend([type(event) async for event in events])

    with anyio.fail_after(5):
        async with (
            build_session(provider=provider, tools=[Worker(function=work)]) as session,
            anyio.create_task_group() as group,
            session.stream("one") as events,
        ):
            await anyio.wait_all_tasks_blocked()
            assert not session.is_busy
            group.start_soon(another)
            await works.wait()
            before = [event async for event in events]
            go_on.set()

    assert len(before) == CAPACITY + 1
    end = before[-1]
    assert isinstance(end, TurnFinished)
    assert end.text == "one"
    assert seen == ([ToolStarted, ToolFinished, TurnFinished] if is_read else [])


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
async def test_an_interrupt_of_a_turn_is_its_readers(
    interrupt: type[BaseException],
) -> None:
    """Raised out of a task it would end asyncio's event loop."""

    async def generate(
        request: ChatRequest,
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        yield TextDelta(text="Well")
        raise interrupt

    seen: list[StreamEvent] = []
    async with build_session(provider=Generated(generate)) as session:
        for _ in range(2):
            with pytest.raises(interrupt):
                async with session.stream("go") as events:
                    async for event in events:
                        seen.append(event)  # noqa: PERF401  # what came before the interrupt counts

    assert seen == [TextDelta(text="Well")] * 2


async def test_a_stream_claims_the_session_before_its_turn_has_begun() -> None:
    async with build_session("hi") as session, session.stream("go") as events:
        with pytest.raises(SessionBusyError):
            await session.stream("again").__aenter__()
        with pytest.raises(SessionBusyError):
            await session.execute("again")

        assert [type(event) async for event in events] == [
            TextDelta,
            UsageReported,
            TurnFinished,
        ]


async def test_a_turn_that_nobody_reads_runs_without_a_stream() -> None:
    async with build_session("one", "two") as session:
        async with session.stream("go") as events:
            [event async for event in events]

        assert await session.execute("more") == "two"


async def test_a_closed_stream_takes_nothing_more() -> None:
    stream = TurnStream()
    stream.close()
    stream.close()

    await stream.send(TextDelta(text="late"))

    assert [event async for event in stream] == []


async def test_an_empty_delta_is_a_sign_of_life_that_nobody_sees() -> None:
    async def beating(
        request: ChatRequest,
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        yield TextDelta(text="")
        yield TextDelta(text="Here.")
        yield answer("Here.")

    session = build_session(provider=Generated(beating))
    recorder = Recorder.of(session.coordinator.hooks, "content_block:*")
    async with session, session.stream("go") as events:
        texts = [event.text async for event in events if isinstance(event, TextDelta)]

    assert texts == ["Here."]
    assert recorder.names.count("content_block:delta") == 1
