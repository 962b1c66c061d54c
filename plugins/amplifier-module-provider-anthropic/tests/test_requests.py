"""What a request becomes in the API's words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from amplifier_module_provider_anthropic import AnthropicConfig, Model
from amplifier_module_provider_anthropic.requests import write_request
from amplifier_sdk.chat import ChatRequest, Degradation, ToolSpec
from amplifier_sdk.content import (
    ContentBlock,
    ImageBlock,
    ReasoningBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    VendorBlock,
)
from amplifier_sdk.errors import InvalidRequestError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message

NEW: Final = "claude-sonnet-5-5"
ALWAYS: Final = "claude-opus-5-5"
WITHOUT_LATE_SYSTEM: Final = "claude-sonnet-5"
ADAPTIVE: Final = "claude-opus-4-8"
OLD: Final = "claude-haiku-4-5"
FOREIGN: Final = "smollm2"
OWN: Final = {"anthropic:message_id": "msg_1"}
ASKED: Final = Message(role="user", content="Hello.")
TOOLS: Final = (
    ToolSpec(
        name="add",
        description="Add numbers.",
        parameters={"type": "object", "properties": {}},
    ),
    ToolSpec(name="look", parameters={}),
)


def _config(**options: JSONValue) -> AnthropicConfig:
    return AnthropicConfig(**{"enable_prompt_caching": False, **options})  # type: ignore[arg-type]  # as JSON has them


def _body(
    request: ChatRequest, model: str = NEW, config: AnthropicConfig | None = None
) -> JSONObject:
    return write_request(request, model, config or _config()).body


def _lost(
    request: ChatRequest, model: str = NEW, config: AnthropicConfig | None = None
) -> Degradation | None:
    return write_request(request, model, config or _config()).degradation


def _messages(*messages: Message) -> JSONValue:
    return _body(ChatRequest(messages=messages))["messages"]


def _said(
    *blocks: ContentBlock, metadata: Mapping[str, JSONValue] | None = None
) -> JSONValue:
    """Return what is written of an assistant's message between two of a user."""
    messages = _messages(
        ASKED, Message(role="assistant", content=blocks, metadata=metadata), ASKED
    )
    assert isinstance(messages, list)
    return [
        message["content"] for message in messages if message["role"] == "assistant"
    ]


# Messages


def test_a_system_text_stands_beside_the_messages() -> None:
    body = _body(
        ChatRequest(messages=[Message(role="system", content="You are brief."), ASKED])
    )

    assert body["system"] == "You are brief."
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Hello."}]}
    ]


def test_for_models_that_take_no_others_all_system_texts_joined() -> None:
    more = Message(role="system", content="Use metres.")
    request = ChatRequest(
        messages=[Message(role="system", content="You are brief."), ASKED, more]
    )

    assert (
        _body(request, WITHOUT_LATE_SYSTEM)["system"] == "You are brief.\n\nUse metres."
    )


def test_later_system_text_leaves_earlier_unchanged() -> None:
    brief, metres, polite = (
        Message(role="system", content=text)
        for text in ("Be brief.", "Use metres.", "Be polite.")
    )
    call = Message(role="assistant", content=[ToolCallBlock(id="a", name="look")])
    result = Message(role="tool", tool_call_id="a", content="3 feet")

    body = _body(
        ChatRequest(
            messages=[brief, ASKED, metres, call, polite, result, metres, polite]
        )
    )

    assert body["system"] == "Be brief."
    messages = body["messages"]
    assert isinstance(messages, list)
    assert [message["role"] for message in messages] == [
        "user",
        "system",
        "assistant",
        "user",
        "system",
    ]
    assert messages[1]["content"] == [{"type": "text", "text": "Use metres."}]
    assert [block["text"] for block in messages[4]["content"]] == [
        "Be polite.",
        "Use metres.",
        "Be polite.",
    ]


