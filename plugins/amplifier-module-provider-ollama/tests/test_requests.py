"""What is sent to the server, beside what Ollama's own client sends for the same content."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final

import httpx
import ollama
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_module_provider_ollama import OllamaConfig
from amplifier_module_provider_ollama.models import Abilities
from amplifier_module_provider_ollama.requests import write_request
from amplifier_sdk.chat import ChatRequest, ToolChoice, ToolSpec
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
from amplifier_sdk.messages import Message, Role

PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
READ: Final = ToolSpec(
    name="read_file",
    description="Read a text file.",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "where it is"},
            "mode": {"enum": ["a", "b"]},
        },
        "required": ["path"],
    },
)
ADD: Final = ToolSpec(name="add", parameters={"type": "object", "properties": {}})
PERSON: Final[JSONObject] = {
    "type": "object",
    "properties": {"age": {"type": "integer"}},
    "required": ["age"],
}


def ask(*messages: Message, **more: object) -> ChatRequest:
    return ChatRequest(messages=messages or (user("Hello"),), **more)  # type: ignore[arg-type]  # by their names


def user(*content: str | ContentBlock) -> Message:
    return said("user", *content)


def said(role: Role, *content: str | ContentBlock) -> Message:
    if len(content) == 1 and isinstance(content[0], str):
        return Message(role=role, content=content[0])
    return Message(
        role=role,
        content=[TextBlock(text=c) if isinstance(c, str) else c for c in content],
    )


def body_of(
    request: ChatRequest,
    config: OllamaConfig | None = None,
    abilities: Abilities | None = None,
) -> JSONObject:
    known = abilities or Abilities()
    return write_request(
        request, "llama3.2", config or OllamaConfig(num_ctx=0, max_tokens=64), known
    ).body


def messages_of(body: JSONObject) -> list[JSONObject]:
    messages = body["messages"]
    assert isinstance(messages, list)
    return messages


def sent_by_client(call: Callable[[ollama.Client], object]) -> JSONObject:
    """Return the body that Ollama's client sends."""
    bodies: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(request.read())
        return httpx.Response(
            200,
            text='{"message": {"role": "assistant", "content": ""}, "done": true}\n',
        )

    client = ollama.Client(transport=httpx.MockTransport(answer))
    list(call(client))  # type: ignore[call-overload]  # a stream
    body: JSONObject = json.loads(bodies[0])
    return body


def comparable(body: JSONObject) -> JSONObject:
    """Take off what the client cannot say: `truncate`, and which call a result answers."""
    messages = body["messages"]
    assert isinstance(messages, list)
    for message in messages:
        message.pop("tool_call_id", None)
        for call in message.get("tool_calls", ()):
            del call["id"]
    return {key: value for key, value in body.items() if key != "truncate"}


def test_whole_conversation_is_sent_as_ollamas_client_sends_it() -> None:
    call = ToolCallBlock(id="c1", name="read_file", input={"path": "a.txt"})
    request = ask(
        said("system", "Be brief."),
        user(
            "What is in it?",
            ImageBlock(
                source={"type": "base64", "media_type": "image/png", "data": PIXEL}
            ),
        ),
        said(
            "assistant",
            ThinkingBlock(thinking="I must look."),
            TextBlock(text="One moment."),
            call,
        ),
        Message(role="tool", content="a line", tool_call_id="c1", name="read_file"),
        said("assistant", "It has a line."),
        user("Thanks."),
        tools=[READ, ADD],
        response_format={"type": "json_schema", "schema": PERSON},
        temperature=0.25,
        top_p=0.5,
        max_output_tokens=9,
        stop=["END"],
    )
    config = OllamaConfig(
        num_ctx=2048, think=True, keep_alive="10m", options={"seed": 7, "top_k": 3}
    )

    theirs = sent_by_client(
        lambda client: client.chat(
            model="llama3.2",
            messages=[
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "What is in it?", "images": [PIXEL]},
                {
                    "role": "assistant",
                    "content": "One moment.",
                    "thinking": "I must look.",
                    "tool_calls": [
                        {
                            "function": {
                                "name": "read_file",
                                "arguments": {"path": "a.txt"},
                            }
                        }
                    ],
                },
                {"role": "tool", "content": "a line", "tool_name": "read_file"},
                {"role": "assistant", "content": "It has a line."},
                {"role": "user", "content": "Thanks."},
            ],
            tools=[
                {
                    "type": "function",
                    "function": {
                        "name": "read_file",
                        "description": "Read a text file.",
                        "parameters": dict(READ.parameters),
                    },
                },
                {
                    "type": "function",
                    "function": {"name": "add", "parameters": dict(ADD.parameters)},
                },
            ],
            stream=True,
            format=dict(PERSON),
            think=True,
            keep_alive="10m",
            options={
                "seed": 7,
                "top_k": 3,
                "num_ctx": 2048,
                "num_predict": 9,
                "temperature": 0.25,
                "top_p": 0.5,
                "stop": ["END"],
            },
        )
    )

    assert comparable(body_of(request, config)) == theirs


