"""The vendor's own SDK as a witness: it sends the same requests and reads the same answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import attrs
import httpx2
import pytest

from amplifier_kit.http.sse import EventDecoder, ServerEvent
from amplifier_module_provider_anthropic import AnthropicConfig
from amplifier_module_provider_anthropic.answers import MessageReader
from amplifier_module_provider_anthropic.faults import fault, reported_fault
from amplifier_module_provider_anthropic.messages import write_conversation
from amplifier_module_provider_anthropic.requests import VERSION, write_request
from amplifier_sdk.chat import ChatRequest, ChatResponse, ToolSpec
from amplifier_sdk.content import (
    ImageBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    VendorBlock,
)
from amplifier_sdk.errors import LLMError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message

if TYPE_CHECKING:
    import anthropic

MODEL: Final = "claude-sonnet-5-5"
SCHEMA: Final[JSONObject] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
OWN: Final = {"anthropic:message_id": "msg_1"}
TOOL: Final = ToolSpec(
    name="get_weather", description="Say the weather.", parameters=SCHEMA
)
TOOL_SENT: Final[JSONObject] = {
    "name": "get_weather",
    "description": "Say the weather.",
    "input_schema": SCHEMA,
}
USER: Final = Message(role="user", content="Hello.")
USER_SENT: Final[JSONObject] = {
    "role": "user",
    "content": [{"type": "text", "text": "Hello."}],
}


@attrs.define(eq=False)
class Wire:
    """Keeps the request that the SDK sends, and answers with a stream."""

    stream: bytes
    requests: list[httpx2.Request] = attrs.field(factory=list)

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        return httpx2.Response(
            200, headers={"content-type": "text/event-stream"}, content=self.stream
        )

    def client(self) -> anthropic.Anthropic:
        import anthropic  # two seconds for every run that collects this file

        http = httpx2.Client(transport=httpx2.MockTransport(self.handle))
        return anthropic.Anthropic(api_key="sk-test", http_client=http, max_retries=0)


CASES: Final[Mapping[str, tuple[ChatRequest, AnthropicConfig, JSONObject]]] = {
    "plain": (
        ChatRequest(messages=[USER], max_output_tokens=100),
        AnthropicConfig(enable_prompt_caching=False),
        {"max_tokens": 100, "messages": [USER_SENT]},
    ),
    "system, stops, a user": (
        ChatRequest(
            messages=[Message(role="system", content="Be brief."), USER],
            max_output_tokens=100,
            stop=["END"],
            metadata={"user_id": "u-1"},
        ),
        AnthropicConfig(enable_prompt_caching=False),
        {
            "max_tokens": 100,
            "system": "Be brief.",
            "messages": [USER_SENT],
            "stop_sequences": ["END"],
            "metadata": {"user_id": "u-1"},
        },
    ),
    "tools and their results": (
        ChatRequest(
            messages=[
                USER,
                Message(
                    role="assistant",
                    content=[
                        ThinkingBlock(thinking="Hm.", signature="sig"),
                        RedactedThinkingBlock(data="enc"),
                        TextBlock(text="Let me see."),
                        ToolCallBlock(
                            id="toolu_1", name="get_weather", input={"city": "Bern"}
                        ),
                        ToolCallBlock(
                            id="toolu_2", name="get_weather", input={"city": "Genf"}
                        ),
                    ],
                ),
                Message(role="tool", tool_call_id="toolu_1", content="sunny"),
                Message(
                    role="tool",
                    tool_call_id="toolu_2",
                    content="rain",
                    metadata={"is_error": True},
                ),
            ],
            tools=[TOOL],
            max_output_tokens=100,
        ),
        AnthropicConfig(
            enable_prompt_caching=False,
            disable_parallel_tool_use=True,
            changed_history="error",
        ),
        {
            "max_tokens": 100,
            "tools": [TOOL_SENT],
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            "messages": [
                USER_SENT,
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
                        {"type": "redacted_thinking", "data": "enc"},
                        {"type": "text", "text": "Let me see."},
                        {
                            "type": "tool_use",
                            "id": "toolu_1",
                            "name": "get_weather",
                            "input": {"city": "Bern"},
                        },
                        {
                            "type": "tool_use",
                            "id": "toolu_2",
                            "name": "get_weather",
                            "input": {"city": "Genf"},
                        },
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "toolu_1",
                            "content": "sunny",
                        },
                        {
                            "type": "tool_result",
                            "tool_use_id": "toolu_2",
                            "content": "rain",
                            "is_error": True,
                        },
                    ],
                },
            ],
        },
    ),
    "a later system text": (
        ChatRequest(
            messages=[USER, Message(role="system", content="Be brief.")],
            max_output_tokens=100,
        ),
        AnthropicConfig(enable_prompt_caching=False),
        {
            "max_tokens": 100,
            "messages": [
                USER_SENT,
                {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
            ],
        },
    ),
    "a forced tool": (
        ChatRequest(
            model="claude-haiku-5-5",
            messages=[USER],
            tools=[TOOL],
            tool_choice={"type": "tool", "name": "get_weather"},
            max_output_tokens=100,
        ),
        AnthropicConfig(enable_prompt_caching=False),
        {
            "max_tokens": 100,
            "tools": [TOOL_SENT],
            "tool_choice": {"type": "tool", "name": "get_weather"},
            "thinking": {"type": "disabled"},
            "messages": [USER_SENT],
        },
    ),
    "thinking, effort and a schema": (
        ChatRequest(
            messages=[USER],
            max_output_tokens=9_000,
            reasoning_effort="high",
            response_format={"type": "json_schema", "schema": SCHEMA},
        ),
        AnthropicConfig(enable_prompt_caching=False, thinking_display="summarized"),
        {
            "max_tokens": 9_000,
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {
                "effort": "high",
                "format": {"type": "json_schema", "schema": SCHEMA},
            },
            "messages": [USER_SENT],
        },
    ),
    "the cache and an image": (
        ChatRequest(
            messages=[
                Message(role="system", content="Be brief."),
                Message(
                    role="user",
                    content=[
                        TextBlock(text="What is it?"),
                        ImageBlock(
                            source={
                                "type": "base64",
                                "media_type": "image/png",
                                "data": "AAAA",
                            }
                        ),
                    ],
                ),
            ],
            tools=[TOOL],
            max_output_tokens=100,
        ),
        AnthropicConfig(cache_ttl="1h"),
        {
            "max_tokens": 100,
            "tools": [
                {**TOOL_SENT, "cache_control": {"type": "ephemeral", "ttl": "1h"}}
            ],
            "system": [
                {
                    "type": "text",
                    "text": "Be brief.",
                    "cache_control": {"type": "ephemeral", "ttl": "1h"},
                }
            ],
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "What is it?"},
                        {
                            "type": "image",
                            "source": {
                                "type": "base64",
                                "media_type": "image/png",
                                "data": "AAAA",
                            },
                            "cache_control": {"type": "ephemeral", "ttl": "1h"},
                        },
                    ],
                }
            ],
        },
    ),
    "the api's own tools": (
        ChatRequest(
            messages=[
                USER,
                Message(
                    role="assistant",
                    metadata=OWN,
                    content=[
                        VendorBlock(
                            type="server_tool_use",
                            extras={
                                "id": "s",
                                "name": "web_search",
                                "input": {"query": "x"},
                            },
                        ),
                        VendorBlock(
                            type="web_search_tool_result",
                            extras={"tool_use_id": "s", "content": []},
                        ),
                    ],
                ),
                USER,
            ],
            max_output_tokens=100,
        ),
        AnthropicConfig(enable_prompt_caching=False),
        {
            "max_tokens": 100,
            "messages": [
                USER_SENT,
                {
                    "role": "assistant",
                    "content": [
                        {
                            "type": "server_tool_use",
                            "id": "s",
                            "name": "web_search",
                            "input": {"query": "x"},
                        },
                        {
                            "type": "web_search_tool_result",
                            "tool_use_id": "s",
                            "content": [],
                        },
                    ],
                },
                USER_SENT,
            ],
        },
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_the_sdk_sends_the_same(name: str, stream: Callable[[str], bytes]) -> None:
    request, config, said = CASES[name]
    model = request.model or MODEL
    wire = Wire(stream("text"))
    with wire.client() as client:
        client.messages.create(model=model, stream=True, **said).close()  # type: ignore[call-overload]  # as JSON has it

    ours = write_request(request, model, config)

    assert ours.body == json.loads(wire.requests[0].content)
    assert wire.requests[0].url.path == f"/{ours.path}"


def test_the_sdk_speaks_the_same_version_of_the_api(
    stream: Callable[[str], bytes],
) -> None:
    wire = Wire(stream("text"))
    with wire.client() as client:
        client.messages.create(
            model=MODEL, max_tokens=9, messages=[], stream=True
        ).close()

    assert wire.requests[0].headers["anthropic-version"] == VERSION


def _ours(data: bytes) -> ChatResponse:
    answer = MessageReader(names={}, fail=_fail)
    for event in EventDecoder().feed(data):
        if isinstance(event, ServerEvent):
            list(answer.feed(event))
    return answer.finish()


def _fail(event: Mapping[str, JSONValue]) -> LLMError:
    return reported_fault(event, multiplier=10)


def _without_nulls(value: JSONValue) -> JSONValue:
    if isinstance(value, dict):
        return {
            key: _without_nulls(item) for key, item in value.items() if item is not None
        }
    return (
        [_without_nulls(item) for item in value] if isinstance(value, list) else value
    )


@pytest.mark.parametrize(
    "name",
    [
        "text",
        "tool",
        "two-tools",
        "no-arguments",
        "thinking",
        "thinking-omitted",
        "redacted-thinking",
        "server-tool",
        "max-tokens",
        "stop-sequence",
        "refusal",
        "pause",
    ],
)
def test_the_sdk_reads_the_same(name: str, stream: Callable[[str], bytes]) -> None:
    with (
        Wire(stream(name)).client() as client,
        client.messages.stream(model=MODEL, max_tokens=9, messages=[]) as one,
    ):
        theirs = one.get_final_message()

    ours = _ours(stream(name))
    said = Message(role="assistant", content=ours.content, metadata=ours.metadata)
    (_, written) = write_conversation([USER, said]).messages

    content = [
        block.model_dump(mode="json", exclude={"parsed_output"})
        for block in theirs.content
    ]
    assert _without_nulls(written["content"]) == _without_nulls(content)
    assert ours.metadata is not None
    assert ours.metadata["anthropic:stop_reason"] == theirs.stop_reason
    assert ours.metadata["anthropic:message_id"] == theirs.id
    usage, counted = theirs.usage, ours.usage
    assert counted is not None
    cached = (usage.cache_read_input_tokens or 0) + (
        usage.cache_creation_input_tokens or 0
    )
    assert (counted.input_tokens, counted.output_tokens) == (
        usage.input_tokens + cached,
        usage.output_tokens,
    )


@pytest.mark.parametrize(
    ("kind", "status", "theirs"),
    [
        ("authentication_error", 401, "AuthenticationError"),
        ("permission_error", 403, "PermissionDeniedError"),
        ("not_found_error", 404, "NotFoundError"),
        ("rate_limit_error", 429, "RateLimitError"),
        ("overloaded_error", 529, "OverloadedError"),
    ],
    ids=["401", "403", "404", "429", "529"],
)
def test_the_sdk_calls_an_error_by_the_same_name(
    kind: str, status: int, theirs: str
) -> None:
    import anthropic  # as above

    error: type[anthropic.APIStatusError] = getattr(anthropic, theirs)
    body: JSONObject = {
        "type": "error",
        "error": {"type": kind, "message": "no"},
        "request_id": "req_1",
    }
    transport = httpx2.MockTransport(lambda _: httpx2.Response(status, json=body))
    http = httpx2.Client(transport=transport)
    with (
        anthropic.Anthropic(
            api_key="sk-test", http_client=http, max_retries=0
        ) as client,
        pytest.raises(error) as caught,
    ):
        client.messages.create(model=MODEL, max_tokens=9, messages=[])

    ours = fault(status, {}, json.dumps(body).encode(), multiplier=10)

    assert type(ours).__name__ in {
        theirs,
        "AccessDeniedError",
        "ProviderUnavailableError",
    }
    assert ours.status_code == caught.value.status_code
    assert caught.value.type == kind