def test_later_system_text_behind_answer_stands_beside_messages() -> None:
    answer = Message(role="assistant", content="Yes.")
    body = _body(
        ChatRequest(messages=[ASKED, answer, Message(role="system", content="Go on.")])
    )

    assert body["system"] == "Go on."


def test_a_developer_s_message_is_a_user_s_before_the_user_s() -> None:
    file = Message(
        role="developer", content='<context_file paths="FILE.md">text</context_file>'
    )

    assert _messages(file, Message(role="user", content="Explain @FILE.md")) == [
        {
            "role": "user",
            "content": [
                {
                    "type": "text",
                    "text": '<context_file paths="FILE.md">text</context_file>',
                }
            ],
        },
        {"role": "user", "content": [{"type": "text", "text": "Explain @FILE.md"}]},
    ]


def test_results_of_one_message_s_calls_are_one_message_of_user() -> None:
    calls = (
        ToolCallBlock(id="a", name="add", input={"x": 1}),
        ToolCallBlock(id="b", name="look"),
    )
    messages = _messages(
        ASKED,
        Message(role="assistant", content=calls),
        Message(role="tool", tool_call_id="a", content="2"),
        Message(role="tool", tool_call_id="b", content=""),
        Message(role="user", content="Go on."),
    )

    assert isinstance(messages, list)
    assert messages[1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "a", "name": "add", "input": {"x": 1}},
                {"type": "tool_use", "id": "b", "name": "look", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "2"},
                {"type": "tool_result", "tool_use_id": "b"},
            ],
        },
        {"role": "user", "content": [{"type": "text", "text": "Go on."}]},
    ]


def test_results_come_as_blocks_too() -> None:
    image = ImageBlock(
        source={"type": "base64", "media_type": "image/png", "data": "AAAA"}
    )
    messages = _messages(
        ASKED,
        Message(
            role="assistant",
            content=[ToolCallBlock(id=id, name="look") for id in "abc"],
        ),
        Message(
            role="tool",
            content=[
                ToolResultBlock(tool_call_id="a", output={"n": 1}),
                ToolResultBlock(
                    tool_call_id="b", output="no", extras={"is_error": True}
                ),
            ],
        ),
        Message(
            role="tool", tool_call_id="c", content=[TextBlock(text="a picture"), image]
        ),
    )

    assert isinstance(messages, list)
    assert messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": '{"n": 1}'},
        {"type": "tool_result", "tool_use_id": "b", "content": "no", "is_error": True},
        {
            "type": "tool_result",
            "tool_use_id": "c",
            "content": [
                {"type": "text", "text": "a picture"},
                {
                    "type": "image",
                    "source": {
                        "type": "base64",
                        "media_type": "image/png",
                        "data": "AAAA",
                    },
                },
            ],
        },
    ]


def test_what_stands_beside_results_is_part_of_the_last_one() -> None:
    image = ImageBlock(
        source={"type": "base64", "media_type": "image/png", "data": "AAAA"}
    )
    results = [
        ToolResultBlock(tool_call_id="a", output="one"),
        ToolResultBlock(tool_call_id="b", output="two"),
    ]
    messages = _messages(
        ASKED,
        Message(
            role="assistant", content=[ToolCallBlock(id=id, name="look") for id in "ab"]
        ),
        Message(role="tool", content=[*results, TextBlock(text="a picture"), image]),
    )

    assert isinstance(messages, list)
    assert messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "one"},
        {
            "type": "tool_result",
            "tool_use_id": "b",
            "content": [
                {"type": "text", "text": "two"},
                {"type": "text", "text": "a picture"},
                {
                    "type": "image",
                    "source": {
                        "type": "base64",
                        "media_type": "image/png",
                        "data": "AAAA",
                    },
                },
            ],
        },
    ]


