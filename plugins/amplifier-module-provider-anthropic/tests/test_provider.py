"""What the provider does with the API: addresses, headers, pauses, models, options."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from amplifier.testing import EventRecorder, TestCoordinator
from amplifier.testing.clock import VirtualClock
from amplifier.testing.transport import (
    HttpAnswer,
    HttpStep,
    ScriptedTransport,
    json_answer,
    sse,
)
from amplifier_module_provider_anthropic import AnthropicConfig, AnthropicProvider
from amplifier_sdk.chat import ChatRequest, ChatResponse, ModelInfo, ToolSpec
from amplifier_sdk.configuration import read_config
from amplifier_sdk.content import TextBlock, ToolCallBlock
from amplifier_sdk.errors import ConfigError, ProviderUnavailableError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import Message
from amplifier_sdk.streaming import TextDelta

Stream = Callable[[str], bytes]
ASKED = ChatRequest(messages=[Message(role="user", content="Hello.")])


def _provider(
    *steps: HttpStep, **options: JSONValue
) -> tuple[AnthropicProvider, ScriptedTransport]:
    config = read_config(
        AnthropicConfig,
        {"api_key": "sk-test", "max_retries": 0, **options},
        subject="the test",
    )
    made = AnthropicProvider(config, TestCoordinator())
    made.transport = script = ScriptedTransport(*steps)
    return made, script


def _plays(data: bytes) -> HttpAnswer:
    return HttpAnswer(parts=(data,))


async def test_a_request_goes_to_the_messages_of_the_api(stream: Stream) -> None:
    provider, script = _provider(_plays(stream("text")))

    response = await provider.complete(ASKED)

    (request,) = script.requests
    assert str(request.url) == "https://api.anthropic.com/v1/messages"
    assert request.headers["x-api-key"] == "sk-test"
    assert request.headers["anthropic-version"] == "2026-10-21"
    assert response.text == "Hello! Größe: 🙂"


async def test_a_key_can_be_a_bearer_s(stream: Stream) -> None:
    provider, script = _provider(_plays(stream("text")), auth="bearer")

    await provider.complete(ASKED)

    assert script.requests[0].headers["authorization"] == "Bearer sk-test"
    assert "x-api-key" not in script.requests[0].headers


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:8080", "http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1/"],
)
async def test_an_address_may_have_the_version_or_not(
    stream: Stream, address: str
) -> None:
    provider, script = _provider(_plays(stream("text")), base_url=address)

    await provider.complete(ASKED)

    assert str(script.requests[0].url) == "http://127.0.0.1:8080/v1/messages"


async def test_request_with_sampling_is_sent_in_version_that_has_it(
    stream: Stream,
) -> None:
    provider, script = _provider(
        _plays(stream("text")), default_model="claude-haiku-4-5", temperature=0.3
    )

    await provider.complete(ASKED)

    assert script.requests[0].headers["anthropic-version"] == "2023-06-01"


async def test_what_cannot_be_given_is_in_the_answer(stream: Stream) -> None:
    provider, _ = _provider(_plays(stream("text")), temperature=0.3)

    response = await provider.complete(ASKED)

    assert response.degradation is not None
    assert response.degradation.requested == "temperature 0.3"


async def test_tool_with_name_that_api_does_not_take_is_called_by_own(
    stream: Stream,
) -> None:
    tool = ToolSpec(name="weather.get", parameters={})
    first, script = _provider(_plays(stream("text")))
    await first.complete(ChatRequest(messages=ASKED.messages, tools=[tool]))
    body = script.bodies[0]
    assert isinstance(body, dict)
    offered = body["tools"][0]["name"]
    provider, _ = _provider(
        _plays(stream("tool").replace(b"get_weather", offered.encode()))
    )

    response = await provider.complete(
        ChatRequest(messages=ASKED.messages, tools=[tool])
    )

    assert [call.name for call in response.tool_calls or ()] == ["weather.get"]
    assert isinstance(response.content[1], ToolCallBlock)
    assert response.content[1].name == "weather.get"


# Pauses


async def test_an_answer_that_the_api_pauses_is_continued(stream: Stream) -> None:
    provider, script = _provider(_plays(stream("pause")), _plays(stream("tool")))

    async with provider.stream(ASKED) as items:
        seen = [item async for item in items]

    response = seen[-1]
    assert isinstance(response, ChatResponse)
    assert [block.type for block in response.content] == [
        "text",
        "server_tool_use",
        "text",
        "tool_call",
    ]
    assert response.finish_reason == "tool_calls"
    assert response.tool_calls is not None
    assert response.usage is not None
    assert response.usage.output_tokens == 15 + 89
    assert response.metadata is not None
    assert response.metadata["anthropic:parts"] == 2
    assert [
        item.index for item in seen if isinstance(item, TextDelta) and item.text
    ] == [0, 2, 2, 2]
    first, second = script.bodies
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert second["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Searching."},
                {
                    "type": "server_tool_use",
                    "id": "srvtoolu_01H",
                    "name": "web_search",
                    "input": {"query": "x"},
                },
            ],
        }
    ]


async def test_an_answer_is_not_continued_for_ever(stream: Stream) -> None:
    provider, script = _provider(*[_plays(stream("pause"))] * 3, max_continuations=2)

    response = await provider.complete(ASKED)

    assert len(script.requests) == 3
    assert response.finish_reason == "length"


async def test_continuing_can_be_turned_off(stream: Stream) -> None:
    provider, script = _provider(_plays(stream("pause")), max_continuations=0)

    response = await provider.complete(ASKED)

    assert len(script.requests) == 1
    assert response.metadata is not None
    assert response.metadata["anthropic:stop_reason"] == "pause_turn"


async def test_a_pause_without_a_word_is_the_end(stream: Stream) -> None:
    empty = stream("empty-answer").replace(b"end_turn", b"pause_turn")
    provider, script = _provider(_plays(empty))

    response = await provider.complete(ASKED)

    assert len(script.requests) == 1
    assert response.content == ()


# Waits


@pytest.mark.parametrize(
    ("options", "waited"), [({}, 10.0), ({"overloaded_delay_multiplier": 3}, 3.0)]
)
def test_an_overloaded_api_is_given_time(
    options: dict[str, JSONValue], waited: float, stream: Stream
) -> None:
    busy = json_answer(
        {
            "type": "error",
            "error": {"type": "overloaded_error", "message": "Overloaded"},
        },
        status=529,
    )

    async def ask() -> list[object]:
        provider, _ = _provider(
            busy, _plays(stream("text")), max_retries=1, retry_jitter=False, **options
        )
        recorder = EventRecorder.of(provider.coordinator.hooks, "provider:retry")
        await provider.complete(ASKED)
        return [data["delay"] for _, data in recorder.get_events()]

    assert VirtualClock().run(ask) == [waited]


async def test_an_error_in_a_stream_names_the_provider_and_the_model() -> None:
    broken = sse(
        (
            "error",
            {
                "type": "error",
                "error": {"type": "overloaded_error", "message": "Overloaded"},
            },
        )
    )
    provider, _ = _provider(_plays(broken))

    with pytest.raises(ProviderUnavailableError, match="Overloaded") as caught:
        await provider.complete(ASKED)

    assert (caught.value.provider, caught.value.model) == (
        "anthropic",
        "claude-sonnet-5-5",
    )


# Costs


async def test_an_answer_costs_what_the_configuration_says(stream: Stream) -> None:
    prices: JSONValue = {
        "claude-sonnet-5-5": {
            "input_per_million": "2",
            "output_per_million": "10",
            "cache_read_per_million": "0.1",
            "cache_write_per_million": "2.5",
        }
    }
    provider, _ = _provider(_plays(stream("thinking")), prices=prices)

    response = await provider.complete(ASKED)

    assert response.usage is not None
    # 20 × 2 + 60 × 10 + 2000 × 0.1 + 100 × 2.5, per million
    assert response.usage.cost_usd == Decimal("0.00109")


# Models


PAGE: JSONValue = {
    "data": [
        {
            "type": "model",
            "id": "claude-sonnet-5-5",
            "display_name": "Claude Sonnet 5.5",
            "lifecycle": "active",
            "max_input_tokens": 900_000,
            "max_tokens": 100_000,
            "capabilities": {
                "image_input": {"supported": True},
                "pdf_input": {"supported": False},
                "effort": None,
            },
        },
        {"type": "model", "id": "claude-old", "lifecycle": "retired"},
        {"type": "model"},
        "nonsense",
    ],
    "has_more": True,
    "last_id": "claude old",
}


async def test_models_are_listed_with_what_the_api_says_of_them() -> None:
    rest: JSONValue = {
        "data": [{"type": "model", "id": "claude-haiku-4-5-20251001"}],
        "has_more": False,
    }
    provider, script = _provider(json_answer(PAGE), json_answer(rest))

    models = await provider.list_models()

    assert models == [
        ModelInfo(
            id="claude-sonnet-5-5",
            display_name="Claude Sonnet 5.5",
            context_window=900_000,
            max_output_tokens=100_000,
            capabilities=("streaming", "tools", "thinking", "vision"),
        ),
        ModelInfo(
            id="claude-haiku-4-5-20251001",
            display_name="Claude Haiku 4.5",
            context_window=200_000,
            max_output_tokens=64_000,
            capabilities=("streaming", "tools", "thinking"),
        ),
    ]
    assert [str(request.url) for request in script.requests] == [
        "https://api.anthropic.com/v1/models?limit=1000",
        "https://api.anthropic.com/v1/models?limit=1000&after_id=claude%20old",
    ]
    assert script.requests[0].headers["anthropic-version"] == "2026-10-21"


@pytest.mark.parametrize("listing", [[], {"data": None}, {"has_more": True}])
async def test_a_list_that_is_none_is_empty(listing: JSONValue) -> None:
    provider, _ = _provider(json_answer(listing))

    assert await provider.list_models() == []


@pytest.mark.parametrize(
    ("options", "window", "output"),
    [
        pytest.param({}, 1_000_000, 64_000, id="default"),
        pytest.param(
            {"default_model": "claude-haiku-4-5"}, 200_000, 64_000, id="named"
        ),
        pytest.param(
            {"model": "claude-haiku-4-5", "max_tokens": 9}, 200_000, 9, id="limited"
        ),
        pytest.param(
            {
                "default_model": "mine",
                "enable_1m_context": True,
                "models": {"mine": {"has_long_context": True}},
            },
            1_000_000,
            64_000,
            id="long-context",
        ),
        pytest.param(
            {
                "default_model": "mine",
                "models": {"mine": {"context_window": 5_000, "max_output_tokens": 900}},
            },
            5_000,
            900,
            id="configured",
        ),
    ],
)
def test_the_info_has_the_windows_of_the_default_model(
    options: dict[str, JSONValue], window: int, output: int
) -> None:
    provider, _ = _provider(**options)

    defaults = provider.get_info().defaults

    assert (defaults["context_window"], defaults["max_output_tokens"]) == (
        window,
        output,
    )


def test_the_info_says_what_a_person_is_asked_for() -> None:
    info = _provider()[0].get_info()

    assert info.credential_env_vars == ("ANTHROPIC_API_KEY",)
    assert [field.id for field in info.config_fields] == [
        "api_key",
        "base_url",
        "default_model",
    ]


# Configuration


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("thinking_budget_tokens", 1023),
        ("thinking_budget_tokens", True),
        ("thinking_budget_buffer", -1),
        ("max_continuations", True),
        ("overloaded_delay_multiplier", 0.5),
        ("cache_ttl", "2h"),
        ("auth", "basic"),
        ("reasoning_effort", "heroic"),
        ("thinking_display", "loud"),
        ("enable_prompt_cashing", True),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_by_its_name(
    option: str, value: JSONValue
) -> None:
    with pytest.raises(ConfigError, match=option):
        _provider(**{option: value})


async def test_parameters_that_nobody_here_knows_go_along(stream: Stream) -> None:
    provider, script = _provider(
        _plays(stream("text")), extra_request_params={"service_tier": "standard_only"}
    )

    await provider.complete(ASKED)

    body = script.bodies[0]
    assert isinstance(body, dict)
    assert body["service_tier"] == "standard_only"


async def test_an_answer_goes_back_as_it_came(stream: Stream) -> None:
    provider, script = _provider(_plays(stream("server-tool")), _plays(stream("text")))
    response = await provider.complete(ASKED)
    stored = Message.from_dict(response.to_message())

    await provider.complete(
        ChatRequest(messages=[*ASKED.messages, stored, *ASKED.messages])
    )

    body = script.bodies[1]
    assert isinstance(body, dict)
    use, result, text = body["messages"][1]["content"][1:]
    assert use["input"] == {"query": "weather NYC today"}
    assert result["content"][0]["encrypted_content"] == "Ev0DCioIAxgCIiQ3NmU4ZmI4OC1k"
    assert text["citations"][0]["encrypted_index"] == "Eo8BCioIAhgBIiQyYjQ0"
    assert isinstance(stored.blocks[0], TextBlock)
