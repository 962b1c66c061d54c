"""Streams of the API become answers; what is not whole becomes none."""

from __future__ import annotations

import json
from collections.abc import Mapping

import httpx2
import pytest
from openai import OpenAI
from openai.types.responses import ResponseFunctionToolCall, ResponseReasoningItem

from amplifier_kit.http.sse import ServerEvent
from amplifier_kit.vendors.responses import ResponsesReader
from amplifier_sdk.chat import ChatResponse
from amplifier_sdk.content import ReasoningBlock, TextBlock, ToolCallBlock, VendorBlock
from amplifier_sdk.errors import LLMError, StreamError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.streaming import TextDelta, ThinkingDelta, ToolCallDelta
from tests.kit.vendors.responses.acme import BAD, BECOMES, GOOD, events, read
from tests.timing import grows_in_proportion

NUMBERED = sorted(set(GOOD) - {"cut", "empty_output", "unnumbered"})
"""The streams that OpenAI's own library reads to the end."""


def event(**data: JSONValue) -> ServerEvent:
    return ServerEvent(data=json.dumps(data))


@pytest.mark.parametrize("name", NUMBERED)
def test_answer_is_what_vendors_own_library_makes_of_stream(
    name: str,
) -> None:
    headers = {"content-type": "text/event-stream"}
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(200, headers=headers, content=GOOD[name])
    )
    with (
        httpx2.Client(transport=transport) as http,
        OpenAI(api_key="none", http_client=http).responses.stream(
            model="gpt-6.1-sol", input="Hello."
        ) as stream,
    ):
        theirs = stream.get_final_response()

    _, ours = read(GOOD[name])

    calls = [
        item for item in theirs.output if isinstance(item, ResponseFunctionToolCall)
    ]
    reasoning = [
        item for item in theirs.output if isinstance(item, ResponseReasoningItem)
    ]
    refusal = (ours.metadata or {}).get("openai:refusal", "")
    assert ours.text == (theirs.output_text or refusal)
    assert [(call.id, call.name, call.arguments) for call in ours.tool_calls or ()] == [
        (call.call_id, call.name, json.loads(call.arguments)) for call in calls
    ]
    assert [
        block.extras["encrypted_content"]
        for block in ours.content
        if isinstance(block, ReasoningBlock)
    ] == [item.encrypted_content for item in reasoning]
    assert theirs.usage is not None
    assert ours.usage is not None
    assert (ours.usage.input_tokens, ours.usage.output_tokens) == (
        theirs.usage.input_tokens,
        theirs.usage.output_tokens,
    )
    assert (
        ours.usage.cache_read_tokens == theirs.usage.input_tokens_details.cached_tokens
    )
    assert (
        ours.usage.cache_write_tokens
        == theirs.usage.input_tokens_details.cache_write_tokens
    )
    assert (
        ours.usage.reasoning_tokens
        == theirs.usage.output_tokens_details.reasoning_tokens
    )


@pytest.mark.parametrize("name", sorted(GOOD))
def test_the_deltas_are_the_answer_block_by_block(name: str) -> None:
    deltas, answer = read(GOOD[name])

    shown: dict[int, str] = {}
    for delta in deltas:
        piece = delta.arguments if isinstance(delta, ToolCallDelta) else delta.text
        shown[delta.index] = shown.get(delta.index, "") + piece
    reported: dict[int, str] = {}
    raw = {call.id: call.raw_arguments or "" for call in answer.tool_calls or ()}
    for index, block in enumerate(answer.content):
        match block:
            case TextBlock() | ReasoningBlock() if block.text:
                reported[index] = block.text
            case ToolCallBlock():
                reported[index] = raw[block.id]
            case _:  # nothing that is shown
                pass
    assert shown == reported
    indexes = [delta.index for delta in deltas]
    assert indexes == sorted(indexes)


