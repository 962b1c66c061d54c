"""What is OpenAI's own: the address, the key, who is billed, the models."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Final

import httpx2
import pytest
from openai import AsyncOpenAI
from openai.types.responses.response_input_item_param import Message as InputMessage

from amplifier.testing import TestCoordinator
from amplifier.testing.transport import (
    HttpAnswer,
    HttpStep,
    ScriptedTransport,
    json_answer,
)
from amplifier_module_provider_openai import OpenAIConfig, OpenAIProvider
from amplifier_sdk.chat import ChatRequest, ToolSpec
from amplifier_sdk.configuration import read_config
from amplifier_sdk.errors import ConfigError, StreamError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message

STREAMS: Final = Path(__file__).parent / "responses"
TEXT: Final = HttpAnswer(parts=((STREAMS / "good/text.sse").read_bytes(),))
KEY: Final = "sk-proj-0123456789abcdef"
HELLO: Final = ChatRequest(messages=[Message(role="user", content="Hello.")])
ADD: Final[JSONObject] = {"type": "object", "properties": {"a": {"type": "integer"}}}


def openai(
    *steps: HttpStep, **options: JSONValue
) -> tuple[OpenAIProvider, ScriptedTransport]:
    """Make a provider with a script, and the script."""
    config = read_config(
        OpenAIConfig,
        {"api_key": KEY, "max_retries": 0, **options},
        subject="configuration",
    )
    provider = OpenAIProvider(config, TestCoordinator())
    provider.transport = script = ScriptedTransport(*steps)
    return provider, script


async def test_request_is_one_that_vendors_own_library_sends() -> None:
    theirs = ScriptedTransport(TEXT)
    message: InputMessage = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Hello."}],
    }
    async with httpx2.AsyncClient(transport=theirs) as http:
        client = AsyncOpenAI(
            api_key=KEY, organization="org-1", project="proj-1", http_client=http
        )
        stream = await client.responses.create(
            model="gpt-6.1-sol",
            instructions="Be brief.",
            input=[message],
            tools=[
                {
                    "type": "function",
                    "name": "add",
                    "description": "Add.",
                    "parameters": {**ADD},
                    "strict": False,
                }
            ],
            tool_choice={"type": "function", "name": "add"},
            parallel_tool_calls=False,
            max_output_tokens=256,
            reasoning={"effort": "low", "summary": "auto"},
            include=["reasoning.encrypted_content"],
            text={
                "format": {"type": "json_schema", "name": "answer", "schema": {**ADD}}
            },
            service_tier="flex",
            store=False,
            stream=True,
        )
        await stream.close()
    provider, ours = openai(
        TEXT,
        organization="org-1",
        project="proj-1",
        parallel_tool_calls=False,
        service_tier="flex",
    )
    await provider.complete(
        ChatRequest(
            messages=[Message(role="system", content="Be brief."), *HELLO.messages],
            tools=[ToolSpec(name="add", description="Add.", parameters=ADD)],
            tool_choice={"type": "tool", "name": "add"},
            max_output_tokens=256,
            reasoning_effort="low",
            response_format={"type": "json_schema", "schema": ADD},
        )
    )

    assert ours.bodies == theirs.bodies
    assert ours.requests[0].url == theirs.requests[0].url
    for name in (
        "authorization",
        "content-type",
        "openai-organization",
        "openai-project",
    ):
        assert ours.requests[0].headers[name] == theirs.requests[0].headers[name]


async def test_who_is_billed_can_stand_in_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-2")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-2")
    provider, script = openai(TEXT, project="proj-1")

    await provider.complete(HELLO)

    headers = script.requests[0].headers
    assert (headers["openai-organization"], headers["openai-project"]) == (
        "org-2",
        "proj-1",
    )


async def test_nobody_is_named_who_is_not_given() -> None:
    provider, script = openai(TEXT)

    await provider.complete(HELLO)

    assert not {"openai-organization", "openai-project"} & set(
        script.requests[0].headers
    )


async def test_an_answer_has_its_cost() -> None:
    provider, _ = openai(
        TEXT,
        prices={"gpt-6.1-sol": {"input_per_million": "2", "output_per_million": "10"}},
    )

    usage = (await provider.complete(HELLO)).usage

    assert usage is not None
    assert usage.cost_usd == Decimal("0.000192")


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:8080/v1", "http://localhost:8080/v1"]
)
async def test_a_server_on_this_machine_needs_no_key(address: str) -> None:
    provider, script = openai(TEXT, api_key=None, base_url=address)

    await provider.complete(HELLO)

    assert str(script.requests[0].url) == f"{address}/responses"
    assert "authorization" not in script.requests[0].headers


def test_any_other_server_needs_a_key() -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        openai(api_key=None, base_url="https://proxy.example/v1")


# -- models


def _models(*names: JSONValue) -> HttpAnswer:
    return json_answer(
        {
            "object": "list",
            "data": [{"id": name, "object": "model", "created": 1} for name in names],
        }
    )


async def test_models_for_conversations_are_listed_by_name() -> None:
    provider, script = openai(
        _models("whisper-1", "gpt-5-mini", "gpt-4o-audio-preview", "gpt-4.1", None)
    )

    models = await provider.list_models()

    assert [(model.id, model.context_window) for model in models] == [
        ("gpt-4.1", 1_047_576),
        ("gpt-5-mini", 400_000),
    ]
    assert ["reasoning" in model.capabilities for model in models] == [False, True]
    assert str(script.requests[0].url) == "https://api.openai.com/v1/models"


@pytest.mark.parametrize(
    ("options", "listed"),
    [
        ({}, ["gpt-5"]),
        ({"filtered": False}, ["gpt-5", "my-model"]),
        ({"base_url": "https://proxy.example/v1"}, ["gpt-5", "my-model"]),
        ({"base_url": "https://proxy.example/v1", "filtered": True}, ["gpt-5"]),
    ],
    ids=["openai", "openai-unfiltered", "other", "other-filtered"],
)
async def test_other_servers_models_are_all_listed(
    options: JSONObject, listed: list[str]
) -> None:
    provider, _ = openai(_models("my-model", "gpt-5"), **options)

    assert [model.id for model in await provider.list_models()] == listed


@pytest.mark.parametrize(
    "answer", [[], {"data": "none"}, {}], ids=["list", "text", "empty"]
)
async def test_what_is_no_list_of_models_is_an_error(answer: JSONValue) -> None:
    provider, _ = openai(json_answer(answer))

    with pytest.raises(StreamError, match="no list of models") as raised:
        await provider.list_models()
    assert raised.value.provider == "openai"


def test_the_provider_says_what_it_is() -> None:
    info = openai()[0].get_info()

    assert (info.id, info.display_name, info.credential_env_vars) == (
        "openai",
        "OpenAI",
        ("OPENAI_API_KEY",),
    )
    assert info.defaults == {
        "model": "gpt-6.1-sol",
        "context_window": 400_000,
        "max_output_tokens": 128_000,
    }
    assert KEY not in json.dumps([field.default for field in info.config_fields])
