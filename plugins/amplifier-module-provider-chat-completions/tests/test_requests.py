"""What a request becomes in the protocol's words, and that OpenAI's own client sends the same."""

from __future__ import annotations

from typing import Final

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.testing.transport import HttpAnswer, ScriptedTransport, sse
from amplifier_kit.vendors import Outgoing
from amplifier_module_provider_chat_completions import ChatCompletionsConfig
from amplifier_module_provider_chat_completions.requests import write_request
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

SCHEMA: Final[JSONObject] = {"type": "object", "properties": {"a": {"type": "integer"}}}
ADD: Final = ToolSpec(name="add", description="Add numbers.", parameters=SCHEMA)
ASKED: Final = Message(role="user", content="Hello.")


def write(
    request: ChatRequest, *, limit_field: str = "max_tokens", **options: JSONValue
) -> Outgoing:
    config = ChatCompletionsConfig(**options)  # type: ignore[arg-type]  # options by name
    return write_request(request, "gpt-9", config, limit_field=limit_field)


def body(
    request: ChatRequest, *, limit_field: str = "max_tokens", **options: JSONValue
) -> JSONObject:
    return write(request, limit_field=limit_field, **options).body


def said(*messages: Message, **options: JSONValue) -> JSONValue:
    return body(ChatRequest(messages=messages), **options)["messages"]  # type: ignore[arg-type]  # options by name


def test_a_plain_request_is_model_and_messages_and_streams() -> None:
    assert body(ChatRequest(messages=[ASKED])) == {
        "model": "gpt-9",
        "messages": [{"role": "user", "content": "Hello."}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert "stream_options" not in body(
        ChatRequest(messages=[ASKED]), stream_usage=False
    )


def test_what_is_asked_for_has_its_field() -> None:
    request = ChatRequest(
        messages=[ASKED],
        tools=[ADD],
        tool_choice="required",
        temperature=0.0,
        top_p=0.9,
        max_output_tokens=50,
        stop=[".", "!"],
        reasoning_effort="low",
    )

    written = body(
        request, limit_field="max_completion_tokens", parallel_tool_calls=False
    )

    assert {
        key: written[key]
        for key in ("temperature", "top_p", "max_completion_tokens", "stop")
    } == {
        "temperature": 0.0,
        "top_p": 0.9,
        "max_completion_tokens": 50,
        "stop": [".", "!"],
    }
    assert (written["reasoning_effort"], written["parallel_tool_calls"]) == (
        "low",
        False,
    )
    assert written["tool_choice"] == "required"
    function = {"name": "add", "description": "Add numbers.", "parameters": SCHEMA}
    assert written["tools"] == [{"type": "function", "function": function}]


def test_without_tools_there_is_no_choice_among_them() -> None:
    written = body(
        ChatRequest(messages=[ASKED], tool_choice="none"), parallel_tool_calls=True
    )

    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(written)


def test_a_tool_is_forced_by_its_name() -> None:
    written = body(
        ChatRequest(
            messages=[ASKED], tools=[ADD], tool_choice={"type": "tool", "name": "add"}
        )
    )

    assert written["tool_choice"] == {"type": "function", "function": {"name": "add"}}


def test_a_tool_keeps_what_is_said_beside_it() -> None:
    spec = ToolSpec(name="add", parameters=SCHEMA, extras={"strict": True})

    written = body(ChatRequest(messages=[ASKED], tools=[spec]))

    assert written["tools"] == [
        {
            "type": "function",
            "function": {"strict": True, "name": "add", "parameters": SCHEMA},
        }
    ]


@pytest.mark.parametrize(
    ("wanted", "written"),
    [
        ({"type": "text"}, None),
        ({"type": "json"}, {"type": "json_object"}),
        (
            {"type": "json_schema", "schema": SCHEMA},
            {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": SCHEMA},
            },
        ),
        (
            {"type": "json_schema", "schema": SCHEMA, "name": "sum", "strict": True},
            {
                "type": "json_schema",
                "json_schema": {"name": "sum", "schema": SCHEMA, "strict": True},
            },
        ),
    ],
    ids=["text", "json", "schema", "strict schema"],
)
def test_the_format_of_the_answer_is_asked_for(
    wanted: JSONObject, written: JSONValue
) -> None:
    assert (
        body(ChatRequest(messages=[ASKED], response_format=wanted)).get(
            "response_format"
        )
        == written
    )


@pytest.mark.parametrize(
    "wanted", [{"type": "json_schema"}, {"type": "yaml"}], ids=["no schema", "unknown"]
)
def test_a_format_that_nobody_knows_is_refused(wanted: JSONObject) -> None:
    with pytest.raises(InvalidRequestError, match="response_format"):
        body(ChatRequest(messages=[ASKED], response_format=wanted))


def test_developers_speak_as_the_user_does() -> None:
    developer = Message(role="developer", content="<context_file>…</context_file>")

    assert said(Message(role="system", content="Be kind."), developer) == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "<context_file>…</context_file>"},
    ]