@pytest.mark.parametrize(
    "content",
    ["Error: cancelled", [ToolResultBlock(tool_call_id="a", output="cancelled")]],
)
@pytest.mark.parametrize(
    "metadata",
    [{"is_error": True}, {"synthesized": True}],
    ids=["error", "synthesized"],
)
def test_a_result_that_is_none_says_so(
    metadata: Mapping[str, JSONValue], content: str | Sequence[ContentBlock]
) -> None:
    messages = _messages(
        ASKED,
        Message(role="assistant", content=[ToolCallBlock(id="a", name="look")]),
        Message(role="tool", tool_call_id="a", content=content, metadata=metadata),
    )

    assert isinstance(messages, list)
    assert messages[2]["content"][0]["is_error"] is True


def test_thinking_goes_back_with_its_signature() -> None:
    assert _said(
        ThinkingBlock(thinking="Hm.", signature="sig", visibility="internal"),
        ThinkingBlock(thinking="", signature="sig2"),
        RedactedThinkingBlock(data="x", extras={"later": 1}),
        ToolCallBlock(id="a", name="add", extras={"caller": {"type": "direct"}}),
        metadata=OWN,
    ) == [
        [
            {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
            {"type": "thinking", "thinking": "", "signature": "sig2"},
            {"type": "redacted_thinking", "data": "x", "later": 1},
            {
                "type": "tool_use",
                "id": "a",
                "name": "add",
                "input": {},
                "caller": {"type": "direct"},
            },
        ]
    ]


def test_thoughts_that_led_to_nothing_do_not_go_back() -> None:
    thought = ThinkingBlock(thinking="Hm.", signature="sig")

    assert _said(
        TextBlock(text="Yes."), thought, RedactedThinkingBlock(data="x"), metadata=OWN
    ) == [[{"type": "text", "text": "Yes."}]]
    assert _said(thought, metadata=OWN) == []


def test_what_other_vendors_said_reduced_to_what_api_can_read() -> None:
    assert _said(
        ReasoningBlock(summary=["secret"]),
        ThinkingBlock(thinking="without a signature"),
        TextBlock(
            text="Yes.",
            extras={
                "logprobs": [],
                "citations": [],
                "cache_control": {"type": "ephemeral"},
            },
        ),
        TextBlock(text=" \n"),
        VendorBlock(type="web_search_call", extras={"id": "ws_1"}),
        ToolCallBlock(id="call:1", name="files.read", extras={"status": "completed"}),
    ) == [
        [
            {"type": "text", "text": "Yes.", "citations": []},
            {
                "type": "tool_use",
                "id": "call_1-0af63155",
                "name": "files_read-601e4eb6",
                "input": {},
            },
        ]
    ]


def test_blocks_of_the_api_s_own_tools_go_back_unchanged() -> None:
    use = VendorBlock(
        type="server_tool_use",
        extras={"id": "s", "name": "web_search", "input": {"query": "x"}},
    )
    result = VendorBlock(
        type="web_search_tool_result", extras={"tool_use_id": "s", "content": []}
    )
    unknown = VendorBlock(type="hologram", extras={"colour": "blue"})

    assert _said(use, result, unknown) == [
        [
            {
                "type": "server_tool_use",
                "id": "s",
                "name": "web_search",
                "input": {"query": "x"},
            },
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        ]
    ]
    assert _said(unknown, metadata=OWN) == [[{"type": "hologram", "colour": "blue"}]]


@pytest.mark.parametrize(
    ("source", "written"),
    [
        pytest.param(
            {"type": "base64", "media_type": "image/jpeg", "data": "/9j/"},
            {"type": "base64", "media_type": "image/jpeg", "data": "/9j/"},
            id="data",
        ),
        pytest.param(
            {"data": "AAAA"},
            {"type": "base64", "media_type": "image/png", "data": "AAAA"},
            id="bare-data",
        ),
        pytest.param(
            {"type": "url", "url": "https://x/y.png"},
            {"type": "url", "url": "https://x/y.png"},
            id="url",
        ),
        pytest.param(
            {"url": "data:image/gif;base64,R0lG"},
            {"type": "base64", "media_type": "image/gif", "data": "R0lG"},
            id="data-url",
        ),
        pytest.param(
            {"file_id": "file_1"}, {"type": "file", "file_id": "file_1"}, id="file"
        ),
        pytest.param({"type": "moon"}, {"type": "moon"}, id="unknown"),
    ],
)
def test_images_come_in_the_forms_that_the_api_takes(
    source: JSONObject, written: JSONObject
) -> None:
    messages = _messages(
        Message(
            role="user",
            content=[ImageBlock(source=source), TextBlock(text="What is it?")],
        )
    )

    assert isinstance(messages, list)
    assert messages[0]["content"] == [
        {"type": "image", "source": written},
        {"type": "text", "text": "What is it?"},
    ]


def test_documents_of_a_person_go_along() -> None:
    document = VendorBlock(
        type="document", extras={"source": {"type": "file", "file_id": "f"}}
    )
    messages = _messages(
        Message(role="user", content=[document, VendorBlock(type="hologram")])
    )

    assert messages == [
        {
            "role": "user",
            "content": [
                {"type": "document", "source": {"type": "file", "file_id": "f"}}
            ],
        }
    ]


def test_messages_that_say_nothing_are_left_out() -> None:
    empty = (Message(role="assistant", content=[]), Message(role="user", content="  "))

    assert _messages(*empty, ASKED, *empty) == [
        {"role": "user", "content": [{"type": "text", "text": "Hello."}]}
    ]


def test_a_history_that_begins_with_an_answer_gets_a_beginning() -> None:
    messages = _messages(Message(role="assistant", content="Yes."), ASKED)

    assert isinstance(messages, list)
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]