@pytest.mark.parametrize("name", sorted(BECOMES))
def test_a_bad_stream_becomes_an_error_or_nothing_that_runs(name: str) -> None:
    try:
        _, answer = read(BAD[name])
    except LLMError as error:
        assert type(error).__name__ == BECOMES[name]
    else:
        assert not [call for call in answer.tool_calls or () if call.problem is None]
        assert BECOMES[name] in (answer.finish_reason, "problem", "text")


def test_reasoning_and_calls_stand_in_their_order() -> None:
    deltas, answer = read(GOOD["tool"])

    assert [type(block) for block in answer.content] == [
        ReasoningBlock,
        ToolCallBlock,
        ToolCallBlock,
    ]
    assert answer.finish_reason == "tool_calls"
    assert {
        (delta.id, delta.name) for delta in deltas if isinstance(delta, ToolCallDelta)
    } == {
        ("call_7Yb", "work"),
        ("call_8Zc", "work"),
    }
    assert answer.metadata == {
        "model": "gpt-6.1-sol-2026-09-18",
        "openai:response_id": "resp_68ef0a7c2b1c8190b5e2",
        "openai:status": "completed",
        "openai:reasoning_items": ["rs_01"],
        "openai:service_tier": "default",
    }


def test_parts_of_a_summary_stand_apart() -> None:
    deltas, answer = read(GOOD["thinking"])

    thought = "".join(
        delta.text for delta in deltas if isinstance(delta, ThinkingDelta)
    )
    assert thought == "First I look.\n\nThen I weigh it."
    reasoning = answer.content[0]
    assert isinstance(reasoning, ReasoningBlock)
    assert thought == reasoning.text


def test_reasoning_is_taken_from_the_event_that_has_all_of_it() -> None:
    whole: JSONObject = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "encrypted_content": "all of it",
    }
    stream = [
        event(type="response.output_item.done", output_index=0, item=whole),
        event(
            type="response.completed",
            response={
                "status": "completed",
                "output": [{**whole, "encrypted_content": "all"}],
            },
        ),
    ]

    _, answer = read(stream)

    assert answer.content[0].extras["encrypted_content"] == "all of it"


def test_reasoning_of_server_that_gives_no_ids_stays_what_it_is() -> None:
    output: list[JSONValue] = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "message", "content": [{"type": "output_text", "text": "Yes."}]},
    ]
    stream = [
        *(
            event(type="response.output_item.done", output_index=place, item=item)
            for place, item in enumerate(output)
        ),
        event(
            type="response.completed",
            response={"status": "completed", "output": output},
        ),
    ]

    _, answer = read(stream)

    assert (answer.thinking, answer.text, len(answer.content)) == ("Hm.", "Yes.", 2)


def test_a_cut_answer_keeps_its_text_and_says_why_it_was_cut() -> None:
    _, answer = read(GOOD["cut"])

    assert (answer.text, answer.finish_reason, answer.is_complete) == (
        "The list goes on and",
        "length",
        False,
    )
    assert (answer.metadata or {})["openai:incomplete_reason"] == "max_output_tokens"


def test_a_refusal_is_an_answer_that_says_so() -> None:
    _, answer = read(GOOD["refusal"])

    assert (answer.text, answer.finish_reason) == ("I can't help with that.", "stop")
    assert (answer.metadata or {})["openai:refusal"] == answer.text


def test_items_of_the_vendors_own_tools_are_kept() -> None:
    _, answer = read(GOOD["web_search"])

    assert isinstance(answer.content[0], VendorBlock)
    assert (answer.content[0].type, answer.content[0].extras["id"]) == (
        "web_search_call",
        "ws_01",
    )


def test_calls_without_ids_and_with_same_get_ids_of_their_own() -> None:
    call: Mapping[str, JSONValue] = {
        "type": "function_call",
        "name": "work",
        "arguments": "{}",
    }
    output = [
        call,
        {**call, "id": "fc_1"},
        {**call, "call_id": "c"},
        {**call, "call_id": "c"},
    ]

    deltas, answer = read(
        [
            event(
                type="response.completed",
                response={"status": "completed", "output": output},
            )
        ]
    )

    ids = [call.id for call in answer.tool_calls or ()]
    assert ids == ["call_0", "fc_1", "c", "c-3"]
    assert [delta.id for delta in deltas if isinstance(delta, ToolCallDelta)] == ids