def test_the_least_request_is_sent_as_ollamas_client_sends_it() -> None:
    theirs = sent_by_client(
        lambda client: client.chat(
            model="llama3.2",
            messages=[{"role": "user", "content": "Hello"}],
            tools=[],
            stream=True,
            options={"num_predict": 64},
        )
    )

    assert comparable(body_of(ask())) == {
        key: value for key, value in theirs.items() if key != "tools"
    }


def test_developers_text_is_users_message_of_own_in_place() -> None:
    body = body_of(
        ask(
            said("system", "S"),
            said("developer", "<context_file>x</context_file>"),
            user("Explain"),
        )
    )

    assert body["messages"] == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "<context_file>x</context_file>"},
        {"role": "user", "content": "Explain"},
    ]


def test_block_results_are_tool_messages_with_call_names() -> None:
    calls = [
        ToolCallBlock(id=f"c{n}", name=name, input={})
        for n, name in enumerate(("add", "read_file"))
    ]
    results = [
        ToolResultBlock(tool_call_id="c0", output={"sum": 3, "é": None}),
        ToolResultBlock(tool_call_id="c1", output="text"),
    ]

    body = body_of(
        ask(user("Go"), said("assistant", *calls), said("tool", *results, "and a word"))
    )

    assert body["messages"][2:] == [  # type: ignore[index]  # a list
        {
            "role": "tool",
            "content": '{"sum": 3, "é": null}',
            "tool_name": "add",
            "tool_call_id": "c0",
        },
        {
            "role": "tool",
            "content": "text",
            "tool_name": "read_file",
            "tool_call_id": "c1",
        },
        {"role": "user", "content": "and a word"},
    ]


def test_blocks_of_other_vendors_are_left_out() -> None:
    blocks: list[ContentBlock] = [
        RedactedThinkingBlock(data="x"),
        ReasoningBlock(summary=("y",)),
        VendorBlock(type="server_tool_use", extras={"id": "z"}),
        TextBlock(text="Hello"),
    ]

    body = body_of(ask(user("Hi"), said("assistant", *blocks)))

    assert body["messages"][1] == {"role": "assistant", "content": "Hello"}  # type: ignore[index]  # a list


@pytest.mark.parametrize(
    ("choice", "names", "lost"),
    [
        (None, ["read_file", "add"], None),
        ("auto", ["read_file", "add"], None),
        ("none", None, None),
        ("required", ["read_file", "add"], "tool_choice: required"),
        ({"type": "tool", "name": "add"}, ["add"], "tool_choice: add"),
    ],
    ids=["open", "auto", "none", "required", "named"],
)
def test_a_choice_of_tools_is_kept_as_far_as_the_api_can(
    choice: ToolChoice | None, names: list[str] | None, lost: str | None
) -> None:
    outgoing = write_request(
        ask(tools=[READ, ADD], tool_choice=choice), "m", OllamaConfig()
    )

    tools = outgoing.body.get("tools")
    given = None if tools is None else [tool["function"]["name"] for tool in tools]  # type: ignore[index,call-overload,union-attr]
    assert given == names
    assert (outgoing.degradation.requested if outgoing.degradation else None) == lost


@pytest.mark.parametrize(
    ("wanted", "sent"),
    [
        ({"type": "text"}, None),
        ({"type": "json"}, "json"),
        ({"type": "json_schema", "schema": PERSON}, PERSON),
    ],
    ids=["text", "json", "schema"],
)
def test_a_format_is_asked_for(wanted: JSONObject, sent: JSONValue) -> None:
    assert body_of(ask(response_format=wanted)).get("format") == sent


@pytest.mark.parametrize(
    "more",
    [
        {"response_format": {"type": "xml"}},
        {"response_format": {"type": "json_schema"}},
        {"tool_choice": "perhaps"},
        {"tool_choice": {"type": "tool", "name": "absent"}},
    ],
    ids=["unknown-format", "no-schema", "unknown-choice", "absent-tool"],
)
def test_what_cannot_be_asked_is_refused_before_it_is_sent(more: JSONObject) -> None:
    with pytest.raises(
        InvalidRequestError, match=r"response_format is|tool_choice (is|names)"
    ):
        body_of(ask(**more))


THINKS: Final = Abilities(capabilities=frozenset({"thinking"}))
LEVELS: Final = Abilities(levels=("low", "medium", "high"))
SWITCH: Final = Abilities(levels=(False, True))