def test_request_without_message_is_refused_before_it_is_sent() -> None:
    with pytest.raises(InvalidRequestError, match="no message with content"):
        _body(ChatRequest(messages=[Message(role="system", content="You are brief.")]))


# Options


def test_a_plain_request_has_what_the_api_needs_and_no_more() -> None:
    outgoing = write_request(ChatRequest(messages=[ASKED]), NEW, _config())

    assert outgoing.body == {
        "model": NEW,
        "max_tokens": 64_000,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello."}]}],
        "stream": True,
    }
    assert outgoing.path == "v1/messages"
    assert outgoing.headers == {}
    assert outgoing.degradation is None


@pytest.mark.parametrize(
    ("model", "asked", "sent"),
    [
        pytest.param(NEW, None, 64_000, id="default"),
        pytest.param(FOREIGN, None, 8_192, id="default-of-a-foreign-model"),
        pytest.param(NEW, 100, 100, id="asked"),
        pytest.param(NEW, 500_000, 128_000, id="more-than-the-model-has"),
    ],
)
def test_an_answer_has_a_limit_always(model: str, asked: int | None, sent: int) -> None:
    assert (
        _body(ChatRequest(messages=[ASKED], max_output_tokens=asked), model)[
            "max_tokens"
        ]
        == sent
    )


def test_answer_s_limit_is_config_s_when_request_has_none() -> None:
    assert (
        _body(ChatRequest(messages=[ASKED]), config=_config(max_tokens=77))[
            "max_tokens"
        ]
        == 77
    )


def test_a_limit_beyond_the_model_s_is_said() -> None:
    lost = _lost(ChatRequest(messages=[ASKED], max_output_tokens=500_000))

    assert lost == Degradation(
        requested="500000 output tokens",
        actual="128000 output tokens",
        reason="the model's answers are no longer",
    )


def test_sampling_is_for_the_models_that_have_it() -> None:
    request = ChatRequest(messages=[ASKED], temperature=0.2)
    old, new = (
        write_request(request, OLD, _config()),
        write_request(request, NEW, _config()),
    )

    assert old.body["temperature"] == 0.2
    assert old.headers == {"anthropic-version": "2023-06-01"}
    assert old.degradation is None
    assert "temperature" not in new.body
    assert new.headers == {}
    assert new.degradation is not None
    assert new.degradation.requested == "temperature 0.2"


