"""One provider call: its events, its deadlines, and what of an answer may be acted on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from functools import partial

import anyio
import pytest

from amplifier_sdk import ChatRequest, ChatResponse, Loop, Turn
from amplifier_sdk.chat import ToolCall, Usage
from amplifier_sdk.content import ReasoningBlock, TextBlock, ToolCallBlock
from amplifier_sdk.errors import LLMError, LLMTimeoutError, RateLimitError, StreamError
from amplifier_sdk.events import (
    CONTENT_BLOCK_DELTA,
    CONTENT_BLOCK_END,
    CONTENT_BLOCK_START,
    PROVIDER_ERROR,
    PROVIDER_REQUEST,
    PROVIDER_RESPONSE,
    THINKING_DELTA,
    THINKING_FINAL,
)
from amplifier_sdk.streaming import Delta, TextDelta, ThinkingDelta, ToolCallDelta
from tests.doubles import (
    Generate,
    Generated,
    PlainProvider,
    Recorder,
    ScriptedProvider,
    Worker,
    answer,
    build_session,
    call,
    calling,
    ended_early,
    forever,
    mounted_context,
    open_call_ids,
)

USAGE = Usage(
    input_tokens=10, output_tokens=5, total_tokens=15, cost_usd=Decimal("0.5")
)


async def failing_turn(provider: object, **limits: float) -> LLMError:
    """Run a turn whose provider fails, and return what it raised."""
    with anyio.fail_after(5):
        async with build_session(provider=provider, limits=limits) as session:
            with pytest.raises(LLMError) as caught:
                await session.execute("go")
            return caught.value


def stuck_after(*items: Delta) -> Generate:
    async def generate(
        request: ChatRequest,
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        for item in items:
            yield item
        await forever()

    return generate


def ending_with(*items: Delta | ChatResponse) -> Generate:
    async def generate(
        request: ChatRequest,
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        for item in items:
            yield item

    return generate


async def test_a_provider_that_cannot_stream_is_asked_whole() -> None:
    async with build_session(provider=PlainProvider("whole")) as session:
        assert await session.execute("go") == "whole"


async def test_the_events_of_a_call_carry_all_of_it() -> None:
    session = build_session(answer("hi", usage=USAGE))
    recorder = Recorder.of(session.coordinator.hooks, "provider:*")
    async with session:
        await session.execute("go")

    request, response = recorder.one(PROVIDER_REQUEST), recorder.one(PROVIDER_RESPONSE)
    assert (request["provider"], request["model"], request["iteration"]) == (
        "scripted",
        None,
        0,
    )
    assert "max_reached" not in request
    assert (response["provider"], response["usage"], response["tool_calls"]) == (
        "scripted",
        USAGE,
        False,
    )
    assert isinstance(response["response"], ChatResponse)
    assert isinstance(response["duration"], float)


async def test_provider_is_named_as_mounted_else_by_itself() -> None:
    async with build_session("x") as session:
        host, coordinator = session.coordinator.host, session.coordinator
        provider = coordinator.providers["scripted"]
        recorder = Recorder.of(coordinator.hooks, "provider:request")

        await host.complete(provider, ChatRequest, context=coordinator.context)

    assert recorder.one(PROVIDER_REQUEST)["provider"] == "scripted"


async def test_what_provider_raises_is_raised_unchanged_and_announced() -> None:
    error = RateLimitError("slow down", status_code=429)
    session = build_session(error)
    recorder = Recorder.of(session.coordinator.hooks, "provider:*")
    async with session:
        with pytest.raises(RateLimitError) as caught:
            await session.execute("go")

    assert caught.value is error
    failure = recorder.one(PROVIDER_ERROR)
    assert failure["error"] == {
        "type": "RateLimitError",
        "message": "slow down",
        "msg": "slow down",
    }
    assert (failure["retryable"], failure["status_code"]) == (True, 429)


async def test_a_foreign_error_is_announced_as_not_retryable() -> None:
    session = build_session(KeyError("usage"))
    recorder = Recorder.of(session.coordinator.hooks, "provider:error")
    async with session:
        with pytest.raises(KeyError):
            await session.execute("go")

    failure = recorder.one(PROVIDER_ERROR)
    assert failure["error"] == {
        "type": "KeyError",
        "message": "'usage'",
        "msg": "'usage'",
    }
    assert (failure["retryable"], failure["status_code"]) == (False, None)


async def test_provider_that_never_answers_stopped_at_total_deadline() -> None:
    async def never(request: ChatRequest) -> ChatResponse:
        await forever()
        raise AssertionError

    error = await failing_turn(PlainProvider(never), provider_timeout=0.02)

    assert isinstance(error, LLMTimeoutError)
    assert str(error) == "Provider 'plain' took longer than 0.02 s"
    assert error.retryable


@pytest.mark.parametrize("deltas", [(), (TextDelta(text="a"),)])
async def test_a_silent_stream_is_stopped_at_the_idle_deadline(
    deltas: tuple[Delta, ...],
) -> None:
    error = await failing_turn(
        Generated(stuck_after(*deltas)), provider_idle_timeout=0.02
    )

    assert isinstance(error, LLMTimeoutError)
    assert str(error) == "Provider 'scripted' was silent for 0.02 s"


async def test_stream_that_never_ends_is_stopped_at_total_deadline() -> None:
    async def babble(
        request: ChatRequest,
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        while True:
            await anyio.lowlevel.checkpoint()
            yield TextDelta(text=".")

    error = await failing_turn(Generated(babble), provider_timeout=0.02)

    assert str(error) == "Provider 'scripted' took longer than 0.02 s"


async def test_a_request_may_have_a_deadline_of_its_own() -> None:
    async def never(request: ChatRequest) -> ChatResponse:
        await forever()
        raise AssertionError

    async with build_session(provider=PlainProvider(never)) as session:
        coordinator = session.coordinator

        def request(*, messages: object) -> ChatRequest:
            return ChatRequest(messages=[], timeout=0.01)

        with (
            anyio.fail_after(5),
            pytest.raises(LLMTimeoutError, match=r"took longer than 0\.01 s"),
        ):
            await coordinator.host.complete(
                coordinator.providers["plain"], request, context=coordinator.context
            )


async def test_slow_reader_does_not_count_against_provider_s_silence() -> None:
    deadlines: list[float] = []

    async def talk(request: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
        deadlines.append(anyio.current_effective_deadline())
        yield TextDelta(text="a")
        yield answer("a")

    async def read(event: str, data: dict[str, object]) -> None:
        deadlines.append(anyio.current_effective_deadline())

    session = build_session(
        provider=Generated(talk),
        limits={"provider_idle_timeout": 5, "provider_timeout": 500},
    )
    session.coordinator.hooks.register(CONTENT_BLOCK_DELTA, read)
    async with session:
        now = anyio.current_time()
        await session.execute("go")

    waiting, reading = (deadline - now for deadline in deadlines)
    assert waiting < 100 < reading


async def test_a_stream_without_its_end_is_no_answer() -> None:
    error = await failing_turn(Generated(ending_with(TextDelta(text="Once upon"))))

    assert isinstance(error, StreamError)
    assert "the stream ended before the answer was complete" in str(error)


async def test_what_is_no_answer_is_named() -> None:
    class Liar(PlainProvider):
        async def complete(self, request: ChatRequest, /) -> ChatResponse:
            return "hi"  # type: ignore[return-value]

    error = await failing_turn(Liar())

    assert str(error) == "Provider 'plain' answered with str; it must be a ChatResponse"


async def test_a_stream_is_closed_when_its_answer_is_there() -> None:
    order: list[str] = []

    class Streaming(PlainProvider):
        @asynccontextmanager
        async def stream(
            self, request: ChatRequest
        ) -> AsyncIterator[AsyncIterator[Delta | ChatResponse]]:
            async def items() -> AsyncGenerator[Delta | ChatResponse, None]:
                yield answer("hi")
                order.append("read on")

            generator = items()
            yield generator
            await generator.aclose()
            order.append("closed")

    async with build_session(provider=Streaming()) as session:
        assert await session.execute("go") == "hi"

    assert order == ["closed"]


@pytest.mark.parametrize(
    "reason", ["length", "content_filter", "error", "something new"]
)
async def test_no_tool_runs_from_an_answer_that_is_not_complete(reason: str) -> None:
    worker = Worker()
    cut = calling(call("work"), text="I will", finish_reason=reason)
    async with build_session(cut, tools=[worker]) as session:
        assert await session.execute("go") == "I will"

        assert mounted_context(session.coordinator).messages[-1] == {
            "role": "assistant",
            "content": [{"type": "text", "text": "I will"}],
        }
    assert worker.inputs == []


@pytest.mark.parametrize("reason", [None, "stop", "tool_calls"])
async def test_tools_run_from_a_complete_answer(reason: str | None) -> None:
    worker = Worker()
    whole = ChatResponse(tool_calls=[call("work")], finish_reason=reason)
    async with build_session(whole, "end", tools=[worker]) as session:
        assert await session.execute("go") == "end"

    assert worker.inputs == [{}]


@pytest.mark.parametrize("ids", [("", ""), ("a", "a", "a"), ("a", "", "a")])
async def test_calls_with_empty_or_repeated_ids_get_ids_of_their_own(
    ids: tuple[str, ...],
) -> None:
    number = 0

    async def count(input: object) -> object:
        nonlocal number
        number += 1
        return f"result {number}"

    calls = [
        ToolCall(id=id, name="work", arguments={"n": n}) for n, id in enumerate(ids)
    ]
    worker = Worker(function=count)
    async with build_session(
        calling(*calls, text="so"), "end", tools=[worker]
    ) as session:
        await session.execute("go")

        context = mounted_context(session.coordinator)
        assert open_call_ids(context.messages) == []
        assert list(context.results.values()) == [
            f"result {n + 1}" for n in range(len(ids))
        ]
        assert len(context.results) == len(ids)
        assert all(context.results)
    assert [input["n"] for input in worker.inputs] == list(range(len(ids)))


async def test_calls_that_only_the_provider_can_find_are_run() -> None:
    class Parsing(PlainProvider):
        def parse_tool_calls(self, response: ChatResponse, /) -> list[ToolCall]:
            return [call("work")] if response.text == "CALL work" else []

    worker = Worker()
    async with build_session(
        provider=Parsing(answer("CALL work"), "end"), tools=[worker]
    ) as session:
        assert await session.execute("go") == "end"

        assert open_call_ids(mounted_context(session.coordinator).messages) == []
    assert worker.inputs == [{}]


@pytest.mark.parametrize("keeps", [0, 1])
async def test_calls_that_a_provider_does_not_stand_by_are_not_stored(
    keeps: int,
) -> None:
    """A provider refuses a history with a call that nobody answered."""

    class Choosy(PlainProvider):
        def parse_tool_calls(self, response: ChatResponse, /) -> list[ToolCall]:
            return list(response.tool_calls or ())[:keeps]

    provider = Choosy(calling(call("work"), call("other"), text="so"), "end")
    async with build_session(provider=provider, tools=[Worker()]) as session:
        assert await session.execute("go") == ("so" if keeps == 0 else "end")

        messages = mounted_context(session.coordinator).messages
        assert open_call_ids(messages) == []
        assert "other" not in str(messages)


async def test_a_call_in_the_content_alone_is_not_stored() -> None:
    stray = ChatResponse(
        content=[TextBlock(text="so"), ToolCallBlock(id="x", name="work")],
        finish_reason="stop",
    )
    async with build_session(stray, tools=[Worker()]) as session:
        assert await session.execute("go") == "so"

        assert mounted_context(session.coordinator).messages[-1]["content"] == [
            {"type": "text", "text": "so"}
        ]


# -- the events of an answer's blocks


async def test_blocks_announced_as_they_form_and_as_they_are_whole() -> None:
    response = answer("Hello", thinking="Hm.")
    deltas = (
        ThinkingDelta(text="Hm."),
        TextDelta(text="Hel", index=1),
        TextDelta(text="lo", index=1),
    )
    session = build_session(provider=Generated(ending_with(*deltas, response)))
    recorder = Recorder.of(session.coordinator.hooks, "*_block:*")
    thinking = Recorder.of(session.coordinator.hooks, "thinking:*")
    async with session:
        await session.execute("go")

    assert recorder.names == [
        CONTENT_BLOCK_START,
        CONTENT_BLOCK_DELTA,
        CONTENT_BLOCK_START,
        CONTENT_BLOCK_DELTA,
        CONTENT_BLOCK_DELTA,
        CONTENT_BLOCK_END,
        CONTENT_BLOCK_END,
    ]
    assert [start["block_type"] for start in recorder.all(CONTENT_BLOCK_START)] == [
        "thinking",
        "text",
    ]
    assert recorder.all(CONTENT_BLOCK_DELTA)[1]["delta"] is deltas[1]
    assert [
        (end["block"], end["total_blocks"]) for end in recorder.all(CONTENT_BLOCK_END)
    ] == [
        ({"type": "thinking", "thinking": "Hm."}, 2),
        ({"type": "text", "text": "Hello"}, 2),
    ]
    assert [(name, data["text"]) for name, data in thinking.events] == [
        (THINKING_DELTA, "Hm."),
        (THINKING_FINAL, "Hm."),
    ]


async def test_reasoning_that_can_be_read_is_announced_as_thinking() -> None:
    encrypted = ReasoningBlock(extras={"encrypted_content": "gAAA"})
    readable = ReasoningBlock(summary=[{"type": "summary_text", "text": "Hm."}])
    response = ChatResponse(
        content=[encrypted, readable, TextBlock(text="Hello")], finish_reason="stop"
    )
    session = build_session(provider=PlainProvider(response))
    recorder = Recorder.of(session.coordinator.hooks, "thinking:*")
    async with session:
        await session.execute("go")

    assert [(name, data["text"]) for name, data in recorder.events] == [
        (THINKING_FINAL, "Hm.")
    ]


async def test_unstreamed_blocks_are_announced_when_complete() -> None:
    session = build_session(provider=PlainProvider(answer("Hello", thinking="Hm.")))
    recorder = Recorder.of(session.coordinator.hooks, "content_block:*")
    async with session:
        await session.execute("go")

    assert recorder.names == [CONTENT_BLOCK_START, CONTENT_BLOCK_END] * 2
    assert [start["total_blocks"] for start in recorder.all(CONTENT_BLOCK_START)] == [
        2,
        2,
    ]


async def test_the_blocks_of_a_call_say_so() -> None:
    delta = ToolCallDelta(id="id-work", name="work", arguments="{}")
    turns = iter(
        [ending_with(delta, calling(call("work"))), ending_with(answer("end"))]
    )

    def generate(request: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
        return next(turns)(request)

    session = build_session(provider=Generated(generate), tools=[Worker()])
    recorder = Recorder.of(session.coordinator.hooks, "content_block:*")
    async with session:
        await session.execute("go")

    assert recorder.all(CONTENT_BLOCK_START)[0]["block_type"] == "tool_call"
    assert recorder.all(CONTENT_BLOCK_END)[0]["block"] == {
        "type": "tool_call",
        "id": "id-work",
        "name": "work",
        "input": {},
    }


@pytest.mark.parametrize(
    "how", ["breaks off", "is cancelled", "has another number of blocks"]
)
async def test_every_block_that_began_is_ended_however_answer_ends(
    how: str,
) -> None:
    begun = anyio.Event()

    async def generate(
        request: ChatRequest,
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        yield TextDelta(text="a")
        yield TextDelta(text="b", index=1)
        begun.set()
        match how:
            case "is cancelled":
                await forever()
            case "breaks off":
                raise StreamError("connection lost")
            case _:
                yield answer("a")

    session = build_session(provider=Generated(generate))
    recorder = Recorder.of(session.coordinator.hooks, "content_block:*")
    with anyio.fail_after(5):
        async with session:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:

                    async def run() -> None:
                        if how == "breaks off":
                            with pytest.raises(StreamError):
                                await session.execute("go")
                        else:
                            await session.execute("go")

                    group.start_soon(run)
                    await begun.wait()
                    if how == "is cancelled":
                        scope.cancel()

    started = [str(start["block_index"]) for start in recorder.all(CONTENT_BLOCK_START)]
    ended = [str(end["block_index"]) for end in recorder.all(CONTENT_BLOCK_END)]
    assert sorted(started) == sorted(ended) == ["0", "1"]
    assert recorder.all(CONTENT_BLOCK_END)[-1]["block"] == {
        "type": "text",
        "incomplete": True,
    }


# -- limits


async def test_the_last_iteration_has_no_tools_and_says_why() -> None:
    provider = ScriptedProvider(
        *[calling(call("work")) for _ in range(2)],
        calling(call("work"), text="That is all."),
    )
    session = build_session(
        provider=provider, tools=[Worker()], limits={"iterations": 3}
    )
    recorder = Recorder.of(session.coordinator.hooks, "provider:request")
    async with session:
        assert await session.execute("go") == ended_early(
            "That is all.", "iterations", 3
        )

        assert open_call_ids(mounted_context(session.coordinator).messages) == []
        assert "limit" not in str(mounted_context(session.coordinator).messages)
    assert [request.tools is None for request in provider.requests] == [
        False,
        False,
        True,
    ]
    assert "A limit of this turn is reached" in provider.last_messages[-1][1]
    assert [data.get("max_reached") for data in recorder.all(PROVIDER_REQUEST)] == [
        None,
        None,
        True,
    ]


async def test_calls_beyond_turn_s_limit_answered_without_being_run() -> None:
    worker = Worker()
    calls = [call("work", id=f"c{n}") for n in range(4)]
    async with build_session(
        calling(*calls), "end", tools=[worker], limits={"tool_calls": 3}
    ) as session:
        assert await session.execute("go") == ended_early("end", "tool_calls", 3)

        results = list(mounted_context(session.coordinator).results.values())
    assert results == ["done"] * 3 + [
        "Error: Not run: the turn's limit of 3 tool calls is reached"
    ]
    assert len(worker.inputs) == 3


async def test_a_turn_s_token_limit_ends_it_with_a_last_answer() -> None:
    spending = ChatResponse(
        tool_calls=[call("work")], usage=USAGE, finish_reason="tool_calls"
    )
    provider = ScriptedProvider(spending, spending, answer("wrapped up", usage=USAGE))
    async with build_session(
        provider=provider, tools=[Worker()], limits={"tokens": 30}
    ) as session:
        assert await session.execute("go") == ended_early("wrapped up", "tokens", 30)

        assert session.spending.to_dict() == {
            "provider_calls": 3,
            "tool_calls": 2,
            "tool_failures": 0,
            "children": 0,
            "input_tokens": 30,
            "output_tokens": 15,
            "total_tokens": 45,
            "cost_usd": "1.5",
        }


async def test_usage_adds_up_over_turns_with_and_without_report() -> None:
    async with build_session(
        answer("a", usage=USAGE), answer("b"), answer("c", usage=USAGE)
    ) as session:
        for prompt in "abc":
            await session.execute(prompt)

        assert session.spending.usage == USAGE + USAGE


class OwnRequests(Loop):
    """A loop that builds its requests itself."""

    def __init__(self, conversation_id: str | None) -> None:
        super().__init__()
        self._conversation_id = conversation_id

    async def run(self, turn: Turn) -> str:
        request = partial(ChatRequest, conversation_id=self._conversation_id)
        name, provider = next(iter(turn.providers.items()))
        asked = turn.host.complete(provider, request, context=turn.context, name=name)
        return (await asked).text


class OneCall(Loop):
    """A loop with the requests of the SDK."""

    async def run(self, turn: Turn) -> str:
        return (await turn.complete()).text


@pytest.mark.parametrize(
    ("loop", "conversation"),
    [
        (OneCall(), "s-1"),
        (OwnRequests(None), "s-1"),
        (OwnRequests("talk-7"), "talk-7"),
    ],
    ids=["sdk", "own", "chosen"],
)
async def test_requests_say_of_which_conversation_they_are(
    loop: object, conversation: str
) -> None:
    provider = ScriptedProvider(answer("Hi."))
    async with build_session(provider=provider, loop=loop, session_id="s-1") as session:
        await session.execute("go")

    assert [each.conversation_id for each in provider.requests] == [conversation]


async def test_delta_sets_idle_deadline_anew_when_part_of_it_is_over() -> None:
    deadlines: list[float] = []

    async def slowly(_: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
        for _number in range(2):
            deadlines.append(anyio.current_effective_deadline())
            end = anyio.current_time() + 0.02
            while anyio.current_time() < end:  # a hundredth of the time
                pass
            yield TextDelta(text="a")
        deadlines.append(anyio.current_effective_deadline())
        yield answer("aa")

    session = build_session(
        provider=Generated(slowly), limits={"provider_idle_timeout": 2}
    )
    async with session:
        await session.execute("go")

    assert deadlines[0] < deadlines[1] < deadlines[2]
