"""What the reader makes of chunks, also of those that servers garble without harm."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from time import thread_time
from typing import Final

import httpx2
import openai
import pytest

from amplifier.testing.transport import HttpAnswer, ScriptedTransport
from amplifier_kit.http.sse import EventDecoder, ServerEvent
from amplifier_module_provider_chat_completions.answers import ChatAnswer
from amplifier_sdk.chat import ChatResponse, ToolCall, Usage
from amplifier_sdk.content import TextBlock, ThinkingBlock, ToolCallBlock
from amplifier_sdk.errors import LLMError, StreamError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.streaming import Delta, TextDelta, ThinkingDelta, ToolCallDelta

GOOD: Final = Path(__file__).parent / "streams" / "good"
STOP: Final[JSONObject] = {
    "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]
}


def said(**delta: JSONValue) -> JSONObject:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def piece(arguments: JSONValue = "", **more: JSONValue) -> JSONObject:
    function: JSONObject = {"arguments": arguments}
    if "name" in more:
        function["name"] = more.pop("name")
    return said(tool_calls=[{**more, "function": function}])


def reported(event: JSONValue) -> ServerEvent:
    return ServerEvent(data=event if isinstance(event, str) else json.dumps(event))


def read(*events: JSONValue) -> tuple[list[Delta], ChatResponse]:
    answer = ChatAnswer(fail=LLMError)
    deltas: list[Delta] = []
    for event in events:
        deltas += answer.feed(reported(event))
    return deltas, answer.finish()


def calls(*events: JSONValue) -> list[ToolCall]:
    """Return the calls; what streamed of each is what it is."""
    deltas, answer = read(*events)
    found = list(answer.tool_calls or ())
    for call in found:
        parts = [
            delta
            for delta in deltas
            if isinstance(delta, ToolCallDelta) and delta.id == call.id
        ]
        assert {part.name for part in parts} == {call.name}
        assert "".join(part.arguments for part in parts) == call.raw_arguments
    assert [
        block.id for block in answer.content if isinstance(block, ToolCallBlock)
    ] == [call.id for call in found]
    return found


def test_thinking_text_and_calls_are_blocks_in_their_order() -> None:
    deltas, answer = read(
        said(reasoning="I "),
        said(reasoning="think."),
        said(content="So: "),
        piece('{"a": 1}', index=0, id="c1", name="add"),
        said(content="Done."),
        STOP,
    )

    assert answer.content == (
        ThinkingBlock(thinking="I think."),
        TextBlock(text="So: "),
        ToolCallBlock(id="c1", name="add", input={"a": 1}),
        TextBlock(text="Done."),
    )
    assert deltas == [
        ThinkingDelta(text="I ", index=0),
        ThinkingDelta(text="think.", index=0),
        TextDelta(text="So: ", index=1),
        ToolCallDelta(id="c1", name="add", arguments='{"a": 1}', index=2),
        TextDelta(text="Done.", index=3),
    ]
    assert answer.finish_reason == "tool_calls"


def test_reasoning_under_both_names_is_read_once() -> None:
    _, answer = read(said(reasoning="Hm.", reasoning_content="Hm."), STOP)

    assert answer.content == (ThinkingBlock(thinking="Hm."),)


def test_parallel_calls_are_told_apart_by_their_numbers() -> None:
    found = calls(
        piece('{"a"', index=0, id="c1", name="add"),
        piece('{"b"', index=1, id="c2", name="add"),
        piece(": 1}", index=0),
        piece(": 2}", index=1),
        STOP,
    )

    assert [(call.id, call.arguments) for call in found] == [
        ("c1", {"a": 1}),
        ("c2", {"b": 2}),
    ]


def test_calls_without_numbers_are_told_apart_by_ids_or_names() -> None:
    by_id = calls(
        piece('{"a"', id="c1", name="add"),
        piece(": 1}", id="c1"),
        piece("{}", id="c2", name="sub"),
        STOP,
    )
    by_name = calls(
        piece('{"a"', name="add"), piece(": 1}"), piece("{}", name="sub"), STOP
    )

    assert [(call.name, call.arguments) for call in by_id] == [
        ("add", {"a": 1}),
        ("sub", {}),
    ]
    assert [(call.name, call.arguments) for call in by_name] == [
        ("add", {"a": 1}),
        ("sub", {}),
    ]


def test_another_id_under_one_number_is_another_call() -> None:
    found = calls(
        piece("{}", index=0, id="c1", name="add"),
        piece("{}", index=0, id="c2", name="add"),
        STOP,
    )

    assert [call.id for call in found] == ["c1", "c2"]


def test_missing_and_repeated_ids_are_made_unique() -> None:
    found = calls(
        piece("{}", index=0, name="add"),
        piece("{}", index=1, id="same", name="add"),
        piece("{}", index=2, id="same", name="add"),
        STOP,
    )

    assert found[1].id == "same"
    assert len({call.id for call in found}) == 3
    assert all(call.id for call in found)


def test_a_name_may_be_repeated_or_come_in_parts() -> None:
    repeated = calls(
        piece("", index=0, id="c", name="add"), piece("{}", index=0, name="add"), STOP
    )
    parted = calls(
        piece("", index=0, id="c", name="get_"),
        piece("", index=0, name="weather"),
        piece("{}", index=0),
        STOP,
    )
    late = calls(
        piece("{", index=0, id="c", name="add"), piece("}", index=0, name="add"), STOP
    )

    assert [call.name for call in (*repeated, *parted, *late)] == [
        "add",
        "get_weather",
        "add",
    ]


def test_a_name_may_come_behind_the_arguments() -> None:
    first = calls(
        piece('{"a"', index=0), piece(": 1}", index=0, id="c", name="add"), STOP
    )
    last = calls(
        piece('{"a": 1}', index=0, id="c"), piece("", index=0, name="add"), STOP
    )

    assert [(call.name, call.arguments) for call in (*first, *last)] == [
        ("add", {"a": 1})
    ] * 2


def test_a_call_that_names_no_tool_is_an_error_and_never_shown() -> None:
    answer = ChatAnswer(fail=LLMError)
    shown = [
        delta
        for event in (piece("{}", index=0, id="c"), STOP)
        for delta in answer.feed(reported(event))
    ]

    assert shown == []
    with pytest.raises(StreamError, match="names no tool"):
        answer.finish()


def test_calls_that_share_one_number_are_told_apart_by_ids() -> None:
    found = calls(
        piece('{"a"', index=0, id="c1", name="add"),
        piece('{"b"', index=0, id="c2", name="sub"),
        piece(": 1}", index=0, id="c1"),
        piece(": 2}", index=0, id="c2"),
        STOP,
    )
    late = calls(
        piece("", index=0, name="add"),
        piece("{}", index=0, id="c1"),
        piece("{}", index=0, id="c2", name="sub"),
        STOP,
    )

    assert [(call.id, call.arguments) for call in found] == [
        ("c1", {"a": 1}),
        ("c2", {"b": 2}),
    ]
    assert [call.name for call in late] == ["add", "sub"]


@pytest.mark.figures
def test_each_of_many_calls_takes_no_longer_than_each_of_few() -> None:
    def seconds(number: int) -> float:
        answer = ChatAnswer(fail=LLMError)
        began = thread_time()
        for place in range(number):
            assert list(answer.feed(reported(piece("{}", id=f"c{place}", name="add"))))
        return (thread_time() - began) / number

    assert any(seconds(8_000) < 4 * seconds(500) for _ in range(5))


def test_args_that_cannot_be_read_are_shown_as_model_wrote_them() -> None:
    _, answer = read(piece('{"a": ', index=0, id="c", name="add"), STOP)

    assert answer.content == (
        ToolCallBlock(id="c", name="add", input={"raw_arguments": '{"a": '}),
    )


def test_halves_of_a_character_are_joined_or_replaced() -> None:
    thought, said_apart = (
        said(reasoning="\ud83d"),
        (said(content="\ud83d"), said(content="\ude00")),
    )
    deltas, answer = read(
        thought,
        *said_apart,
        piece('{"a": "\ud83d', index=0, id="c\ud83d", name="add\ud83d"),
        STOP,
    )

    assert answer.content == (
        ThinkingBlock(thinking="\ufffd"),
        TextBlock(text="\U0001f600"),
        ToolCallBlock(
            id="c\ufffd", name="add\ufffd", input={"raw_arguments": '{"a": "\ufffd'}
        ),
    )
    for delta in deltas:
        repr(delta).encode()


def test_arguments_may_be_missing_empty_or_an_object() -> None:
    assert calls(piece(None, index=0, id="c", name="now"), STOP)[0].arguments == {}
    assert calls(piece("", index=0, id="c", name="now"), STOP)[0].arguments == {}
    assert calls(piece({"a": 1}, index=0, id="c", name="add"), STOP)[0].arguments == {
        "a": 1
    }
    assert (
        calls(
            said(tool_calls=[{"index": 0, "id": "c", "function": {"name": "now"}}]),
            STOP,
        )[0].problem
        is None
    )


def test_the_older_form_of_a_call_is_read() -> None:
    end: JSONObject = {
        "choices": [{"index": 0, "delta": {}, "finish_reason": "function_call"}]
    }
    found = calls(
        said(function_call={"name": "add", "arguments": '{"a"'}),
        said(function_call={"arguments": ": 1}"}),
        end,
    )

    assert [(call.name, call.arguments) for call in found] == [("add", {"a": 1})]


def test_a_message_that_comes_whole_is_read() -> None:
    message: JSONObject = {"role": "assistant", "content": "Whole."}
    _, answer = read(
        {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    )

    assert answer.text == "Whole."


def test_a_choice_whose_number_is_null_is_the_only_one() -> None:
    _, answer = read(
        {
            "choices": [
                {"index": None, "delta": {"content": "a"}, "finish_reason": "stop"}
            ]
        }
    )

    assert answer.text == "a"


def test_an_event_that_is_named_an_error_is_one() -> None:
    answer = ChatAnswer(fail=LLMError)

    with pytest.raises(LLMError, match="Overloaded"):
        list(answer.feed(ServerEvent(event="error", data='{"message": "Overloaded"}')))


def test_content_in_parts_and_refusals_are_text() -> None:
    _, parts = read(
        said(content=[{"type": "text", "text": "a"}, {"type": "other"}, "odd"]), STOP
    )
    _, refused = read(said(refusal="I can't."), STOP)

    assert parts.text == "a"
    assert (refused.text, refused.finish_reason, refused.metadata) == (
        "I can't.",
        "stop",
        {"refusal": True},
    )


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("stop", "stop"),
        ("eos_token", "stop"),
        ("max_tokens", "length"),
        ("content_filter", "content_filter"),
    ],
    ids=["stop", "eos", "max", "filter"],
)
def test_reasons_are_the_contracts(reason: str, expected: str) -> None:
    _, answer = read(
        said(content="a"), {"choices": [{"index": 0, "finish_reason": reason}]}
    )

    assert (answer.finish_reason, answer.metadata) == (expected, None)


def test_an_unknown_reason_is_an_error_and_kept() -> None:
    _, answer = read(
        said(content="a"), {"choices": [{"index": 0, "finish_reason": "bored"}]}
    )

    assert (answer.finish_reason, answer.metadata) == (
        "error",
        {"finish_reason": "bored"},
    )


def test_server_may_leave_out_one_sign_of_end_but_not_both() -> None:
    assert read(said(content="a"), STOP)[1].finish_reason == "stop"
    assert read(said(content="a"), "[DONE]")[1].finish_reason == "stop"
    with pytest.raises(StreamError):
        read(said(content="a"))
    with pytest.raises(StreamError):
        read(piece("{}", index=0, id="c", name="add"), "[DONE]")


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 5}, Usage(input_tokens=5, output_tokens=0, total_tokens=5)),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 2,
                "prompt_cache_hit_tokens": 3,
                "cost": 0.00015,
            },
            Usage(
                input_tokens=5,
                output_tokens=2,
                total_tokens=7,
                cache_read_tokens=3,
                cost_usd=Decimal("0.00015"),
            ),
        ),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
            Usage(
                input_tokens=5,
                output_tokens=2,
                total_tokens=7,
                reasoning_tokens=2,
                cache_read_tokens=1,
                cache_write_tokens=4,
            ),
        ),
        ({"prompt_tokens": "many"}, None),
        (None, None),
    ],
    ids=["least", "hits and cost", "details", "odd", "none"],
)
def test_counts_are_read_in_each_servers_spelling(
    usage: JSONValue, expected: Usage | None
) -> None:
    _, answer = read(said(content="a"), STOP, {"choices": [], "usage": usage})

    assert answer.usage == expected


@pytest.mark.parametrize("cost", ["-0.5", "1e999", "-1e999", "true", '"0.5"'])
def test_a_cost_that_nothing_can_cost_is_unknown(cost: str) -> None:
    _, answer = read(
        said(content="a"), STOP, f'{{"usage": {{"prompt_tokens": 5, "cost": {cost}}}}}'
    )

    assert answer.usage == Usage(input_tokens=5, output_tokens=0, total_tokens=5)


# the client leaves generators behind, which trio reports
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("name", ["text", "tools"])
async def test_openais_own_client_reads_the_same(name: str) -> None:
    data = (GOOD / f"{name}.sse").read_bytes()
    transport = ScriptedTransport(HttpAnswer(parts=(data,)))
    client = openai.AsyncOpenAI(
        api_key="sk-test", http_client=httpx2.AsyncClient(transport=transport)
    )
    async with client.chat.completions.stream(
        model="gpt-9", messages=[], stream_options={"include_usage": True}
    ) as stream:
        theirs = await stream.get_final_completion()
    await client.close()

    _, ours = read(
        *(
            event.data
            for event in EventDecoder().feed(data)
            if isinstance(event, ServerEvent)
        )
    )

    (choice,) = theirs.choices
    assert ours.text == (choice.message.content or "")
    assert ours.finish_reason == choice.finish_reason
    wanted = [
        (call.id, call.function.name, call.function.arguments)
        for call in choice.message.tool_calls or ()
    ]
    assert [
        (call.id, call.name, call.raw_arguments) for call in ours.tool_calls or ()
    ] == wanted
    assert theirs.usage is not None
    assert ours.usage is not None
    assert (ours.usage.input_tokens, ours.usage.output_tokens) == (
        theirs.usage.prompt_tokens,
        theirs.usage.completion_tokens,
    )