def test_config_s_temperature_is_of_requests_that_name_none() -> None:
    config = _config(temperature=0.5)

    assert _body(ChatRequest(messages=[ASKED]), OLD, config)["temperature"] == 0.5
    assert (
        _body(ChatRequest(messages=[ASKED], temperature=0.1), OLD, config)[
            "temperature"
        ]
        == 0.1
    )


def test_top_p_is_sent_where_no_temperature_is() -> None:
    alone = _body(ChatRequest(messages=[ASKED], top_p=0.9), OLD)
    both = write_request(
        ChatRequest(messages=[ASKED], top_p=0.9, temperature=0.3), OLD, _config()
    )

    assert alone["top_p"] == 0.9
    assert "top_p" not in both.body
    assert both.degradation is not None
    assert both.degradation.requested == "top_p 0.9"


def test_a_temperature_above_the_highest_is_the_highest() -> None:
    outgoing = write_request(
        ChatRequest(messages=[ASKED], temperature=1.5), OLD, _config()
    )

    assert outgoing.body["temperature"] == 1
    assert outgoing.degradation is not None


def test_a_model_that_thinks_has_no_temperature_of_its_own() -> None:
    request = ChatRequest(
        messages=[ASKED], temperature=0.2, top_p=0.5, reasoning_effort="low"
    )
    outgoing = write_request(request, OLD, _config())

    assert outgoing.body.keys().isdisjoint({"temperature", "top_p"})
    assert outgoing.degradation is not None
    assert outgoing.degradation.requested == "temperature 0.2; top_p 0.5"
    assert (
        _body(
            ChatRequest(messages=[ASKED], temperature=1, reasoning_effort="low"), OLD
        )["temperature"]
        == 1
    )


def test_top_p_is_lost_where_there_is_no_sampling() -> None:
    lost = _lost(ChatRequest(messages=[ASKED], top_p=0.5))

    assert lost is not None
    assert lost.reason == "this model has no sampling parameters"


def test_stops_are_sent_unless_they_are_white_space() -> None:
    outgoing = write_request(
        ChatRequest(messages=[ASKED], stop=["END", "\n"]), NEW, _config()
    )

    assert outgoing.body["stop_sequences"] == ["END"]
    assert outgoing.degradation is not None
    assert outgoing.degradation.requested == "a stop of white space"


def test_a_user_id_goes_along() -> None:
    request = ChatRequest(messages=[ASKED], metadata={"user_id": "u-1", "trace": 7})

    assert _body(request)["metadata"] == {"user_id": "u-1"}


def test_beta_headers_are_sent_in_one() -> None:
    config = AnthropicConfig(
        beta_headers=("a-1", "b-2"),
        enable_1m_context=True,
        models={"long": Model(has_long_context=True)},
    )

    assert write_request(ChatRequest(messages=[ASKED]), NEW, config).headers == {
        "anthropic-beta": "a-1,b-2"
    }
    assert write_request(ChatRequest(messages=[ASKED]), "long", config).headers == {
        "anthropic-beta": "a-1,b-2,context-1m-2025-08-07"
    }


def test_extra_sampling_parameters_reach_supporting_version() -> None:
    config = _config(extra_request_params={"top_k": 5})

    assert write_request(ChatRequest(messages=[ASKED]), OLD, config).headers == {
        "anthropic-version": "2023-06-01"
    }


def test_models_of_the_configuration_go_before_the_table() -> None:
    config = AnthropicConfig(
        models={"mine": Model(context_window=9_000, max_output_tokens=99)}
    )

    assert _body(ChatRequest(messages=[ASKED]), "mine", config)["max_tokens"] == 99