@pytest.mark.figures
@pytest.mark.parametrize("has_ids", [True, False], ids=["with ids", "without"])
def test_a_response_of_many_calls_takes_time_in_proportion(has_ids: bool) -> None:
    def read_calls(number: int) -> None:
        call: JSONObject = {"type": "function_call", "name": "work", "arguments": "{}"}
        output = [
            {**call, "id": f"fc_{place}"} if has_ids else call
            for place in range(number)
        ]
        _, answer = read(
            [
                event(
                    type="response.completed",
                    response={"status": "completed", "output": output},
                )
            ]
        )
        assert len(answer.tool_calls or ()) == number

    assert grows_in_proportion(read_calls, 50, 800)


def test_pieces_of_call_that_nobody_named_yet_wait_for_its_name() -> None:
    stream = [
        event(
            type="response.function_call_arguments.delta", output_index=0, delta='{"a":'
        ),
        event(
            type="response.output_item.done",
            output_index=0,
            item={
                "type": "function_call",
                "call_id": "c",
                "name": "work",
                "arguments": '{"a":1}',
            },
        ),
    ]
    reader = ResponsesReader()

    assert [list(reader.feed(item)) for item in stream] == [
        [],
        [ToolCallDelta(id="c", name="work", arguments='{"a":1}')],
    ]


def test_usage_without_figures_is_unknown() -> None:
    stream = [
        event(
            type="response.completed",
            response={"output": [], "usage": {"input_tokens": 3}},
        )
    ]

    assert read(stream)[1].usage is None


def test_what_is_no_item_and_says_nothing_is_left_out() -> None:
    silent: JSONObject = {
        "type": "message",
        "content": [
            {"type": "output_text", "text": ""},
            {"type": "output_audio"},
            "sound",
        ],
    }
    stream = [
        event(
            type="response.content_part.added",
            output_index=0,
            part={"type": "output_audio"},
        ),
        event(type="response.completed", response={"output": [{"id": "x"}, silent, 7]}),
    ]

    assert read(stream)[1].content == ()


def test_what_a_text_was_shown_as_does_not_change_what_it_is() -> None:
    whole: JSONObject = {
        "type": "message",
        "content": [{"type": "output_text", "text": "Water is wet."}],
    }
    stream = [
        event(type="response.output_text.delta", output_index=0, delta="Fire"),
        event(type="response.completed", response={"output": [whole]}),
    ]

    assert read(stream)[1].text == "Water is wet."


def test_output_that_is_no_list_is_none() -> None:
    _, answer = read(
        [event(type="response.completed", response={"output": "text", "error": None})]
    )

    assert (answer.content, answer.finish_reason) == ((), "stop")


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_an_end_that_contradicts_its_status_is_an_error(status: str) -> None:
    with pytest.raises(StreamError):
        read([event(type="response.completed", response={"status": status})])


def test_the_event_names_what_its_data_does_not() -> None:
    response = {"response": {"status": "completed", "output": []}}
    reader = ResponsesReader()

    assert (
        list(
            reader.feed(
                ServerEvent(event="response.completed", data=json.dumps(response))
            )
        )
        == []
    )
    assert reader.is_ended
    assert reader.response == response["response"]


def test_nothing_is_whole_before_the_end() -> None:
    reader = ResponsesReader()
    seen: list[str] = []
    for item in events(GOOD["text"]):
        assert not reader.is_ended
        with pytest.raises(StreamError):
            reader.finish()
        seen += [
            delta.text for delta in reader.feed(item) if isinstance(delta, TextDelta)
        ]

    answer = reader.finish()
    assert isinstance(answer, ChatResponse)
    assert "".join(seen) == answer.text