def test_calls_and_results_stand_beside_each_other() -> None:
    calls = Message(
        role="assistant",
        content=[
            ThinkingBlock(thinking="Hm.", signature="s"),
            RedactedThinkingBlock(data="x"),
            ReasoningBlock(),
            TextBlock(text="Let me see."),
            ToolCallBlock(id="c1", name="add", input={"ä": 1}),
            ToolCallBlock(id="c2", name="add"),
            ToolCallBlock(id="c3", name="add"),
        ],
    )
    results = (
        Message(role="tool", tool_call_id="c1", content="3"),
        Message(
            role="tool",
            content=[
                ToolResultBlock(tool_call_id="c2", output={"sum": 3}),
                ToolResultBlock(tool_call_id="c3", output=None),
                ToolResultBlock(tool_call_id="c3", output="text"),
            ],
        ),
    )

    written = said(calls, *results)

    assert written == [
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "add", "arguments": '{"ä": 1}'},
                },
                {
                    "id": "c2",
                    "type": "function",
                    "function": {"name": "add", "arguments": "{}"},
                },
                {
                    "id": "c3",
                    "type": "function",
                    "function": {"name": "add", "arguments": "{}"},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "3"},
        {"role": "tool", "tool_call_id": "c2", "content": '{"sum": 3}'},
        {"role": "tool", "tool_call_id": "c3", "content": ""},
        {"role": "tool", "tool_call_id": "c3", "content": "text"},
    ]
    assert write(ChatRequest(messages=[calls, *results])).degradation is None


def test_answer_with_calls_only_has_no_text() -> None:
    call = Message(role="assistant", content=[ToolCallBlock(id="c1", name="add")])

    (written,) = said(call)  # type: ignore[misc]  # a list

    assert written["content"] is None  # type: ignore[index,call-overload]  # an object
    assert said(Message(role="assistant", content="")) == [
        {"role": "assistant", "content": ""}
    ]


@pytest.mark.parametrize(
    "block",
    [
        ThinkingBlock(thinking="Hm."),
        RedactedThinkingBlock(data="x"),
        ReasoningBlock(),
        VendorBlock(type="web_search_call"),
    ],
    ids=["thinking", "redacted", "reasoning", "vendor's"],
)
def test_an_answer_of_which_nothing_can_be_written_is_left_out(
    block: ContentBlock,
) -> None:
    answer = Message(role="assistant", content=[block, TextBlock(text="")])

    assert said(ASKED, answer, ASKED) == [{"role": "user", "content": "Hello."}] * 2


def test_what_stands_beside_result_is_said_behind_last_one() -> None:
    image = ImageBlock(source={"url": "https://a.example/b.png"})
    calls = Message(
        role="assistant",
        content=[
            ToolCallBlock(id="c1", name="add"),
            ToolCallBlock(id="c2", name="add"),
        ],
    )
    first = Message(
        role="tool",
        content=[
            ToolResultBlock(tool_call_id="c1", output="3"),
            TextBlock(text="See:"),
            image,
        ],
    )

    written = said(
        calls, first, Message(role="tool", tool_call_id="c2", content="4"), ASKED
    )

    assert isinstance(written, list)
    assert written[1:] == [
        {"role": "tool", "tool_call_id": "c1", "content": "3"},
        {"role": "tool", "tool_call_id": "c2", "content": "4"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "See:"},
                {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
            ],
        },
        {"role": "user", "content": "Hello."},
    ]


def test_thinking_goes_back_where_the_server_wants_it() -> None:
    thought = Message(
        role="assistant",
        content=[ThinkingBlock(thinking="Hm."), TextBlock(text="Yes.")],
    )

    assert said(thought, send_reasoning=True) == [
        {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."}
    ]


def test_images_are_parts_as_bytes_or_links() -> None:
    shown = Message(
        role="user",
        content=[
            TextBlock(text="What is this?"),
            ImageBlock(
                source={"type": "base64", "media_type": "image/jpeg", "data": "QUJD"}
            ),
            ImageBlock(source={"data": "QUJD"}),
            ImageBlock(
                source={
                    "type": "url",
                    "url": "https://acme.example/cat.png",
                    "detail": "low",
                }
            ),
            VendorBlock(type="audio"),
        ],
    )

    outgoing = write(ChatRequest(messages=[shown]))

    assert outgoing.body["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {
                    "type": "image_url",
                    "image_url": {"url": "data:image/jpeg;base64,QUJD"},
                },
                {
                    "type": "image_url",
                    "image_url": {"url": "data:image/png;base64,QUJD"},
                },
                {
                    "type": "image_url",
                    "image_url": {
                        "url": "https://acme.example/cat.png",
                        "detail": "low",
                    },
                },
            ],
        }
    ]
    assert outgoing.degradation == Degradation(
        requested="audio",
        actual="left out",
        reason="The chat protocol has no words for it.",
    )