@pytest.mark.parametrize(
    "model", ["claude-haiku-4-5-20251001", "claude-haiku-4-5-latest"]
)
def test_a_date_does_not_make_another_model(model: str) -> None:
    assert (
        _body(ChatRequest(messages=[ASKED], temperature=0.2), model)["temperature"]
        == 0.2
    )


# Tools


def test_tools_are_written_in_their_order() -> None:
    assert _body(ChatRequest(messages=[ASKED], tools=TOOLS))["tools"] == [
        {
            "name": "add",
            "description": "Add numbers.",
            "input_schema": {"type": "object", "properties": {}},
        },
        {"name": "look", "input_schema": {"type": "object"}},
    ]


def test_a_tool_s_extras_go_along_but_no_marks_for_the_cache() -> None:
    tool = ToolSpec(
        name="add",
        parameters={"type": "object"},
        extras={"strict": True, "cache_control": {"type": "ephemeral"}},
    )

    assert _body(ChatRequest(messages=[ASKED], tools=[tool]))["tools"] == [
        {"strict": True, "name": "add", "input_schema": {"type": "object"}}
    ]


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        pytest.param(None, None, id="nothing"),
        pytest.param("auto", {"type": "auto"}, id="auto"),
        pytest.param("none", {"type": "none"}, id="none"),
        pytest.param("required", {"type": "any"}, id="required"),
        pytest.param("any", {"type": "any"}, id="any"),
        pytest.param("whatever", {"type": "auto"}, id="unknown"),
        pytest.param(
            {"type": "tool", "name": "add"}, {"type": "tool", "name": "add"}, id="tool"
        ),
        pytest.param(
            {"type": "function", "function": {"name": "add"}},
            {"type": "tool", "name": "add"},
            id="function",
        ),
        pytest.param(
            {"type": "any", "disable_parallel_tool_use": True},
            {"type": "any", "disable_parallel_tool_use": True},
            id="as-the-api-has-it",
        ),
        pytest.param({"type": "tool"}, {"type": "auto"}, id="without-a-name"),
    ],
)
def test_a_choice_of_tools_is_sent(
    asked: str | JSONObject | None, sent: JSONObject | None
) -> None:
    body = _body(
        ChatRequest(messages=[ASKED], tools=TOOLS, tool_choice=asked), ADAPTIVE
    )

    assert body.get("tool_choice") == sent


def test_without_tools_there_is_no_choice() -> None:
    config = _config(disable_parallel_tool_use=True)

    assert "tool_choice" not in _body(
        ChatRequest(messages=[ASKED], tool_choice="required"), config=config
    )


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        pytest.param(
            None, {"type": "auto", "disable_parallel_tool_use": True}, id="nothing"
        ),
        pytest.param(
            "required",
            {"type": "any", "disable_parallel_tool_use": True},
            id="required",
        ),
        pytest.param("none", {"type": "none"}, id="none"),
    ],
)
def test_calls_one_at_a_time_can_be_asked_for(
    asked: str | None, sent: JSONObject
) -> None:
    request = ChatRequest(messages=[ASKED], tools=TOOLS, tool_choice=asked)

    assert (
        _body(request, ADAPTIVE, _config(disable_parallel_tool_use=True))["tool_choice"]
        == sent
    )


def test_model_that_cannot_be_forced_chooses_and_answer_says_so() -> None:
    request = ChatRequest(
        messages=[ASKED], tools=TOOLS, tool_choice={"type": "tool", "name": "add"}
    )
    outgoing = write_request(request, ALWAYS, _config())

    assert outgoing.body["tool_choice"] == {"type": "auto"}
    assert outgoing.degradation is not None
    assert outgoing.degradation.requested == "a forced tool call"


SEARCH: Final[JSONObject] = {
    "type": "web_search_20260318",
    "name": "web_search",
    "max_uses": 3,
}


