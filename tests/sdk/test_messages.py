"""Messages read every shape that histories hold, and lose nothing on the way back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from amplifier_sdk.content import TextBlock, ToolCallBlock, VendorBlock
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message
from tests.sdk.values import messages

CALL = ToolCallBlock(id="1", name="search", input={"q": "x"})


@given(messages())
def test_a_message_comes_back_as_it_was(message: Message) -> None:
    data: JSONObject = json.loads(json.dumps(message.to_dict()))

    assert Message.from_dict(data) == message
    assert Message.from_dict(data).to_dict() == data


def test_fields_that_nobody_knows_survive() -> None:
    data: JSONObject = {"role": "user", "content": "x", "cache": {"ttl": 3}, "id": 7}

    message = Message.from_dict(data)

    assert message.extras == {"cache": {"ttl": 3}, "id": 7}
    assert message.to_dict() == data


def test_a_known_field_of_another_type_survives_as_it_is() -> None:
    data: JSONObject = {
        "role": "user",
        "content": "x",
        "name": 3,
        "tool_call_id": [1],
        "metadata": "m",
    }

    message = Message.from_dict(data)

    assert (message.name, message.tool_call_id, message.metadata) == (None, None, None)
    assert message.to_dict() == data


def test_what_message_says_wins_over_extra_of_same_name() -> None:
    assert Message(role="user", content="x", extras={"role": "system"}).to_dict() == {
        "role": "user",
        "content": "x",
    }


@pytest.mark.parametrize(
    ("content", "text", "blocks"),
    [
        ("hi", "hi", (TextBlock(text="hi"),)),
        ("", "", ()),
        (
            [TextBlock(text="a"), CALL, TextBlock(text="b")],
            "ab",
            (TextBlock(text="a"), CALL, TextBlock(text="b")),
        ),
        ([], "", ()),
    ],
    ids=["text", "empty", "blocks", "no blocks"],
)
def test_a_message_has_a_text_and_blocks(
    content: str | list[TextBlock | ToolCallBlock],
    text: str,
    blocks: tuple[object, ...],
) -> None:
    message = Message(role="assistant", content=content)

    assert message.text == text
    assert message.blocks == blocks


def test_a_message_written_with_null_has_no_content() -> None:
    assert Message.from_dict({"role": "assistant", "content": None}).content == ()
    assert Message.from_dict({"role": "assistant"}).content == ()


def test_the_role_function_reads_as_tool() -> None:
    assert Message.from_dict(
        {"role": "function", "content": "x", "name": "t"}
    ) == Message(role="tool", content="x", name="t")


def test_a_list_may_hold_bare_strings() -> None:
    message = Message.from_dict({"role": "user", "content": ["a", {"type": "odd"}]})

    assert message.content == (TextBlock(text="a"), VendorBlock(type="odd"))


@pytest.mark.parametrize(
    "call",
    [
        {"id": "1", "name": "search", "arguments": {"q": "x"}},
        {"id": "1", "tool": "search", "arguments": {"q": "x"}},
        {"id": "1", "name": "search", "input": {"q": "x"}},
        {
            "id": "1",
            "type": "function",
            "function": {"name": "search", "arguments": '{"q": "x"}'},
        },
    ],
    ids=str,
)
def test_calls_beside_the_content_become_blocks(call: JSONObject) -> None:
    message = Message.from_dict(
        {"role": "assistant", "content": "I search.", "tool_calls": [call]}
    )

    assert message.content == (TextBlock(text="I search."), CALL)
    assert Message.from_dict(
        {"role": "assistant", "content": None, "tool_calls": [call]}
    ).content == (CALL,)
    assert Message.from_dict(
        {"role": "assistant", "content": "", "tool_calls": [call]}
    ).content == (CALL,)


def test_calls_that_the_content_has_already_are_not_doubled() -> None:
    block: JSONObject = {
        "type": "tool_call",
        "id": "1",
        "name": "search",
        "input": {"q": "x"},
    }
    calls: list[JSONValue] = [
        {"id": "1", "name": "search", "arguments": {"q": "x"}},
        {"id": "2", "name": "read", "arguments": {}},
        {"name": "nameless", "arguments": {}},
    ]

    message = Message.from_dict(
        {"role": "assistant", "content": [block], "tool_calls": calls}
    )

    assert message.content == (CALL, ToolCallBlock(id="2", name="read"))


@pytest.mark.parametrize("calls", [None, [], "text", 3])
def test_anything_else_under_tool_calls_is_no_call(calls: JSONValue) -> None:
    assert (
        Message.from_dict(
            {"role": "assistant", "content": "x", "tool_calls": calls}
        ).content
        == "x"
    )


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ("", {}),
        (None, {}),
        ({}, {}),
        ("{}", {}),
        ("{broken", {"raw_arguments": "{broken"}),
        ("[1]", {"raw_arguments": "[1]"}),
        ([1], {"raw_arguments": [1]}),
        (3, {"raw_arguments": 3}),
    ],
    ids=str,
)
def test_unreadable_stored_arguments_stay_visible(
    arguments: JSONValue, read: JSONObject
) -> None:
    call: JSONObject = {"id": "1", "name": "t", "arguments": arguments}

    assert Message.from_dict({"role": "assistant", "tool_calls": [call]}).content == (
        ToolCallBlock(id="1", name="t", input=read),
    )


def test_a_call_without_a_name_or_an_id_is_still_a_call() -> None:
    message = Message.from_dict({"role": "assistant", "tool_calls": [{}, {"id": 7}]})

    assert message.content == (
        ToolCallBlock(id="", name=""),
        ToolCallBlock(id="7", name=""),
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"content": "x"},
            "A message's role is one of assistant, developer, system, tool, user; got None",
        ),
        ({"role": "nobody"}, "got 'nobody'"),
        (
            {"role": "user", "content": 3},
            "A message's content is a string, a list of blocks or null; got 3",
        ),
        (
            {"role": "user", "content": {"type": "text"}},
            "a list of blocks or null; got",
        ),
        ({"role": "user", "content": [3]}, "A content block is an object; got 3"),
        ({"role": "assistant", "tool_calls": [3]}, "A tool call is an object; got 3"),
    ],
    ids=str,
)
def test_what_no_message_can_be_is_an_error(data: JSONObject, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Message.from_dict(data)
