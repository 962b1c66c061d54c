"""Answers as the server streams them, beside what Ollama's own client hears."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx
import ollama
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_kit.http.sse import ServerEvent
from amplifier_module_provider_ollama.answers import OllamaAnswer
from amplifier_sdk.chat import ChatResponse, Usage
from amplifier_sdk.content import TextBlock, ThinkingBlock, ToolCallBlock
from amplifier_sdk.errors import ContextLengthError, LLMError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.streaming import Delta, TextDelta, ThinkingDelta, ToolCallDelta

STREAMS: Final = Path(__file__).with_name("streams")
GOOD: Final = sorted(path.stem for path in (STREAMS / "good").iterdir())


def lines_of(name: str) -> list[str]:
    text = (STREAMS / f"{name}.ndjson").read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line.strip()]


def read(lines: list[str]) -> tuple[list[Delta], ChatResponse]:
    """Read lines as the client feeds them: none behind the end."""
    reader = OllamaAnswer("llama3.2")
    deltas: list[Delta] = []
    for line in lines:
        deltas += reader.feed(ServerEvent(data=line))
        if reader.is_ended:
            break
    return deltas, reader.finish()


def heard_by_client(lines: list[str]) -> tuple[str, str, list[tuple[str, JSONValue]]]:
    """Return text, thinking and calls as Ollama's client hears them."""
    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, text="\n".join(lines))
    )
    parts = [
        part.message
        for part in ollama.Client(transport=transport).chat(
            model="llama3.2", stream=True
        )
    ]
    calls = [
        (call.function.name, dict(call.function.arguments))
        for part in parts
        for call in part.tool_calls or ()
    ]
    return (
        "".join(part.content or "" for part in parts),
        "".join(part.thinking or "" for part in parts),
        calls,
    )  # type: ignore[return-value]  # JSON


@pytest.mark.parametrize("name", [name for name in GOOD if name != "unknown-fields"])
def test_a_good_stream_is_heard_as_ollamas_client_hears_it(name: str) -> None:
    lines = lines_of(f"good/{name}")
    deltas, response = read(lines)

    thinking = "".join(
        block.thinking for block in response.content if isinstance(block, ThinkingBlock)
    )
    calls = [(call.name, call.arguments) for call in response.tool_calls or ()]
    assert (response.text, thinking, calls) == heard_by_client(lines)
    assert response.is_complete
    assert (
        "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
        == response.text
    )
    assert (
        "".join(delta.text for delta in deltas if isinstance(delta, ThinkingDelta))
        == thinking
    )
    assert [
        json.loads(delta.arguments)
        for delta in deltas
        if isinstance(delta, ToolCallDelta)
    ] == [call.arguments for call in response.tool_calls or ()]


def test_blocks_stand_in_the_order_in_which_they_came() -> None:
    deltas, response = read(lines_of("good/tools"))

    assert response.content == (
        ThinkingBlock(thinking="I look."),
        TextBlock(text="One moment."),
        ToolCallBlock(id="call_a", name="look_up", input={"word": "tide"}),
        ToolCallBlock(
            id="call_b", name="look_up", input={"word": "ebb", "n": [1, {"é": None}]}
        ),
    )
    assert [delta.index for delta in deltas] == [0, 1, 2, 3]
    assert response.finish_reason == "tool_calls"


def test_the_last_line_tells_usage_and_durations() -> None:
    _, response = read(lines_of("good/text"))

    assert response.usage == Usage(input_tokens=11, output_tokens=18, total_tokens=29)
    assert response.metadata == {
        "model": "llama3.2",
        "ollama:done_reason": "stop",
        "ollama:total_duration": 174560334,
        "ollama:load_duration": 101397084,
        "ollama:prompt_eval_duration": 13074791,
        "ollama:eval_duration": 52479709,
    }


def test_missing_count_is_zero_and_missing_usage_unknown() -> None:
    _, response = read(lines_of("good/tools-of-an-older-server"))
    _, silent = read(
        ['{"message": {"content": "x"}, "done": true, "eval_count": true}']
    )

    assert response.usage == Usage(input_tokens=0, output_tokens=5, total_tokens=5)
    assert silent.usage is None


