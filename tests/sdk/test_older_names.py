"""What the published contracts say of values in more than one way."""

from __future__ import annotations

from typing import ClassVar

import pytest

from amplifier_sdk import ModelInfo, Pricing, ToolCall, ToolResult
from amplifier_sdk.convert import from_json, to_json
from amplifier_sdk.events import ALL_EVENTS, DEPRECATED_EVENTS
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.loops import schema_of, tool_spec
from amplifier_sdk.messages import Message


def test_the_older_role_of_results_is_only_read() -> None:
    stored: JSONObject = {"role": "function", "tool_call_id": "a", "content": "done"}

    message = Message.from_dict(stored)

    assert (message.role, message.tool_call_id, message.text) == ("tool", "a", "done")
    assert message.to_dict()["role"] == "tool"
    assert stored["role"] == "function"


@pytest.mark.parametrize("is_error", [True, False])
def test_is_error_is_accepted_and_readable(is_error: bool) -> None:
    result = ToolResult(output="text", is_error=is_error)

    assert (result.success, result.is_error) == (not is_error, is_error)


def test_other_unknown_fields_are_refused() -> None:
    with pytest.raises(TypeError, match="metadata"):
        ToolResult(output="text", metadata={})  # type: ignore[call-arg]


def test_is_error_cannot_be_set_afterwards() -> None:
    with pytest.raises(AttributeError):
        ToolResult().is_error = True  # type: ignore[misc]


def test_arguments_can_be_read_as_input() -> None:
    call = ToolCall(id="a", name="work", arguments={"x": 1})

    assert call.input is call.arguments
    with pytest.raises(AttributeError):
        call.input = {}  # type: ignore[misc]


class Plain:
    name = "plain"
    description = "Does nothing."

    async def execute(self, input: JSONObject, /) -> ToolResult:
        return ToolResult(output=input)


class WithMethod(Plain):
    def get_schema(self) -> JSONObject:
        return {"type": "object", "title": "method"}


class WithBoth(WithMethod):
    input_schema: ClassVar[JSONObject] = {"type": "object", "title": "attribute"}


@pytest.mark.parametrize(
    ("tool", "title"),
    [(Plain(), None), (WithMethod(), "method"), (WithBoth(), "attribute")],
)
def test_a_schema_is_an_attribute_a_method_or_any_object(
    tool: Plain, title: str | None
) -> None:
    schema = schema_of(tool)

    assert (schema["type"], schema.get("title")) == ("object", title)
    assert tool_spec(tool).parameters == schema


@pytest.mark.parametrize("content", [None, [], ""])
@pytest.mark.parametrize(
    "call",
    [
        {"id": "a", "tool": "work", "arguments": {"x": 1}},
        {"id": "a", "name": "work", "arguments": {"x": 1}},
        {"id": "a", "tool": "work", "name": "work", "arguments": {"x": 1}},
        {
            "id": "a",
            "type": "function",
            "function": {"name": "work", "arguments": '{"x": 1}'},
        },
    ],
)
def test_no_content_and_every_shape_of_calls_are_read(
    content: list[str] | str | None, call: JSONObject
) -> None:
    message = Message.from_dict(
        {"role": "assistant", "content": content, "tool_calls": [call]}
    )

    (block,) = message.blocks
    assert to_json(block) == {
        "type": "tool_call",
        "id": "a",
        "name": "work",
        "input": {"x": 1},
    }


def test_the_older_names_of_raw_requests_are_known() -> None:
    assert DEPRECATED_EVENTS == (
        "llm:request:debug",
        "llm:request:raw",
        "llm:response:debug",
        "llm:response:raw",
    )
    assert not set(DEPRECATED_EVENTS) & set(ALL_EVENTS)


def test_a_models_extra_fields_and_prices_are_stored() -> None:
    data: JSONObject = {
        "id": "m",
        "display_name": "M",
        "context_window": 8,
        "max_output_tokens": 4,
        "cost_per_input_token": 1e-6,
        "metadata": {"family": "x"},
        "pricing": {"input_per_million": 1, "output_per_million": 2},
    }

    model = from_json(data, ModelInfo)
    written = to_json(model)

    assert isinstance(model.pricing, Pricing)
    assert isinstance(written, dict)
    assert (written["cost_per_input_token"], written["metadata"]) == (
        1e-6,
        {"family": "x"},
    )


def test_the_canonical_events_are_forty_three() -> None:
    assert len(ALL_EVENTS) == 43
