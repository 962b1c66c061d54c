"""The models, as modules of the original make, subclass, change and write them."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

import pytest
from amplifier_core import (
    ApprovalRequest,
    ConfigField,
    HookResult,
    ModelInfo,
    ProviderInfo,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResult,
)
from amplifier_core.content_models import ToolResultContent
from amplifier_core.message_models import (
    ChatRequest,
    ChatResponse,
    Message,
    RedactedThinkingBlock,
    ResponseFormatJsonSchema,
    TextBlock,
    Usage,
)
from amplifier_core.models import Pricing, SessionStatus
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

import amplifier_sdk
from amplifier.compat.conversion import (
    RequestWriter,
    native_call,
    native_message,
    native_request,
    native_response,
    original_message,
    original_response,
)
from amplifier.compat.plain import plain, plain_copy
from amplifier_sdk import chat
from amplifier_sdk.content import TextBlock as NativeText
from amplifier_sdk.content import VendorBlock


def test_a_tool_result_is_ours_and_can_be_changed() -> None:
    result = ToolResult(success=True, output={"a": 1}, metadata={"dropped": True})
    result.output = "changed"

    assert issubclass(ToolResult, amplifier_sdk.ToolResult)
    assert result.model_dump() == {
        "success": True,
        "output": "changed",
        "error": None,
    }
    assert result.model_dump(exclude_none=True, mode="json") == {
        "success": True,
        "output": "changed",
    }
    assert ToolResult.model_validate_json(result.model_dump_json()) == result
    assert result.model_copy(update={"output": 2}).output == 2
    with pytest.raises(TypeError):
        hash(result)


@pytest.mark.parametrize(
    ("fields", "text", "shown"),
    [
        ({"output": None}, "Success", "Success"),
        ({"output": "a\x00b"}, "ab", "a\x00b"),
        ({"output": {"a": Decimal("1.5")}}, '{"a": "1.5"}', "{'a': Decimal('1.5')}"),
        ({"success": False, "error": {"message": "no"}}, "no", "Error: no"),
        ({"output": "a\ud800b"}, "ab", "a\ud800b"),
        ({"success": False}, "Error: Failed", "Failed"),
        ({"is_error": True}, "Error: Failed", "Failed"),
    ],
)
def test_a_tool_result_as_text(
    fields: dict[str, object], text: str, shown: str
) -> None:
    assert ToolResult(**fields).get_serialized_output() == text
    assert str(ToolResult(**fields)) == shown


def test_results_write_what_was_set_and_show_their_own_fields() -> None:
    result = HookResult(action="deny")
    result.reason = "no"

    assert result.model_dump(exclude_unset=True) == {"action": "deny", "reason": "no"}
    assert repr(ToolResult(output=1)) == (
        "ToolResult(success=True, output=1, error=None, content=None)"
    )
    assert repr(result).startswith("HookResult(action='deny', data=None, reason='no'")


def test_events_get_a_result_without_the_bytes_of_its_images() -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "AAAA"}}
    blocks = [image, TextBlock(text="seen")]
    written = ToolResult(output="x", content=blocks).safe_hook_presentation()

    assert [block["type"] for block in written["content"]] == ["text", "text"]
    assert "AAAA" not in str(written)
    assert written["content"][1]["text"] == "seen"
    assert ToolResult(output="x").safe_hook_presentation() == {
        "success": True,
        "output": "x",
        "error": None,
    }


def test_a_shown_result_with_blocks_is_the_sessions_while_nobody_changes_it() -> None:
    native = amplifier_sdk.ToolResult(output="x", content=[NativeText(text="b")])
    shown = ToolResult.of(native)
    assert shown.native is native
    assert shown.model_dump(mode="json")["content"][0]["text"] == "b"
    shown.content = []

    assert shown.native is None


def test_a_hook_result_has_the_originals_fields_alone() -> None:
    result = HookResult(
        action="ask_user",
        approval_options=["Yes", "No"],
        metadata={"x": 1},
        approves=True,
        context_injections=[{"content": "a", "ephemeral": True}],
    )

    assert issubclass(HookResult, amplifier_sdk.HookResult)
    assert result.approval_options == ["Yes", "No"]
    assert result.approves is False
    assert result.context_injections[0].role == "system"
    assert "metadata" not in result.model_dump()
    assert HookResult.model_validate({"action": "deny"}).action == "deny"
    assert HookResult.model_validate(result) is result
    assert HookResult().model_dump(exclude_defaults=True) == {}
    assert HookResult().model_dump(include={"action"}) == {"action": "continue"}
    assert "action" not in HookResult().model_dump(exclude={"action"})
    with pytest.raises(ValueError, match="action"):
        HookResult(action="dance")
    with pytest.raises(ValueError, match="valid dictionary"):
        HookResult.model_validate(7)


def test_results_stand_in_models_as_fields() -> None:
    class Report(BaseModel):  # type: ignore[explicit-any]  # pydantic's metaclass
        result: ToolResult
        hook: HookResult | None = None

    report = Report(result={"success": True, "output": 1})

    assert report.result.output == 1
    assert report.model_dump()["result"]["output"] == 1
    assert "success" in Report.model_validate(report.model_dump()).result.model_fields
    assert dict(report.result)["success"] is True
    assert ToolResult.model_json_schema()["title"] == "ToolResult"
    copied = report.result.model_copy(deep=True)
    assert copied == report.result
    assert copied != HookResult()
    with pytest.raises(ValidationError):
        ToolResult(error="no object")


def test_models_are_subclassed_with_fields() -> None:
    class Response(ChatResponse):  # type: ignore[misc]
        text: str | None = None
        content_blocks: list[object] | None = None

    class Redacted(RedactedThinkingBlock):  # type: ignore[misc]
        vendor: Literal["v"] = "v"

    made = Response(content=[Redacted(data="x")], text="hi", extra=1)

    assert made.model_dump()["extra"] == 1
    assert isinstance(made, ChatResponse)
    assert native_response(made, None).content[0].type == "redacted_thinking"


def test_messages_keep_what_they_do_not_know() -> None:
    message = Message(
        role="assistant", content="a", tool_calls=[{"id": "1"}], timestamp=1
    )

    assert message.model_dump()["tool_calls"] == [{"id": "1"}]
    for wrong in (
        {"role": "assistant", "content": None},
        {"role": "dancer", "content": ""},
    ):
        with pytest.raises(ValidationError):
            Message(**wrong)
    with pytest.raises(ValidationError):
        Message(role="user", content=[{"type": "unheard-of"}])


def test_costs_are_decimals_and_never_floats() -> None:
    usage = Usage(
        input_tokens=1, output_tokens=2, total_tokens=3, cost_usd=Decimal("0.1")
    )

    assert usage.model_dump()["cost_usd"] == "0.1"
    assert usage.model_copy(update={"output_tokens": 5}).output_tokens == 5
    with pytest.raises(ValidationError):
        Usage(input_tokens=1, output_tokens=2, total_tokens=3, cost_usd=0.1)


def test_smaller_models() -> None:
    field = ConfigField(id="k", display_name="K", prompt="?", field_type="secret")
    info = ProviderInfo(id="p", display_name="P", config_fields=[field])
    model = ModelInfo(
        id="m",
        display_name="M",
        context_window=10,
        max_output_tokens=5,
        pricing=Pricing(input_per_million="1", output_per_million="2"),
        unknown=1,
    )

    assert info.config_fields[0].required
    assert "unknown" not in model.model_dump()
    assert SessionStatus(session_id="s").to_dict()["status"] == "running"
    with pytest.raises(ValidationError):
        ApprovalRequest(tool_name="t", action="a", risk_level="low", timeout=0)
    with pytest.raises(ValidationError):
        Pricing(input_per_million="1", output_per_million="2", currency="usd")
    schema = ResponseFormatJsonSchema(json_schema={"type": "object"})
    assert schema.model_dump(by_alias=True)["schema"] == {"type": "object"}


def test_content_of_events_leaves_out_the_raw_object() -> None:
    assert TextContent(text="a", raw=object()).to_dict() == {
        "type": "text",
        "text": "a",
    }
    assert ThinkingContent(text="t").to_dict()["type"] == "thinking"
    call = ToolCallContent(id="1", name="n", arguments={"a": 1})
    assert call.to_dict()["arguments"] == {"a": 1}
    assert ToolResultContent(tool_call_id="1").to_dict()["output"] is None
    assert plain(call) == call.to_dict()


# -- conversion

TEXT = st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
    ),
    max_leaves=6,
)
BLOCKS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, TEXT),
    st.builds(
        lambda text, sign: {"type": "thinking", "thinking": text, "signature": sign},
        TEXT,
        TEXT,
    ),
    st.builds(
        lambda name, given: {
            "type": "tool_call",
            "id": "c",
            "name": name,
            "input": given,
        },
        TEXT,
        st.dictionaries(TEXT, JSON, max_size=3),
    ),
    st.builds(
        lambda out: {"type": "tool_result", "tool_call_id": "c", "output": out},
        JSON.filter(lambda value: value is not None),
    ),
)
MESSAGES = st.builds(
    lambda role, content, extra: {"role": role, "content": content, "seen_at": extra},
    st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
    TEXT | st.lists(BLOCKS, max_size=3),
    st.integers(),
)


@given(MESSAGES)
def test_a_message_crosses_the_boundary_and_comes_back(
    message: dict[str, object],
) -> None:
    native = amplifier_sdk.Message.from_dict(message)  # type: ignore[arg-type]
    shown = original_message(native)

    assert native_message(shown) == native
    assert Message.model_validate(shown.model_dump()).role == native.role


@given(
    st.lists(MESSAGES, max_size=6), st.lists(MESSAGES, max_size=3), st.integers(0, 6)
)
def test_a_writer_writes_what_is_asked_whatever_it_wrote_before(
    history: list[dict[str, object]], more: list[dict[str, object]], keep: int
) -> None:
    writer = RequestWriter()
    first = [amplifier_sdk.Message.from_dict(each) for each in history]  # type: ignore[arg-type]
    second = [*first[:keep], *map(amplifier_sdk.Message.from_dict, more)]  # type: ignore[arg-type]
    for messages in (first, second, first):
        request = chat.ChatRequest(messages=messages)
        written = writer.write(request)
        assert list(native_request(written).messages) == messages
        written.messages.clear()  # a provider's own list


def test_a_request_comes_back_with_all_it_asks() -> None:
    request = chat.ChatRequest(
        messages=[amplifier_sdk.Message(role="user", content="hi")],
        tools=[chat.ToolSpec(name="t", parameters={"type": "object"}, description="d")],
        response_format={"type": "json_schema", "schema": {"type": "object"}},
        temperature=0.5,
        tool_choice={"type": "tool", "name": "t"},
        stop=["x"],
        metadata={"a": 1},
        model="m",
        reasoning_effort="low",
        timeout=5.0,
        conversation_id="c",
        extras={"vendor": True},
    )
    back = native_request(RequestWriter().write(request))

    assert (back.tools, back.response_format) == (
        request.tools,
        request.response_format,
    )
    assert (back.tool_choice, back.extras) == (request.tool_choice, request.extras)
    assert (back.stop, back.metadata, back.model) == (["x"], {"a": 1}, "m")
    assert native_request(request) is request
    for form in ({"type": "json"}, {"type": "text"}):
        asked = chat.ChatRequest(messages=[], response_format=form)
        assert native_request(RequestWriter().write(asked)).response_format == form


def test_messages_of_an_original_loop_are_converted_when_they_are_read() -> None:
    asked = [
        Message(role="user", content="a"),
        Message(role="function", content="b", tool_call_id="c"),
        Message(role="assistant", content=[{"type": "text", "text": "c"}], mine=1),
    ]
    request = native_request(ChatRequest(messages=asked))
    read = list(request.messages)

    assert [message.role for message in read] == ["user", "tool", "assistant"]
    assert [message.text for message in request.messages[1:]] == ["b", "c"]
    assert request.messages[-1] is read[-1]
    assert read[2].extras == {"mine": 1}
    assert RequestWriter().write(request).messages == asked
    assert RequestWriter().write(request).messages[0] is asked[0]


def test_a_block_of_a_vendors_own_reads_as_text() -> None:
    block = VendorBlock(type="quantum", extras={"q": 1})
    message = amplifier_sdk.Message(role="assistant", content=[block])
    shown = original_message(message).content[0]

    assert isinstance(shown, TextBlock)
    assert "quantum" in shown.text


def test_an_answer_of_ours_is_shown_with_its_parts() -> None:
    native = chat.ChatResponse(
        content=[amplifier_sdk.TextBlock(text="a")],
        tool_calls=[chat.ToolCall(id="1", name="t", arguments={"x": 1})],
        usage=chat.Usage(input_tokens=1, output_tokens=2, total_tokens=3),
        degradation=chat.Degradation(requested="a", actual="b", reason="c"),
        finish_reason="stop",
        metadata={"m": 1},
    )
    shown = original_response(native)

    assert shown.tool_calls
    assert shown.usage
    assert shown.degradation
    assert shown.tool_calls[0].arguments == {"x": 1}
    assert shown.usage.total_tokens == 3
    assert shown.degradation.actual == "b"
    assert native_response(shown, shown.tool_calls).usage == native.usage


def test_a_call_without_an_object_does_not_run() -> None:
    read = native_call({"id": "1", "tool": "t", "arguments": "{"})

    assert read.name == "t"
    assert read.problem is not None
    assert native_call(read) is read


def test_requests_are_the_originals_own_models() -> None:
    request = ChatRequest(messages=[Message(role="user", content="x")], custom=1)

    assert native_request(request).extras == {"custom": 1}


class _Opaque:
    def __str__(self) -> str:
        return "opaque"


def test_what_has_no_json_form_is_its_text() -> None:
    loop: list[object] = []
    loop.append(loop)

    assert plain_copy({1: _Opaque(), "s": {"b", "a"}, "t": (1, 2.5)}) == {
        "1": "opaque",
        "s": ["a", "b"],
        "t": [1, 2.5],
    }
    assert "nests deeper" in str(plain_copy(loop))
    assert plain_copy(HookResult(action="deny"))["action"] == "deny"  # type: ignore[index]