def test_the_api_s_own_tools_are_offered_before_the_session_s() -> None:
    body = _body(
        ChatRequest(messages=[ASKED], tools=TOOLS[1:]),
        config=_config(server_tools=(SEARCH,)),
    )

    assert body["tools"] == [
        SEARCH,
        {"name": "look", "input_schema": {"type": "object"}},
    ]
    assert "tool_choice" not in body


def test_the_api_s_own_tools_are_offered_alone() -> None:
    body = _body(ChatRequest(messages=[ASKED]), config=_config(server_tools=(SEARCH,)))

    assert body["tools"] == [SEARCH]
    assert "tool_choice" not in body


def test_tools_that_are_offered_no_more_are_still_named() -> None:
    history = [
        ASKED,
        Message(
            role="assistant",
            content=[
                ToolCallBlock(id="a", name="look"),
                ToolCallBlock(id="b", name="files.read"),
            ],
        ),
        Message(role="tool", tool_call_id="a", content="1"),
        Message(role="tool", tool_call_id="b", content="2"),
        Message(role="assistant", content=[ToolCallBlock(id="c", name="look")]),
        Message(role="tool", tool_call_id="c", content="3"),
    ]
    body = _body(ChatRequest(messages=history))

    assert body["tools"] == [
        {"name": "look", "input_schema": {"type": "object"}},
        {"name": "files_read-601e4eb6", "input_schema": {"type": "object"}},
    ]
    assert body["tool_choice"] == {"type": "none"}


# The form of the text


def test_a_schema_is_sent_with_its_objects_closed() -> None:
    schema: JSONObject = {
        "type": "object",
        "properties": {
            "names": {"type": "array", "items": {"type": "object", "properties": {}}},
            "other": {"anyOf": [{"type": "object"}, {"type": "null"}, True]},
            "open": {"type": "object", "additionalProperties": {"type": "string"}},
            "enum": {"enum": ["object"]},
            "optional": {"type": ["object", "null"], "properties": {}},
        },
        "$defs": {"x": {"type": "object"}, "y": True},
    }
    body = _body(
        ChatRequest(
            messages=[ASKED], response_format={"type": "json_schema", "schema": schema}
        )
    )

    assert body["output_config"] == {
        "format": {
            "type": "json_schema",
            "schema": {
                "type": "object",
                "properties": {
                    "names": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {},
                            "additionalProperties": False,
                        },
                    },
                    "other": {
                        "anyOf": [
                            {"type": "object", "additionalProperties": False},
                            {"type": "null"},
                            True,
                        ]
                    },
                    "open": {
                        "type": "object",
                        "additionalProperties": {"type": "string"},
                    },
                    "enum": {"enum": ["object"]},
                    "optional": {
                        "type": ["object", "null"],
                        "properties": {},
                        "additionalProperties": False,
                    },
                },
                "$defs": {
                    "x": {"type": "object", "additionalProperties": False},
                    "y": True,
                },
                "additionalProperties": False,
            },
        }
    }


def test_a_schema_may_be_named_as_other_vendors_do() -> None:
    form: JSONObject = {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {"type": "string"}},
    }

    assert _body(ChatRequest(messages=[ASKED], response_format=form))[
        "output_config"
    ] == {"format": {"type": "json_schema", "schema": {"type": "string"}}}


@pytest.mark.parametrize(
    "form", [{"type": "text"}, {"type": "json_schema"}], ids=["text", "no-schema"]
)
def test_free_text_needs_no_form(form: JSONObject) -> None:
    assert "output_config" not in _body(
        ChatRequest(messages=[ASKED], response_format=form)
    )


def test_schemaless_json_is_requested_in_words_and_reported() -> None:
    outgoing = write_request(
        ChatRequest(messages=[ASKED], response_format={"type": "json"}), NEW, _config()
    )

    assert outgoing.body["system"] == "Answer with one JSON object and nothing else."
    assert outgoing.degradation is not None
    assert outgoing.degradation.requested == "JSON"


