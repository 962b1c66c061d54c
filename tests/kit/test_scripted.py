"""The scripted provider of the kit: what each step of a script does."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import anyio
import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_kit.scripted import ScriptedAnswer, ScriptedProvider, Step, answer, call
from amplifier_sdk import (
    ChatRequest,
    ChatResponse,
    JSONValue,
    LLMError,
    Message,
    StreamingProvider,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolCallBlock,
    ToolCallDelta,
    Usage,
)
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.checks import check_instance
from amplifier_sdk.content import ReasoningBlock, VendorBlock
from amplifier_sdk.errors import NetworkError
from amplifier_sdk.streaming import Delta

REQUEST = ChatRequest(messages=(Message(role="user", content="Hello"),))


async def played(*steps: Step) -> list[Delta | ChatResponse]:
    async with ScriptedProvider(*steps).stream(REQUEST) as items:
        return [item async for item in items]


async def whole(*steps: Step) -> ChatResponse:
    return await ScriptedProvider(*steps).complete(REQUEST)


def test_it_is_a_streaming_provider_that_says_it_is_no_model() -> None:
    provider = ScriptedProvider(name="mine", context_window=100, max_output_tokens=10)

    assert isinstance(provider, StreamingProvider)
    assert check_instance("provider", provider) == []
    assert (provider.get_info().id, provider.get_info().display_name) == (
        "mine",
        "Scripted answers (no model)",
    )
    assert provider.get_info().defaults == {
        "model": "scripted",
        "context_window": 100,
        "max_output_tokens": 10,
    }


async def test_a_text_streams_as_one_piece_and_counts_its_usage() -> None:
    usage = Usage(input_tokens=1, output_tokens=2, total_tokens=3)

    assert await played("Hi there") == [
        TextDelta(text="Hi there"),
        ChatResponse(
            content=[TextBlock(text="Hi there")], usage=usage, finish_reason="stop"
        ),
    ]


async def test_an_empty_text_is_an_answer_without_blocks() -> None:
    (response,) = await played("")

    assert isinstance(response, ChatResponse)
    assert response.content == ()


async def test_the_parts_of_an_answer_stream_one_by_one() -> None:
    thinking = ThinkingBlock(thinking="Hm.", signature="s")
    *deltas, response = await played(
        answer(thinking, "Hel", "lo", call("add", {"x": 1}, id="c"), "Bye")
    )

    assert deltas == [
        ThinkingDelta(text="Hm."),
        TextDelta(text="Hel", index=1),
        TextDelta(text="lo", index=1),
        ToolCallDelta(id="c", name="add", arguments='{"x": 1}', index=2),
        TextDelta(text="Bye", index=3),
    ]
    assert isinstance(response, ChatResponse)
    assert response.content == (
        thinking,
        TextBlock(text="Hello"),
        ToolCallBlock(id="c", name="add", input={"x": 1}),
        TextBlock(text="Bye"),
    )
    assert response.tool_calls == (ToolCall(id="c", name="add", arguments={"x": 1}),)
    assert response.finish_reason == "tool_calls"


PARTS = st.lists(
    st.text(max_size=5)
    | st.builds(ThinkingBlock, thinking=st.text(max_size=5))
    | st.builds(
        call,
        st.sampled_from(["add", "now"]),
        st.dictionaries(st.text(max_size=3), st.integers()),
    )
)


@given(parts=PARTS)
def test_what_streams_is_what_the_whole_answer_says(
    parts: list[str | ThinkingBlock | ToolCall],
) -> None:
    async def play() -> list[Delta | ChatResponse]:
        return await played(answer(*parts))

    *items, response = anyio.run(play)
    deltas = [item for item in items if not isinstance(item, ChatResponse)]

    assert isinstance(response, ChatResponse)
    assert len(deltas) == len(items)
    assert response.text == "".join(
        delta.text for delta in deltas if isinstance(delta, TextDelta)
    )
    assert [made.id for made in response.tool_calls or ()] == [
        d.id for d in deltas if isinstance(d, ToolCallDelta)
    ]
    assert list(dict.fromkeys(delta.index for delta in deltas)) == list(
        range(len(response.content))
    )


async def test_a_block_that_calls_a_tool_is_a_call() -> None:
    response = await whole(answer(ToolCallBlock(id="c", name="add", input={"x": 1})))

    assert response.tool_calls == (ToolCall(id="c", name="add", arguments={"x": 1}),)


async def test_of_a_vendors_own_block_nothing_streams() -> None:
    block = VendorBlock(type="citation")
    (response,) = await played(answer(block))

    assert isinstance(response, ChatResponse)
    assert response.content == (block,)


async def test_what_can_be_read_of_reasoning_item_streams_as_thinking() -> None:
    reported = ReasoningBlock(summary=({"type": "summary_text", "text": "I see."},))
    withheld = ReasoningBlock(extras={"encrypted_content": "x"})

    *deltas, response = await played(answer(reported, withheld, "Yes."))

    assert deltas == [ThinkingDelta(text="I see."), TextDelta(text="Yes.", index=2)]
    assert isinstance(response, ChatResponse)
    assert response.content == (reported, withheld, TextBlock(text="Yes."))


async def test_usage_and_finish_reason_may_be_given() -> None:
    usage = Usage(input_tokens=7, output_tokens=8, total_tokens=15)
    response = await whole(answer("Cut", usage=usage, finish_reason="length"))

    assert (response.usage, response.finish_reason) == (usage, "length")


async def test_a_whole_response_comes_as_it_is_after_its_blocks() -> None:
    response = ChatResponse(
        content=[
            TextBlock(text="Hi"),
            VendorBlock(type="x"),
            ToolCallBlock(id="c", name="add"),
        ],
        tool_calls=[ToolCall(id="c", name="add", raw_arguments="{", problem="cut")],
    )

    assert await played(response) == [
        TextDelta(text="Hi"),
        ToolCallDelta(id="c", name="add", arguments="{", index=2),
        response,
    ]


async def test_calls_without_id_get_one_that_is_unique_among_answers() -> None:
    provider = ScriptedProvider(answer(call("a"), call("b")), repeat=True)

    responses = [await provider.complete(REQUEST) for _ in range(2)]

    ids = [made.id for response in responses for made in response.tool_calls or ()]
    assert ids == ["call_0_0", "call_0_1", "call_1_0", "call_1_1"]


@pytest.mark.parametrize(
    ("arguments", "values", "raw"),
    [(None, {}, None), ({"x": 1}, {"x": 1}, None), ('{"x": 1}', {"x": 1}, '{"x": 1}')],
)
def test_a_calls_arguments_are_an_object_or_text(
    arguments: JSONValue, values: JSONValue, raw: str | None
) -> None:
    made = call("add", arguments)

    assert (made.arguments, made.raw_arguments, made.problem) == (values, raw, None)


@pytest.mark.parametrize("arguments", ["no JSON", [1, 2], 7])
def test_arguments_that_are_no_object_are_a_problem_of_the_call(
    arguments: JSONValue,
) -> None:
    made = call("add", arguments)

    assert made.arguments == {}
    assert made.problem
    assert made.raw_arguments


async def test_exception_gains_provider_name_when_missing() -> None:
    error, named = LLMError("boom"), LLMError("boom", provider="other")
    provider = ScriptedProvider(error, named, ValueError("odd"), name="mine")

    for expected in (error, named):
        with pytest.raises(LLMError) as caught:
            await provider.complete(REQUEST)
        assert caught.value is expected
    with pytest.raises(ValueError, match="odd"):
        await provider.complete(REQUEST)

    assert (error.provider, named.provider) == ("mine", "other")


async def test_an_answer_may_fail_in_its_middle() -> None:
    seen: list[object] = []

    with pytest.raises(NetworkError, match="cut"):
        async with ScriptedProvider(answer("Half", NetworkError("cut"), "more")).stream(
            REQUEST
        ) as items:
            async for item in items:
                seen.append(item)  # noqa: PERF401  # what came before the error counts

    assert seen == [TextDelta(text="Half")]


async def test_a_repeated_error_does_not_grow() -> None:
    error = LLMError("boom")
    provider = ScriptedProvider(error, repeat=True)
    depths = []

    for _ in range(3):
        with pytest.raises(LLMError):
            await provider.complete(REQUEST)
        traceback, depth = error.__traceback__, 0
        while traceback is not None:
            traceback, depth = traceback.tb_next, depth + 1
        depths.append(depth)

    assert len(set(depths)) == 1


async def test_an_answer_may_wait_for_an_event() -> None:
    gate = anyio.Event()
    seen: list[object] = []

    async def read() -> None:
        async with ScriptedProvider(answer("One", gate, "two")).stream(
            REQUEST
        ) as items:
            async for item in items:
                seen.append(item)  # noqa: PERF401  # what came before the event counts

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            assert seen == [TextDelta(text="One")]
            gate.set()

    assert seen[1] == TextDelta(text="two")


async def test_an_answer_may_wait_for_a_while() -> None:
    before = anyio.current_time()

    await whole(answer(0.01, "Late"))

    assert anyio.current_time() - before >= 0.01


async def test_a_function_of_the_request_gives_any_step() -> None:
    async def echo(request: ChatRequest) -> Step:
        return request.messages[-1].text

    async def fail(request: ChatRequest) -> Step:
        return LLMError("boom")

    async def again(request: ChatRequest) -> Step:
        return echo

    assert (await whole(echo)).text == "Hello"
    assert (await whole(again)).text == "Hello"
    with pytest.raises(LLMError, match="boom"):
        await whole(fail)


async def test_generator_function_streams_its_own_items_and_is_closed() -> None:
    closed: list[str] = []

    async def odd(request: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
        try:
            yield TextDelta(text="a", index=7)
            yield ChatResponse()
        finally:
            closed.append("odd")

    assert await played(odd) == [TextDelta(text="a", index=7), ChatResponse()]
    async with ScriptedProvider(odd).stream(REQUEST) as items:
        await anext(items)
    assert closed == ["odd", "odd"]


async def test_a_script_that_ends_says_how_to_go_on() -> None:
    provider = ScriptedProvider("One")
    await provider.complete(REQUEST)

    with pytest.raises(
        LLMError,
        match="has 1 answers and this is request 2; add an answer, or set 'repeat'",
    ) as caught:
        await provider.complete(REQUEST)
    assert caught.value.provider == "scripted"


async def test_steps_may_be_added_later() -> None:
    provider = ScriptedProvider()
    provider.steps.append("One")

    assert (await provider.complete(REQUEST)).text == "One"
    assert provider.steps == []


async def test_a_repeated_script_starts_again() -> None:
    provider = ScriptedProvider("One", ScriptedAnswer(parts=("Two",)), repeat=True)

    assert [(await provider.complete(REQUEST)).text for _ in range(3)] == [
        "One",
        "Two",
        "One",
    ]


async def test_the_requests_are_kept() -> None:
    provider = ScriptedProvider("One")

    await provider.complete(REQUEST)

    assert provider.requests == [REQUEST]
    assert provider.last_messages == [("user", "Hello")]


async def test_a_test_can_wait_for_a_request() -> None:
    provider = ScriptedProvider("One", "Two")
    seen: list[ChatRequest] = []

    async def wait(number: int) -> None:
        seen.append(await provider.wait_for_request(number))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(wait, 1)
            group.start_soon(wait, 2)
            await anyio.wait_all_tasks_blocked()
            await provider.complete(REQUEST)
            await anyio.wait_all_tasks_blocked()
            assert len(seen) == 1
            await provider.complete(REQUEST)
        assert await provider.wait_for_request() is REQUEST

    assert seen == [REQUEST, REQUEST]


async def test_a_step_is_chosen_by_the_answers_that_a_request_shows() -> None:
    provider = ScriptedProvider("a", "b", "c", by_history=True)
    asked = Message(role="user", content="x")
    answered = Message(role="assistant", content="y")
    histories: tuple[list[Message], ...] = (
        [asked],
        [asked, answered, asked],
        [asked, answered, asked, answered],
        [asked, asked, asked, attrs.evolve(answered)],  # as long, and another one
        [asked, answered],
        [],
    )
    answers = [
        (await provider.complete(ChatRequest(messages=history))).text
        for history in histories
    ]

    assert answers == ["a", "b", "c", "b", "b", "a"]


async def test_history_with_more_answers_than_the_script_is_an_error() -> None:
    provider = ScriptedProvider("a", by_history=True)
    history = [Message(role="assistant", content="y")]

    with pytest.raises(LLMError, match="has 1 answers and this is request 2"):
        await provider.complete(ChatRequest(messages=history))
