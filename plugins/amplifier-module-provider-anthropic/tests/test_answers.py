"""What becomes of an answer's events, by the streams in `streams/`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import pytest

from amplifier_kit.http.sse import EventDecoder, ServerEvent
from amplifier_module_provider_anthropic.answers import MessageReader
from amplifier_module_provider_anthropic.faults import reported_fault
from amplifier_sdk import errors
from amplifier_sdk.chat import ChatResponse, ToolCall, Usage
from amplifier_sdk.content import (
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    VendorBlock,
)
from amplifier_sdk.errors import LLMError, StreamError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.streaming import Delta, TextDelta, ThinkingDelta, ToolCallDelta

BAD: Final = sorted((Path(__file__).parent / "streams" / "bad").glob("*.sse"))
Stream = Callable[[str], bytes]


def _fail(event: Mapping[str, JSONValue]) -> LLMError:
    return reported_fault(event, multiplier=10)


def _events(data: bytes) -> Iterable[ServerEvent]:
    return [item for item in EventDecoder().feed(data) if isinstance(item, ServerEvent)]


def _read(
    data: bytes, names: Mapping[str, str] | None = None
) -> tuple[list[Delta], ChatResponse]:
    answer = MessageReader(names=names or {}, fail=_fail)
    deltas: list[Delta] = []
    for event in _events(data):
        deltas += answer.feed(event)
        if answer.is_ended:
            break
    return deltas, answer.finish()


def test_text_streams_as_it_comes(stream: Stream) -> None:
    deltas, response = _read(stream("text"))

    assert deltas == [TextDelta(text="Hello"), TextDelta(text="! Größe: 🙂")]
    assert response.content == (TextBlock(text="Hello! Größe: 🙂"),)
    assert response.finish_reason == "stop"
    assert response.metadata == {
        "anthropic:message_id": "msg_01XFDUDYJgAACzvnptvVoYEL",
        "anthropic:model": "claude-sonnet-5-5",
        "anthropic:stop_reason": "end_turn",
    }


def test_a_call_streams_as_its_arguments_form(stream: Stream) -> None:
    deltas, response = _read(stream("tool"))

    pieces = [delta for delta in deltas if isinstance(delta, ToolCallDelta)]
    assert (
        "".join(piece.arguments for piece in pieces)
        == '{"location": "San Francisco, CA", "unit": "fahrenheit"}'
    )
    assert {(piece.id, piece.name, piece.index) for piece in pieces} == {
        ("toolu_01T1x1fJ34qAmk2tNTrN7Up6", "get_weather", 1)
    }
    assert response.finish_reason == "tool_calls"
    arguments = {"location": "San Francisco, CA", "unit": "fahrenheit"}
    assert response.content[1] == ToolCallBlock(
        id="toolu_01T1x1fJ34qAmk2tNTrN7Up6", name="get_weather", input=arguments
    )
    assert response.tool_calls is not None
    assert response.tool_calls[0].arguments == arguments


def test_blocks_that_arrive_at_the_same_time_are_told_apart(stream: Stream) -> None:
    _, response = _read(stream("two-tools"))

    assert [(call.id, call.arguments) for call in response.tool_calls or ()] == [
        ("toolu_01A", {"location": "Bern"}),
        ("toolu_01B", {"zone": "CET"}),
    ]


def test_a_call_without_arguments_has_an_empty_object(stream: Stream) -> None:
    _, response = _read(stream("no-arguments"))

    assert [(call.arguments, call.problem) for call in response.tool_calls or ()] == [
        ({}, None),
        ({}, None),
    ]


def test_a_call_whose_arguments_came_at_once_has_them(stream: Stream) -> None:
    _, response = _read(stream("whole-input"))

    assert response.tool_calls == [
        ToolCall(id="toolu_01J", name="get_time", arguments={"zone": "UTC"})
    ]


def test_an_empty_piece_takes_nothing_from_what_came_at_once(stream: Stream) -> None:
    _, response = _read(stream("whole-input-and-empty-piece"))

    assert response.tool_calls == [
        ToolCall(id="toolu_01J", name="get_time", arguments={"zone": "UTC"})
    ]
    assert response.content[1] == VendorBlock(
        type="server_tool_use",
        extras={"id": "srvtoolu_01W", "name": "web_search", "input": {"query": "UTC"}},
    )


def test_unreadable_arguments_are_problem_not_empty_object(
    stream: Stream,
) -> None:
    _, response = _read(stream("garbled-arguments"))

    assert response.tool_calls is not None
    call = response.tool_calls[0]
    assert call.problem is not None
    assert call.raw_arguments == '{"zone": UTC or maybe'
    assert response.to_message()["tool_calls"] == [
        {
            "id": "toolu_01K",
            "tool": "get_time",
            "name": "get_time",
            "arguments": {"raw_arguments": '{"zone": UTC or maybe'},
        }
    ]
    assert response.content == (
        ToolCallBlock(
            id="toolu_01K",
            name="get_time",
            input={"raw_arguments": '{"zone": UTC or maybe'},
        ),
    )


@pytest.mark.parametrize("name", ["cut-call", "whole-call-at-the-limit"])
def test_call_in_answer_that_was_cut_is_in_no_complete_answer(
    stream: Stream, name: str
) -> None:
    _, response = _read(stream(name))

    assert response.finish_reason == "length"
    assert not response.is_complete


def test_thinking_keeps_its_signature(stream: Stream) -> None:
    deltas, response = _read(stream("thinking"))

    assert deltas[0] == ThinkingDelta(text="The question is short.")
    assert response.content[0] == ThinkingBlock(
        thinking="The question is short.\n\nSo is the answer.",
        signature="EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds",
    )


def test_thinking_that_is_not_shown_keeps_its_signature(stream: Stream) -> None:
    deltas, response = _read(stream("thinking-omitted"))

    assert deltas == [TextDelta(text="Yes.", index=1)]
    assert response.content[0] == ThinkingBlock(thinking="", signature="EosnCkYICxIM")


def test_encrypted_thinking_is_carried(stream: Stream) -> None:
    _, response = _read(stream("redacted-thinking"))

    assert response.content[0] == RedactedThinkingBlock(
        data="EmwKAhgBEgy3va3pzix/LafPsn4a"
    )


def test_blocks_of_the_api_s_own_tools_are_kept_whole(stream: Stream) -> None:
    deltas, response = _read(stream("server-tool"))

    _, use, result, text = response.content
    assert use == VendorBlock(
        type="server_tool_use",
        extras={
            "id": "srvtoolu_014hJH82Qum7Td6UV8gDXThB",
            "name": "web_search",
            "input": {"query": "weather NYC today"},
        },
    )
    assert isinstance(result, VendorBlock)
    assert result.extras["tool_use_id"] == "srvtoolu_014hJH82Qum7Td6UV8gDXThB"
    assert isinstance(text, TextBlock)
    citations = text.extras["citations"]
    assert isinstance(citations, list)
    assert [citation["cited_text"] for citation in citations] == ["Sunny, 75 F"]
    assert response.tool_calls is None
    assert [delta.index for delta in deltas] == [0, 3]


def test_usage_counts_all_that_was_read(stream: Stream) -> None:
    _, response = _read(stream("thinking"))

    assert response.usage == Usage(
        input_tokens=2120,
        output_tokens=60,
        total_tokens=2180,
        reasoning_tokens=45,
        cache_read_tokens=2000,
        cache_write_tokens=100,
    )


def test_usage_says_what_the_api_s_own_tools_did(stream: Stream) -> None:
    _, response = _read(stream("server-tool"))

    assert response.usage is not None
    assert response.usage.input_tokens == 10682
    assert response.usage.extras["server_tool_use"] == {
        "web_search_requests": 1,
        "web_fetch_requests": 0,
    }


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("max-tokens", "length"),
        ("window-exceeded", "length"),
        ("pause", "length"),
        ("refusal", "content_filter"),
        ("stop-sequence", "stop"),
        ("empty-answer", "stop"),
        ("other-reason", "error"),
    ],
)
def test_why_it_ended_is_said_in_the_words_of_all_providers(
    stream: Stream, name: str, reason: str
) -> None:
    _, response = _read(stream(name))

    assert response.finish_reason == reason


def test_the_api_s_own_words_are_in_the_metadata(stream: Stream) -> None:
    _, stopped = _read(stream("stop-sequence"))
    _, refused = _read(stream("refusal"))

    assert stopped.metadata is not None
    assert stopped.metadata["anthropic:stop_sequence"] == "three"
    assert refused.metadata is not None
    assert refused.metadata["anthropic:stop_details"] == {
        "type": "refusal",
        "category": "cyber",
        "explanation": None,
    }


def test_what_is_unknown_stops_nothing(stream: Stream) -> None:
    deltas, response = _read(stream("unknown-things"))

    assert deltas == [TextDelta(text="Hi", index=1)]
    assert response.content == (
        VendorBlock(type="hologram", extras={"colour": "blue", "visibility": "wide"}),
        TextBlock(text="Hi"),
    )


def test_a_block_that_would_be_taken_for_another_is_left_out(stream: Stream) -> None:
    _, response = _read(stream("unknown-things").replace(b"hologram", b"tool_call"))

    assert response.content == (TextBlock(text="Hi"),)


def test_events_need_no_names(stream: Stream) -> None:
    _, response = _read(stream("without-names"))

    assert response.text == "Hello"


def test_a_server_may_leave_counts_out(stream: Stream) -> None:
    bare = b"".join(
        b"data: "
        + json.dumps(
            {k: v for k, v in json.loads(event.data).items() if k != "usage"}
        ).encode()
        + b"\n\n"
        for event in _events(stream("text"))
    )
    _, response = _read(bare)

    assert response.usage is not None
    assert response.usage.output_tokens == 1


def test_a_block_may_begin_with_its_text(stream: Stream) -> None:
    deltas, response = _read(stream("text").replace(b'"text": ""', b'"text": "Oh! "'))

    assert response.text == "Oh! Hello! Größe: 🙂"
    assert deltas[0] == TextDelta(text="Oh! ")


def test_a_tool_has_its_own_name_again(stream: Stream) -> None:
    deltas, response = _read(stream("tool"), {"get_weather": "weather.get"})

    assert response.tool_calls is not None
    assert response.tool_calls[0].name == "weather.get"
    assert [delta.name for delta in deltas if isinstance(delta, ToolCallDelta)] == [
        "weather.get"
    ] * 3


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in BAD])
def test_a_bad_stream_is_an_error_and_no_answer(path: Path) -> None:
    data = path.read_bytes()
    expected: type[LLMError] = getattr(
        errors, data.partition(b"\n")[0].removeprefix(b": ").decode()
    )

    with pytest.raises(LLMError) as caught:
        _read(data)

    assert type(caught.value) is expected


@pytest.mark.parametrize("name", ["text", "tool", "thinking", "server-tool"])
def test_a_stream_that_is_cut_before_its_end_is_never_an_answer(
    stream: Stream, name: str
) -> None:
    data = stream(name)
    ends = {at for at in range(len(data)) if data[at - 1 : at] == b"\n"}

    for cut in sorted(ends | set(range(0, len(data), 13))):
        with pytest.raises(StreamError):
            _read(data[:cut])