# The cache


def test_the_beginning_is_marked_for_the_cache() -> None:
    turns = [
        Message(role="system", content="You are brief."),
        ASKED,
        Message(
            role="assistant",
            content=[TextBlock(text="Hm."), ToolCallBlock(id="a", name="add")],
        ),
        Message(role="tool", tool_call_id="a", content="2"),
        Message(role="assistant", content="Two."),
        Message(
            role="user", content=[TextBlock(text="And now?"), TextBlock(text="Quick.")]
        ),
    ]
    body = _body(ChatRequest(messages=turns, tools=TOOLS), config=AnthropicConfig())

    assert body["system"] == [
        {
            "type": "text",
            "text": "You are brief.",
            "cache_control": {"type": "ephemeral"},
        }
    ]
    assert json.dumps(body).count("cache_control") == 4
    marked = [
        block
        for message in _list(body["messages"])
        for block in _list(message["content"])
        if "cache_control" in block
    ]
    assert [block["type"] for block in marked] == ["tool_result", "text"]
    assert _list(body["tools"])[-1]["cache_control"] == {"type": "ephemeral"}


def _list(value: JSONValue) -> list[JSONObject]:
    assert isinstance(value, list)
    return value


def test_the_cache_keeps_as_long_as_is_said() -> None:
    body = _body(ChatRequest(messages=[ASKED]), config=AnthropicConfig(cache_ttl="1h"))

    assert _list(body["messages"])[0]["content"] == [
        {
            "type": "text",
            "text": "Hello.",
            "cache_control": {"type": "ephemeral", "ttl": "1h"},
        }
    ]


def test_a_mark_of_one_s_own_leaves_one_less() -> None:
    config = AnthropicConfig(
        extra_request_params={"cache_control": {"type": "ephemeral"}}
    )
    turns = [
        Message(role="system", content="S"),
        ASKED,
        Message(role="assistant", content="Yes."),
        ASKED,
    ]

    assert (
        json.dumps(
            _body(ChatRequest(messages=turns, tools=TOOLS), config=config)
        ).count("cache_control")
        == 3
    )


def test_a_mark_on_one_of_the_api_s_own_tools_leaves_one_less() -> None:
    search: JSONObject = {
        "type": "web_search_20260209",
        "name": "web_search",
        "cache_control": {"type": "ephemeral"},
    }
    config = AnthropicConfig(server_tools=(search,))
    turns = [
        Message(role="system", content="S"),
        ASKED,
        Message(role="assistant", content="Yes."),
        ASKED,
    ]

    body = _body(ChatRequest(messages=turns, tools=TOOLS), config=config)

    assert json.dumps(body).count("cache_control") == 4
    assert _list(body["tools"])[0] == search


def test_a_tool_that_is_loaded_later_is_not_marked() -> None:
    later = [
        ToolSpec(name=name, parameters={}, extras={"defer_loading": True})
        for name in ("one", "two")
    ]

    tools = _list(
        _body(
            ChatRequest(messages=[ASKED], tools=[*TOOLS, *later]),
            config=AnthropicConfig(),
        )["tools"]
    )

    assert [tool["name"] for tool in tools if "cache_control" in tool] == ["look"]


def test_without_the_cache_nothing_is_marked() -> None:
    assert "cache_control" not in json.dumps(
        _body(ChatRequest(messages=[ASKED], tools=TOOLS))
    )


def test_message_of_documents_api_cannot_mark_is_passed_over() -> None:
    search = Message(
        role="user", content=[VendorBlock(type="search_result", extras={"title": "t"})]
    )
    body = _body(ChatRequest(messages=[ASKED, search]), config=AnthropicConfig())

    assert "cache_control" in _list(_list(body["messages"])[0]["content"])[0]
    assert "cache_control" not in json.dumps(_list(body["messages"])[1])
