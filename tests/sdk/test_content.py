"""Content blocks survive the way to JSON and back, whatever a vendor put into them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from amplifier_sdk.content import (
    ContentBlock,
    ReasoningBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    VendorBlock,
    block_from_dict,
    block_to_dict,
)
from amplifier_sdk.jsontypes import JSONObject
from tests.sdk.values import blocks


@given(blocks())
def test_a_block_comes_back_as_it_was(block: ContentBlock) -> None:
    data: JSONObject = json.loads(json.dumps(block_to_dict(block)))

    assert block_from_dict(data) == block
    assert block_to_dict(block_from_dict(data)) == data


def test_a_stored_block_of_an_unknown_type_is_kept_whole() -> None:
    data: JSONObject = {
        "type": "server_tool_use",
        "id": "x",
        "input": {"q": [1]},
        "visibility": "internal",
    }

    block = block_from_dict(data)

    assert block == VendorBlock(
        type="server_tool_use",
        visibility="internal",
        extras={"id": "x", "input": {"q": [1]}},
    )
    assert block_to_dict(block) == data


@pytest.mark.parametrize("visibility", ["public", 3, None])
def test_a_vendors_own_visibility_is_kept_as_it_is(
    visibility: str | int | None,
) -> None:
    data: JSONObject = {"type": "odd", "visibility": visibility}

    assert block_to_dict(block_from_dict(data)) == data


def test_fields_that_are_none_are_left_out() -> None:
    assert block_to_dict(ThinkingBlock(thinking="t")) == {
        "type": "thinking",
        "thinking": "t",
    }
    assert block_to_dict(ToolResultBlock(tool_call_id="1")) == {
        "type": "tool_result",
        "tool_call_id": "1",
    }
    assert block_to_dict(VendorBlock(type="odd")) == {"type": "odd"}


def test_what_block_says_wins_over_extra_of_same_name() -> None:
    assert block_to_dict(
        TextBlock(text="x", extras={"type": "image", "text": "y"})
    ) == {"type": "text", "text": "x"}


def test_a_call_without_arguments_has_none() -> None:
    assert block_from_dict(
        {"type": "tool_call", "id": "1", "name": "t"}
    ) == ToolCallBlock(id="1", name="t")


def test_a_reasoning_block_may_lack_its_lists() -> None:
    assert block_from_dict({"type": "reasoning"}) == ReasoningBlock()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "A content block needs a string 'type'; got {}"),
        ({"type": 3}, "A content block needs a string 'type'"),
        (
            {"type": "text"},
            "Content block of type 'text': text: missing; expected a string",
        ),
        ({"type": "text", "text": 3}, r"text: expected a string, got an integer \(3\)"),
        (
            {"type": "text", "text": "", "visibility": "all"},
            "visibility: expected 'internal', 'developer' or 'user'",
        ),
        (
            {"type": "thinking", "thinking": "", "signature": 3},
            "signature: expected a string or null, got an integer",
        ),
        ({"type": "redacted_thinking"}, "data: missing; expected a string"),
        (
            {"type": "reasoning", "content": "x"},
            "content: expected an array, got a string",
        ),
        (
            {"type": "reasoning", "summary": 3},
            "summary: expected an array, got an integer",
        ),
        ({"type": "tool_call", "id": "1"}, "name: missing; expected a string"),
        (
            {"type": "tool_call", "id": "1", "name": "t", "input": []},
            r"input: expected an object, got an array with 0 items",
        ),
        ({"type": "tool_result"}, "tool_call_id: missing; expected a string"),
        ({"type": "image"}, "source: missing; expected an object"),
    ],
    ids=str,
)
def test_block_with_missing_or_wrong_field_is_named(
    data: JSONObject, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        block_from_dict(data)


def test_an_error_shows_a_bounded_part_of_the_value() -> None:
    with pytest.raises(
        ValueError, match="text: expected a string, got an array"
    ) as caught:
        block_from_dict({"type": "text", "text": ["x"] * 10_000})

    assert len(str(caught.value)) < 400


def test_the_text_of_reasoning_is_what_can_be_read_of_it() -> None:
    parts: list[JSONObject] = [
        {"type": "summary_text", "text": "One."},
        {"type": "summary_text", "text": ""},
        {"n": 1},
    ]
    block = ReasoningBlock(
        summary=parts, content=[{"type": "reasoning_text", "text": "Two."}, "three"]
    )

    assert block.text == "One.\n\nTwo."
    assert ReasoningBlock(extras={"encrypted_content": "gAAA"}).text == ""