def test_an_image_that_is_nowhere_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="An image has 'data'"):
        said(Message(role="user", content=[ImageBlock(source={"type": "file"})]))


def test_images_of_results_follow_in_user_message() -> None:
    def result(id: str, *content: ContentBlock) -> Message:
        return Message(role="tool", tool_call_id=id, content=content)

    one, two = (
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
        for data in ("MQ==", "Mg==")
    )
    first, second = (
        ImageBlock(source={"data": "MQ=="}),
        ImageBlock(source={"data": "Mg=="}),
    )

    outgoing = write(
        ChatRequest(
            messages=[
                result("c1", TextBlock(text="here"), first, second),
                result("c2", TextBlock(text="no picture")),
                result("c3", second),
                Message(role="assistant", content="I see."),
                result("c4", first, VendorBlock(type="audio")),
            ]
        )
    )

    below = "[Its images are in the next message of the user.]"
    assert outgoing.body["messages"] == [
        {"role": "tool", "tool_call_id": "c1", "content": f"here\n{below}"},
        {"role": "tool", "tool_call_id": "c2", "content": "no picture"},
        {"role": "tool", "tool_call_id": "c3", "content": below},
        {
            "role": "user",
            "content": [
                {
                    "type": "text",
                    "text": "[The images that the tool call c1 returned:]",
                },
                one,
                two,
                {
                    "type": "text",
                    "text": "[The images that the tool call c3 returned:]",
                },
                two,
            ],
        },
        {"role": "assistant", "content": "I see."},
        {"role": "tool", "tool_call_id": "c4", "content": below},
        {
            "role": "user",
            "content": [
                {
                    "type": "text",
                    "text": "[The images that the tool call c4 returned:]",
                },
                one,
            ],
        },
    ]
    assert outgoing.degradation is not None
    assert outgoing.degradation.requested == "audio"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["system", "developer", "user", "assistant"]), st.text()
        ),
        max_size=8,
    )
)
def test_any_words_become_messages_of_known_roles(
    history: list[tuple[str, str]],
) -> None:
    messages = [
        Message.from_dict({"role": role, "content": text}) for role, text in history
    ]

    written = said(*messages)

    assert isinstance(written, list)
    assert [(message["role"], message["content"]) for message in written] == [
        ("user" if role == "developer" else role, text) for role, text in history
    ]


async def test_openais_own_client_sends_the_same() -> None:
    transport = ScriptedTransport(HttpAnswer(parts=(sse("[DONE]"),)))
    client = openai.AsyncOpenAI(
        api_key="sk-test", http_client=httpx2.AsyncClient(transport=transport)
    )
    request = ChatRequest(
        messages=[
            Message(role="system", content="Be kind."),
            Message(
                role="user",
                content=[
                    TextBlock(text="And this?"),
                    ImageBlock(source={"url": "https://a.example"}),
                ],
            ),
            Message(
                role="assistant",
                content=[ToolCallBlock(id="c1", name="add", input={"a": 2})],
            ),
            Message(role="tool", tool_call_id="c1", content="2"),
        ],
        tools=[ADD],
        tool_choice={"type": "tool", "name": "add"},
        temperature=0.5,
        max_output_tokens=10,
        stop=["."],
        reasoning_effort="low",
        response_format={"type": "json_schema", "schema": SCHEMA, "name": "sum"},
    )

    stream = await client.chat.completions.create(
        model="gpt-9",
        stream=True,
        stream_options={"include_usage": True},
        messages=[
            {"role": "system", "content": "Be kind."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "And this?"},
                    {"type": "image_url", "image_url": {"url": "https://a.example"}},
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "add", "arguments": '{"a": 2}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "2"},
        ],
        tools=[
            {
                "type": "function",
                "function": {
                    "name": "add",
                    "description": "Add numbers.",
                    "parameters": {**SCHEMA},
                },
            }
        ],
        tool_choice={"type": "function", "function": {"name": "add"}},
        temperature=0.5,
        max_completion_tokens=10,
        stop=["."],
        reasoning_effort="low",
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "sum", "schema": {**SCHEMA}},
        },
    )
    await stream.close()
    await client.close()

    assert transport.bodies == [body(request, limit_field="max_completion_tokens")]
    assert transport.requests[0].url.path == "/v1/chat/completions"
