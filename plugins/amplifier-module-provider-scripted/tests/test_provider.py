"""The provider: what it plays for each request."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import anyio
import pytest

from amplifier import ModuleCoordinator
from amplifier_module_provider_scripted import ScriptedProvider
from amplifier_sdk import (
    ChatRequest,
    ChatResponse,
    ConfigError,
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
from amplifier_sdk.content import block_to_dict
from amplifier_sdk.errors import NetworkError, RateLimitError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.modules import definition_of
from amplifier_sdk.streaming import Delta

REQUEST = ChatRequest(messages=(Message(role="user", content="Hello"),))


def scripted(*responses: JSONValue, **settings: JSONValue) -> ScriptedProvider:
    """Build the provider as a session does."""
    definition = definition_of(ScriptedProvider)
    assert definition is not None
    provider = definition.build(
        ModuleCoordinator(), {"responses": responses, **settings}
    )
    assert isinstance(provider, ScriptedProvider)
    return provider


async def played(provider: ScriptedProvider) -> list[Delta | ChatResponse]:
    async with provider.stream(REQUEST) as items:
        return [item async for item in items]


async def test_it_is_a_streaming_provider() -> None:
    provider = scripted()

    assert isinstance(provider, StreamingProvider)
    assert check_instance("provider", provider) == []


async def test_answers_come_in_order() -> None:
    provider = scripted("One", {"text": "Two"})

    assert [(await provider.complete(REQUEST)).text for _ in range(2)] == ["One", "Two"]


async def test_the_requests_are_kept() -> None:
    provider = scripted("One")

    await provider.complete(REQUEST)

    assert provider.requests == [REQUEST]


async def test_a_text_streams_as_one_piece_and_ends_in_the_answer() -> None:
    assert await played(scripted("Hi there")) == [
        TextDelta(text="Hi there"),
        ChatResponse(
            content=[TextBlock(text="Hi there")],
            usage=Usage(input_tokens=1, output_tokens=2, total_tokens=3),
            finish_reason="stop",
        ),
    ]


async def test_a_text_streams_in_the_given_pieces() -> None:
    *deltas, answer = await played(scripted({"deltas": ["Hi ", "there"]}))

    assert deltas == [TextDelta(text="Hi "), TextDelta(text="there")]
    assert isinstance(answer, ChatResponse)
    assert answer.text == "Hi there"


async def test_thinking_comes_before_the_text() -> None:
    *deltas, answer = await played(scripted({"text": "Hi", "thinking": "Hm."}))

    assert deltas == [ThinkingDelta(text="Hm."), TextDelta(text="Hi", index=1)]
    assert isinstance(answer, ChatResponse)
    assert answer.content == (ThinkingBlock(thinking="Hm."), TextBlock(text="Hi"))


async def test_calls_stream_after_the_text_at_their_blocks_index() -> None:
    calls: JSONValue = [
        {"name": "add", "arguments": {"x": 1}},
        {"name": "now", "id": "mine"},
    ]
    *deltas, answer = await played(scripted({"text": "Wait.", "tool_calls": calls}))

    assert deltas == [
        TextDelta(text="Wait."),
        ToolCallDelta(id="call_0_0", name="add", arguments='{"x": 1}', index=1),
        ToolCallDelta(id="mine", name="now", arguments="{}", index=2),
    ]
    assert isinstance(answer, ChatResponse)
    assert answer.tool_calls == (
        ToolCall(id="call_0_0", name="add", arguments={"x": 1}),
        ToolCall(id="mine", name="now"),
    )
    assert answer.content[1:] == (
        ToolCallBlock(id="call_0_0", name="add", input={"x": 1}),
        ToolCallBlock(id="mine", name="now"),
    )
    assert answer.finish_reason == "tool_calls"


async def test_the_ids_of_calls_differ_between_answers() -> None:
    provider = scripted({"tool_calls": [{"name": "now"}]}, repeat=True)

    answers = [await provider.complete(REQUEST) for _ in range(2)]

    assert [call.id for answer in answers for call in answer.tool_calls or ()] == [
        "call_0_0",
        "call_1_0",
    ]


async def test_arguments_may_be_text_as_a_model_writes_it() -> None:
    *deltas, answer = await played(
        scripted({"tool_calls": [{"name": "add", "arguments": '{"x": 1}'}]})
    )

    assert isinstance(answer, ChatResponse)
    assert answer.tool_calls == (
        ToolCall(
            id="call_0_0", name="add", arguments={"x": 1}, raw_arguments='{"x": 1}'
        ),
    )
    assert deltas == [ToolCallDelta(id="call_0_0", name="add", arguments='{"x": 1}')]


@pytest.mark.parametrize("arguments", ["no JSON at all", [1, 2], 7])
async def test_arguments_that_are_no_object_are_a_problem_of_the_call(
    arguments: JSONValue,
) -> None:
    answer = await scripted(
        {"tool_calls": [{"name": "add", "arguments": arguments}]}
    ).complete(REQUEST)

    (call,) = answer.tool_calls or ()
    assert call.problem
    assert call.arguments == {}
    assert call.raw_arguments


async def test_usage_and_finish_reason_may_be_given() -> None:
    answer = await scripted(
        {"text": "Hi", "usage": [10, 5], "finish_reason": "length"}
    ).complete(REQUEST)

    assert answer.usage == Usage(input_tokens=10, output_tokens=5, total_tokens=15)
    assert answer.finish_reason == "length"
    assert not answer.is_complete


async def test_usage_may_name_each_kind_of_tokens_and_the_cost() -> None:
    used: JSONObject = {
        "input_tokens": 10,
        "output_tokens": 4,
        "reasoning_tokens": 3,
        "cache_read_tokens": 8,
        "cost_usd": "0.002",
    }

    response = await scripted({"text": "Hi", "usage": used}).complete(REQUEST)

    assert response.usage == Usage(
        input_tokens=10,
        output_tokens=4,
        total_tokens=14,
        reasoning_tokens=3,
        cache_read_tokens=8,
        cost_usd=Decimal("0.002"),
    )


async def test_blocks_of_vendors_come_between_thinking_and_text() -> None:
    blocks: list[JSONObject] = [
        {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
        {
            "type": "reasoning",
            "content": [],
            "summary": [{"type": "summary_text", "text": "I see."}],
            "encrypted_content": "x",
        },
        {"type": "redacted_thinking", "data": "y"},
        {"type": "server_tool_use", "id": "z"},
    ]

    *deltas, response = await played(
        scripted({"thinking": "First.", "blocks": blocks, "text": "Hi"})
    )

    assert isinstance(response, ChatResponse)
    assert [block_to_dict(block) for block in response.content[1:-1]] == blocks
    assert deltas == [
        ThinkingDelta(text="First."),
        ThinkingDelta(text="Hm.", index=1),
        ThinkingDelta(text="I see.", index=2),
        TextDelta(text="Hi", index=5),
    ]


async def test_an_empty_answer_has_no_blocks() -> None:
    (answer,) = await played(scripted({}))

    assert isinstance(answer, ChatResponse)
    assert answer.content == ()


async def test_a_script_that_ends_says_so() -> None:
    provider = scripted("One")
    await provider.complete(REQUEST)

    with pytest.raises(LLMError, match="has 1 answers and this is request 2") as caught:
        await provider.complete(REQUEST)
    assert caught.value.provider == "scripted"


async def test_a_repeated_script_starts_again() -> None:
    provider = scripted("One", "Two", repeat=True)

    assert [(await provider.complete(REQUEST)).text for _ in range(3)] == [
        "One",
        "Two",
        "One",
    ]


async def test_an_empty_script_cannot_repeat() -> None:
    with pytest.raises(LLMError, match="has 0 answers"):
        await scripted(repeat=True).complete(REQUEST)


async def test_an_error_may_be_a_message() -> None:
    with pytest.raises(LLMError, match="boom") as caught:
        await scripted({"error": "boom"}).complete(REQUEST)

    assert type(caught.value) is LLMError
    assert caught.value.provider == "scripted"


async def test_an_error_may_be_any_of_the_family_with_its_details() -> None:
    error: JSONValue = {
        "type": "RateLimitError",
        "message": "slow",
        "status_code": 429,
        "retry_after": 2,
    }
    with pytest.raises(RateLimitError, match="slow") as caught:
        await scripted({"error": error}, name="mine").complete(REQUEST)

    assert (
        caught.value.status_code,
        caught.value.retry_after,
        caught.value.provider,
    ) == (429, 2.0, "mine")
    assert caught.value.retryable


async def test_an_error_may_say_that_trying_again_is_useless() -> None:
    with pytest.raises(NetworkError, match="scripted error") as caught:
        await scripted(
            {"error": {"type": "NetworkError", "retryable": False}}
        ).complete(REQUEST)

    assert not caught.value.retryable


async def test_an_error_may_come_after_a_part_of_the_answer() -> None:
    seen: list[object] = []
    with pytest.raises(LLMError, match="boom"):
        async with scripted({"deltas": ["Half"], "error": "boom"}).stream(
            REQUEST
        ) as items:
            async for item in items:
                seen.append(item)  # noqa: PERF401  # what came before the error counts

    assert seen == [TextDelta(text="Half")]


async def test_an_answer_may_be_delayed() -> None:
    before = anyio.current_time()

    await scripted({"text": "Late", "delay": 0.01}).complete(REQUEST)

    assert anyio.current_time() - before >= 0.01


async def test_a_delayed_answer_can_be_cancelled() -> None:
    provider = scripted({"text": "Never", "delay": 3600})
    answers: list[ChatResponse] = []

    async def ask() -> None:
        answers.append(await provider.complete(REQUEST))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()

    assert provider.requests == [REQUEST]
    assert answers == []


async def test_it_says_that_it_is_no_model() -> None:
    info = scripted(name="demo", context_window=100, max_output_tokens=10).get_info()

    assert (info.id, info.display_name) == ("demo", "Scripted answers (no model)")
    assert info.defaults == {
        "model": "scripted",
        "context_window": 100,
        "max_output_tokens": 10,
    }


async def test_it_lists_its_one_model() -> None:
    (model,) = await scripted().list_models()

    assert (model.id, model.context_window, model.max_output_tokens) == (
        "scripted",
        200_000,
        8_000,
    )


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({}, "responses: missing"),
        ({"responses": [], "repeet": True}, "repeet: unknown.*'repeat'"),
        ({"responses": [], "repeat": "yes"}, "repeat: expected a boolean"),
        ({"responses": {"text": "x"}}, "responses: a list of answers; got dict"),
        (
            {"responses": ["x", 7]},
            r"responses\[1\]: an answer is a text or a mapping; got int",
        ),
        ({"responses": [{"txt": "x"}]}, r"responses\[0\]\.txt: unknown.*'text'"),
        (
            {"responses": [{"tool_calls": [{}]}]},
            r"responses\[0\]\.tool_calls\[0\]\.name: missing",
        ),
        (
            {"responses": [{"error": {"type": "RateLimitErr"}}]},
            r"responses\[0\]\.error.*did you mean 'RateLimitError'",
        ),
        (
            {"responses": [{"usage": {"input_tokens": -1}}]},
            r"responses\[0\]\.usage.*from 0; got -1",
        ),
        (
            {"responses": [{"blocks": [{"type": "thinking"}]}]},
            r"responses\[0\]\.blocks\[0\]\.thinking: missing",
        ),
        ({"responses": [{"delay": -1}]}, r"responses\[0\]\.delay: .*from 0; got -1"),
        (
            {"responses": "/nowhere/script.json"},
            "responses: cannot read '/nowhere/script.json'",
        ),
    ],
)
def test_a_configuration_that_does_not_fit_is_named(
    config: Mapping[str, JSONValue], problem: str
) -> None:
    definition = definition_of(ScriptedProvider)
    assert definition is not None

    with pytest.raises(ConfigError, match=problem):
        definition.build(ModuleCoordinator(), config)