def test_calls_without_ids_get_ids_that_no_other_call_has() -> None:
    _, first = read(lines_of("good/tools-of-an-older-server"))
    _, second = read(lines_of("good/tools-of-an-older-server"))

    ids = [
        call.id for response in (first, second) for call in response.tool_calls or ()
    ]
    assert len(set(ids)) == 4
    assert all(ids)


def test_an_id_that_comes_twice_stays_with_its_first_call() -> None:
    call = {"id": "call_0", "function": {"name": "look_up", "arguments": {}}}
    _, response = read(
        [json.dumps({"message": {"tool_calls": [call, call]}, "done": True})]
    )

    one, two = response.tool_calls or ()
    assert one.id == "call_0"
    assert two.id != "call_0"


def test_unknown_fields_and_lines_are_passed_over() -> None:
    _, response = read(lines_of("good/unknown-fields"))

    assert (response.text, response.finish_reason) == ("Hello", "stop")


def test_nothing_is_read_behind_the_end() -> None:
    lines = [*lines_of("good/text"), '{"error": "late"}']

    _, response = read(lines)

    assert response.text == "Hello, wörld 👋."


def test_half_of_surrogate_pair_becomes_replacement_character() -> None:
    deltas, response = read(
        [
            '{"message": {"content": "a\\ud83db \\ud83d\\ude00"}}',
            *lines_of("good/text")[-1:],
        ]
    )

    assert response.text == "a\N{REPLACEMENT CHARACTER}b 😀"
    assert deltas == [TextDelta(text=response.text)]


@pytest.mark.parametrize(
    ("arguments", "values", "has_problem"),
    [
        ('{"word": "tide"}', {"word": "tide"}, False),
        (None, {}, False),
        ('{"word": ', {}, True),
        ([1], {}, True),
    ],
    ids=["text", "missing", "cut", "list"],
)
def test_arguments_that_are_no_object_are_read_or_told_of(
    arguments: JSONValue, values: JSONObject, has_problem: bool
) -> None:
    call: JSONObject = {
        "id": "c",
        "function": {"name": "look_up", "arguments": arguments},
    }
    _, response = read(
        [
            json.dumps(
                {"message": {"tool_calls": [call]}, "done": True, "done_reason": "stop"}
            )
        ]
    )

    [read_call] = response.tool_calls or ()
    assert (read_call.arguments, read_call.problem is not None) == (values, has_problem)
    assert response.content == (
        () if has_problem else (ToolCallBlock(id="c", name="look_up", input=values),)
    )


def test_the_error_of_a_long_request_has_the_figures() -> None:
    with pytest.raises(
        ContextLengthError, match="has 8889 tokens and the model was loaded with 4096"
    ):
        read(lines_of("bad/error-of-a-long-request"))


def damaged(line: str) -> Iterator[str]:
    """Yield a line with each of its values replaced by what it should not be."""
    others: tuple[JSONValue, ...] = (
        None,
        5,
        "x",
        [],
        {},
        [None],
        {"a": 1},
        [{"function": None}],
        True,
    )
    whole = json.loads(line)
    for key in whole:
        for value in others:
            yield json.dumps({**whole, key: value})
    for key in whole.get("message", {}):
        for value in (*others, [{"function": {"name": 5}}]):
            yield json.dumps({**whole, "message": {**whole["message"], key: value}})


def test_whatever_stands_in_field_is_answer_or_error_of_family() -> None:
    lines = lines_of("good/tools")
    outcomes = set()
    for index, line in enumerate(lines):
        for other in damaged(line):
            try:
                _, response = read([*lines[:index], other, *lines[index + 1 :]])
                outcomes.add(response.finish_reason)
            except LLMError as error:
                outcomes.add(type(error).__name__)

    assert {"tool_calls", "StreamError", "error"} <= outcomes


@given(
    st.text(max_size=30)
    | st.dictionaries(
        st.sampled_from(["message", "done", "error"]), st.text(max_size=3)
    ).map(json.dumps)
)
def test_any_line_is_read_or_refused_with_error_of_family(line: str) -> None:
    try:
        read([line])
    except LLMError as error:
        assert str(error)
    else:
        pytest.fail("a line without `done` ended an answer")