@pytest.mark.parametrize(
    ("abilities", "effort", "think", "is_lost"),
    [
        (THINKS, "high", True, True),
        (THINKS, "none", False, False),
        (
            Abilities(capabilities=frozenset({"thinking"}), family="gptoss"),
            "high",
            "high",
            False,
        ),
        (LEVELS, "low", "low", False),
        (LEVELS, "minimal", True, True),
        (LEVELS, "none", None, False),
        (SWITCH, "high", True, True),
        (SWITCH, "none", False, False),
        (Abilities(levels=(False,)), "high", None, True),
        (Abilities(), "high", None, True),
        (Abilities(), "none", None, False),
    ],
    ids=[
        "thinks-high",
        "thinks-none",
        "gptoss-high",
        "levels-low",
        "levels-minimal",
        "levels-none",
        "switch-high",
        "switch-none",
        "never",
        "unknown-high",
        "unknown-none",
    ],
)
def test_an_effort_becomes_what_the_model_knows(
    abilities: Abilities, effort: str, think: bool | str | None, is_lost: bool
) -> None:
    outgoing = write_request(
        ask(reasoning_effort=effort), "m", OllamaConfig(think=False), abilities
    )

    assert outgoing.body.get("think") == think
    assert (outgoing.degradation is not None) is is_lost


def test_several_losses_are_told_together() -> None:
    outgoing = write_request(
        ask(tools=[ADD], tool_choice="required", reasoning_effort="high"),
        "m",
        OllamaConfig(),
    )

    assert outgoing.degradation is not None
    assert (
        outgoing.degradation.requested
        == "tool_choice: required; reasoning_effort: high"
    )


def test_the_configuration_holds_where_the_request_says_nothing() -> None:
    config = OllamaConfig(
        num_ctx=1000, max_tokens=10, truncate=True, think="low", keep_alive=0
    )

    body = body_of(ask(), config)
    named = body_of(ask(temperature=0.0, max_output_tokens=3), config)

    assert body["options"] == {"num_ctx": 1000, "num_predict": 10}
    assert named["options"] == {"num_ctx": 1000, "num_predict": 3, "temperature": 0.0}
    assert (body["truncate"], body["think"], body["keep_alive"]) == (True, "low", 0)


def test_answer_has_at_most_half_of_window_unless_it_asked_for() -> None:
    assert (
        OllamaConfig().longest_answer,
        OllamaConfig(num_ctx=1000).longest_answer,
    ) == (4096, 500)
    assert (OllamaConfig(num_ctx=0).window, OllamaConfig(num_ctx=0).longest_answer) == (
        4096,
        2048,
    )


@pytest.mark.parametrize(
    "config",
    [
        {"num_ctx": -1},
        {"num_ctx": True},
        {"keep_alive": True},
        {"keep_alive": float("inf")},
        {"options": {"num_ctx": 1}},
        {"options": {"num_predict": 1}},
        {"options": {"temperature": 1}},
        {"host": "a", "base_url": "b"},
        {"think": True, "enable_thinking": False},
        {"default_model": "a", "model": "b"},
        {"base_url": "ftp://a"},
    ],
    ids="-".join,
)
def test_settings_out_of_range_are_refused(config: dict[str, object]) -> None:
    with pytest.raises(
        ValueError, match=r"num_ctx|keep_alive|setting of its own|another name|host"
    ):
        OllamaConfig(**config)  # type: ignore[arg-type]  # wrong on purpose


def test_other_names_of_settings_mean_the_same() -> None:
    config = OllamaConfig(
        host="box", model="m", max_output_tokens=7, enable_thinking=True
    )

    assert (
        config.base_url,
        config.default_model,
        config.longest_answer,
        config.think,
    ) == (
        "http://box:11434",
        "m",
        7,
        True,
    )


TEXT: Final = st.text(max_size=6)
BLOCKS: Final = st.one_of(
    st.builds(TextBlock, text=TEXT),
    st.builds(ThinkingBlock, thinking=TEXT),
    st.builds(ImageBlock, source=st.fixed_dictionaries({"data": TEXT})),
    st.builds(
        ToolCallBlock, id=st.sampled_from("abc"), name=st.sampled_from(["t", "u"])
    ),
    st.builds(
        ToolResultBlock,
        tool_call_id=st.sampled_from("abcd"),
        output=TEXT | st.none() | st.integers(),
    ),
    st.builds(VendorBlock, type=st.just("x")),
)
MESSAGES: Final = st.builds(
    Message,
    role=st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
    content=TEXT | st.lists(BLOCKS, max_size=4),
    tool_call_id=st.none() | st.sampled_from("abc"),
)


@given(st.lists(MESSAGES, max_size=6))
def test_any_history_becomes_messages_that_ollamas_client_takes(
    messages: Sequence[Message],
) -> None:
    written = body_of(ask(*messages) if messages else ask())["messages"]

    assert isinstance(written, list)
    for message in written:
        ollama.Message.model_validate({**message, "images": None})
    said_before = "".join(
        block.text
        for m in messages
        for block in m.blocks
        if isinstance(block, TextBlock)
    )
    assert all(
        character in json.dumps(written, ensure_ascii=False)
        for character in said_before
        if character.isalnum()
    )
