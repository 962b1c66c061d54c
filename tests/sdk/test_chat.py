"""Requests, answers and what they use."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given

from amplifier_sdk.chat import (
    ChatRequest,
    ChatResponse,
    ConfigField,
    Degradation,
    ModelInfo,
    Pricing,
    ProviderInfo,
    ToolCall,
    ToolChoice,
    ToolSpec,
    Usage,
)
from amplifier_sdk.content import (
    ReasoningBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import Message
from tests.sdk.values import usages


@given(usages(), usages(), usages())
def test_usage_adds_up_in_any_order(first: Usage, second: Usage, third: Usage) -> None:
    assert (first + second) + third == first + (second + third)
    assert first + second == second + first


@given(usages(), usages())
def test_usage_adds_each_part(left: Usage, right: Usage) -> None:
    total = left + right

    assert total.input_tokens == left.input_tokens + right.input_tokens
    assert total.total_tokens == left.total_tokens + right.total_tokens
    assert (total.cost_usd is None) is (
        left.cost_usd is None and right.cost_usd is None
    )
    assert (total.cost_usd or 0) == (left.cost_usd or 0) + (right.cost_usd or 0)
    assert (total.reasoning_tokens or 0) == (left.reasoning_tokens or 0) + (
        right.reasoning_tokens or 0
    )


@pytest.mark.parametrize(
    ("choice", "forced"),
    [
        (None, None),
        ("auto", None),
        ("required", None),
        ({"type": "tool", "name": "search"}, "search"),
        ({"type": "tool"}, None),
        ({"type": "tool", "name": 3}, None),
    ],
    ids=str,
)
def test_a_request_knows_the_tool_that_it_forces(
    choice: ToolChoice | None, forced: str | None
) -> None:
    assert ChatRequest(messages=[], tool_choice=choice).forced_tool == forced


@pytest.mark.parametrize(
    ("reason", "complete"),
    [
        (None, True),
        ("stop", True),
        ("tool_calls", True),
        ("length", False),
        ("content_filter", False),
        ("error", False),
        ("some_new_reason", False),
    ],
)
def test_only_a_finished_answer_is_complete(reason: str | None, complete: bool) -> None:
    assert ChatResponse(finish_reason=reason).is_complete is complete


def test_the_thinking_of_an_answer_is_what_can_be_read_of_it() -> None:
    response = ChatResponse(
        content=[
            ThinkingBlock(thinking="First. "),
            RedactedThinkingBlock(data="AAAA"),
            TextBlock(text="Said."),
            ReasoningBlock(summary=({"type": "summary_text", "text": "Then."},)),
        ]
    )

    assert response.thinking == "First. Then."


def test_the_text_of_an_answer_is_its_text_blocks() -> None:
    response = ChatResponse(
        content=[TextBlock(text="a"), ThinkingBlock(thinking="t"), TextBlock(text="b")]
    )

    assert response.text == "ab"
    assert isinstance(response.content, tuple)


def test_an_answer_may_be_stripped_of_its_calls() -> None:
    response = ChatResponse(
        content=[TextBlock(text="a"), ToolCallBlock(id="1", name="t")],
        tool_calls=[ToolCall(id="1", name="t")],
        finish_reason="tool_calls",
    )

    stripped = response.without_tool_calls()

    assert stripped.content == (TextBlock(text="a"),)
    assert stripped.tool_calls is None


def test_an_answer_becomes_the_message_that_is_stored() -> None:
    response = ChatResponse(
        content=[
            TextBlock(text="I read."),
            ToolCallBlock(id="1", name="read", input={"p": "a"}),
        ],
        tool_calls=[
            ToolCall(id="1", name="read", arguments={"p": "a"}),
            ToolCall(id="2", name="list"),
            ToolCall(id="3", name="write", raw_arguments='{"p": "b', problem="cut off"),
        ],
        metadata={"vendor": "v"},
    )
    unreadable: JSONValue = {"raw_arguments": '{"p": "b'}

    message = response.to_message()

    assert message == {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I read."},
            {"type": "tool_call", "id": "1", "name": "read", "input": {"p": "a"}},
            {"type": "tool_call", "id": "2", "name": "list", "input": {}},
            {"type": "tool_call", "id": "3", "name": "write", "input": unreadable},
        ],
        "tool_calls": [
            {"id": "1", "tool": "read", "name": "read", "arguments": {"p": "a"}},
            {"id": "2", "tool": "list", "name": "list", "arguments": {}},
            {"id": "3", "tool": "write", "name": "write", "arguments": unreadable},
        ],
        "metadata": {"vendor": "v"},
    }
    assert [block.type for block in Message.from_dict(message).blocks] == [
        "text",
        *["tool_call"] * 3,
    ]


def test_an_answer_without_calls_is_a_plain_message() -> None:
    assert ChatResponse(content=[TextBlock(text="hi")]).to_message() == {
        "role": "assistant",
        "content": [{"type": "text", "text": "hi"}],
    }


def test_a_calls_arguments_have_two_names() -> None:
    call = ToolCall(id="1", name="t", arguments={"a": 1})

    assert call.input is call.arguments


def test_descriptions_freeze_what_they_are_given() -> None:
    field = ConfigField(
        id="model",
        display_name="Model",
        prompt="Which?",
        field_type="choice",
        choices=["a", "b"],
    )
    info = ProviderInfo(
        id="p", display_name="P", credential_env_vars=["KEY"], config_fields=[field]
    )
    model = ModelInfo(
        id="m",
        display_name="M",
        context_window=8,
        max_output_tokens=4,
        pricing=Pricing(input_per_million=Decimal(1), output_per_million=Decimal(2)),
    )

    assert field.choices == ("a", "b")
    assert info.config_fields == (field,)
    assert info.credential_env_vars == ("KEY",)
    assert model.capabilities == ()
    assert ToolSpec(name="t", parameters={}).description is None


def test_several_degradations_are_told_as_one() -> None:
    first = Degradation(requested="images", actual="texts", reason="it cannot see")
    second = Degradation(requested="stop", actual="none", reason="it has none")

    assert Degradation.of_all([]) is None
    assert Degradation.of_all([first]) is first
    both = Degradation(
        requested="images; stop",
        actual="texts; none",
        reason="it cannot see; it has none",
    )
    assert Degradation.of_all([first, second]) == both
