"""What is Azure's own: addresses, versions, deployments, credentials, filters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import httpx2
import pytest
from openai import AsyncAzureOpenAI, AsyncOpenAI
from openai.types.responses.response_input_item_param import Message as InputMessage

from amplifier.testing import TestCoordinator
from amplifier.testing.transport import (
    HttpAnswer,
    HttpStep,
    ScriptedTransport,
    json_answer,
    sse,
)
from amplifier_module_provider_azure_openai import AzureConfig, AzureOpenAIProvider
from amplifier_sdk.chat import ChatRequest
from amplifier_sdk.configuration import read_config
from amplifier_sdk.errors import (
    AuthenticationError,
    ConfigError,
    ContentFilterError,
    ProviderUnavailableError,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message

STREAMS: Final = Path(__file__).parent / "responses"
TEXT: Final = HttpAnswer(parts=((STREAMS / "good/text.sse").read_bytes(),))
KEY: Final = "0123456789abcdef"
ENDPOINT: Final = "https://acme.openai.azure.com"
HELLO: Final = ChatRequest(messages=[Message(role="user", content="Hello.")])
ITEM: Final[InputMessage] = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "Hello."}],
}


def azure(
    *steps: HttpStep, **options: JSONValue
) -> tuple[AzureOpenAIProvider, ScriptedTransport]:
    """Make a provider with a script, and the script."""
    values: JSONObject = {
        "azure_endpoint": ENDPOINT,
        "default_deployment": "our-gpt",
        "max_retries": 0,
        **options,
    }
    if not {"azure_ad_token", "credential", "api_key"} & set(values):
        values["api_key"] = KEY
    provider = AzureOpenAIProvider(
        read_config(AzureConfig, values, subject="configuration"), TestCoordinator()
    )
    provider.transport = script = ScriptedTransport(*steps)
    return provider, script


# -- the vendor's own library as the measure


@pytest.mark.parametrize("credential", ["api_key", "azure_ad_token"])
async def test_dated_request_is_one_that_vendors_own_library_sends(
    credential: str,
) -> None:
    theirs = ScriptedTransport(TEXT)
    async with httpx2.AsyncClient(transport=theirs) as http:
        client = AsyncAzureOpenAI(
            azure_endpoint=ENDPOINT,
            api_version="2025-04-01-preview",
            api_key=KEY if credential == "api_key" else None,
            azure_ad_token=KEY if credential == "azure_ad_token" else None,
            http_client=http,
        )
        stream = await client.responses.create(
            model="our-gpt", input=[ITEM], store=False, stream=True
        )
        await stream.close()
    provider, ours = azure(TEXT, api_version="2025-04-01-preview", **{credential: KEY})
    await provider.complete(HELLO)

    assert ours.bodies == theirs.bodies
    assert ours.requests[0].url == theirs.requests[0].url
    for name in ("authorization", "api-key"):
        assert ours.requests[0].headers.get(name) == theirs.requests[0].headers.get(
            name
        )


async def test_request_without_version_matches_vendors_library() -> None:
    theirs = ScriptedTransport(TEXT)
    async with httpx2.AsyncClient(transport=theirs) as http:
        client = AsyncOpenAI(
            base_url=f"{ENDPOINT}/openai/v1/", api_key=KEY, http_client=http
        )
        stream = await client.responses.create(
            model="our-gpt", input=[ITEM], store=False, stream=True
        )
        await stream.close()
    provider, ours = azure(TEXT)
    await provider.complete(HELLO)

    assert ours.bodies == theirs.bodies
    assert ours.requests[0].url == theirs.requests[0].url
    assert ours.requests[0].headers["api-key"] == KEY


# -- addresses


@pytest.mark.parametrize(
    ("endpoint", "version", "url"),
    [
        (ENDPOINT, None, f"{ENDPOINT}/openai/v1/responses"),
        (
            f"{ENDPOINT}/",
            "preview",
            f"{ENDPOINT}/openai/v1/responses?api-version=preview",
        ),
        (f"{ENDPOINT}/openai", None, f"{ENDPOINT}/openai/v1/responses"),
        (f"{ENDPOINT}/openai/v1/", None, f"{ENDPOINT}/openai/v1/responses"),
        (
            ENDPOINT,
            "2025-04-01-preview",
            f"{ENDPOINT}/openai/responses?api-version=2025-04-01-preview",
        ),
        (
            "https://gate.example/team",
            None,
            "https://gate.example/team/openai/v1/responses",
        ),
    ],
    ids=["resource", "preview", "root", "whole", "dated", "gateway"],
)
async def test_requests_go_where_the_endpoint_says(
    endpoint: str, version: str | None, url: str
) -> None:
    provider, script = azure(TEXT, azure_endpoint=endpoint, api_version=version)

    await provider.complete(HELLO)

    assert str(script.requests[0].url) == url


async def test_the_endpoint_can_stand_in_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://other.openai.azure.com")
    provider, script = azure(TEXT, azure_endpoint=None)

    await provider.complete(HELLO)

    assert script.requests[0].url.host == "other.openai.azure.com"


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"azure_endpoint": "acme"}, ["https://host/path"]),
        ({"azure_endpoint": None}, ["AZURE_OPENAI_ENDPOINT"]),
        ({"base_url": "https://b.example"}, ["azure_endpoint", "base_url"]),
        ({"api_version": "newest"}, ["api_version"]),
        ({"api_key": KEY, "credential": ["az"]}, ["api_key", "credential"]),
        ({"api_key": None}, ["AZURE_OPENAI_API_KEY"]),
        ({"credential": []}, ["credential"]),
        ({"credential": ["az"], "credential_timeout": 0}, ["credential_timeout"]),
    ],
    ids=[
        "no-address",
        "no-endpoint",
        "two-endpoints",
        "version",
        "two-credentials",
        "no-key",
        "no-command",
        "no-time",
    ],
)
def test_what_cannot_work_is_said_at_the_mount(
    options: JSONObject, names: list[str]
) -> None:
    with pytest.raises(ConfigError) as raised:
        azure(**options)
    assert all(name in str(raised.value) for name in names)


# -- deployments


@pytest.mark.parametrize(
    ("model", "options", "deployment"),
    [
        ("gpt-5", {"deployment_mapping": {"gpt-5": "prod-5"}}, "prod-5"),
        ("gpt-4.1", {"deployment_mapping": {"gpt-5": "prod-5"}}, "our-gpt"),
        ("gpt-4.1", {"default_deployment": None}, "gpt-4.1"),
        (None, {}, "our-gpt"),
        (
            None,
            {"default_model": "gpt-5", "deployment_mapping": {"gpt-5": "prod-5"}},
            "prod-5",
        ),
    ],
    ids=["mapped", "default", "itself", "none-named", "default-model"],
)
async def test_a_model_is_asked_for_by_its_deployment(
    model: str | None, options: JSONObject, deployment: str
) -> None:
    provider, script = azure(TEXT, **options)

    await provider.complete(ChatRequest(messages=HELLO.messages, model=model))

    body = script.bodies[0]
    assert isinstance(body, dict)
    assert body["model"] == deployment
    assert ("reasoning" in body) == (deployment == "prod-5")


async def test_the_models_of_the_configuration_are_listed() -> None:
    provider, script = azure(
        default_model="gpt-4.1",
        deployment_mapping={"gpt-5": "prod-5", "gpt-4.1": "prod-4"},
    )

    assert [model.id for model in await provider.list_models()] == ["gpt-5", "gpt-4.1"]
    assert script.requests == []


def test_a_person_is_asked_for_endpoint_and_deployment() -> None:
    info = azure()[0].get_info()

    assert (info.id, info.display_name) == ("azure-openai", "Azure OpenAI")
    assert info.credential_env_vars == ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN")
    assert [field.id for field in info.config_fields] == [
        "api_key",
        "azure_endpoint",
        "default_deployment",
        "reasoning_effort",
    ]
    assert info.defaults["model"] == "our-gpt"


# -- credentials


def _sent(script: ScriptedTransport) -> list[Mapping[str, str]]:
    return [
        {
            name: request.headers[name]
            for name in ("authorization", "api-key")
            if name in request.headers
        }
        for request in script.requests
    ]


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({}, {"authorization": "Bearer token-of-the-environment"}),
        (
            {"azure_ad_token": "token-of-the-plan"},
            {"authorization": "Bearer token-of-the-plan"},
        ),
        ({"api_key": KEY}, {"api-key": KEY}),
    ],
    ids=["nothing-else", "token", "key"],
)
async def test_what_the_plan_gives_goes_before_the_environment(
    options: JSONObject, sent: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "token-of-the-environment")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "key-of-the-environment")
    provider, script = azure(TEXT, **{"api_key": None, **options})

    await provider.complete(HELLO)

    assert _sent(script) == [sent]


@pytest.mark.process
async def test_kept_token_that_is_refused_gives_way_to_new_one_once(
    tmp_path: Path,
) -> None:
    counter = tmp_path / "asked"
    command = [
        "sh",
        "-c",
        f"echo >>{counter}; wc -l <{counter} | tr -d ' ' | sed 's/^/token-/'",
    ]
    refused = json_answer(
        {"error": {"code": "401", "message": "Access denied."}}, status=401
    )
    steps = (TEXT, TEXT, refused, TEXT, refused, refused)
    provider, script = azure(
        *steps, credential=command, max_retries=3, min_retry_delay=0
    )

    for _ in range(3):
        await provider.complete(HELLO)
    with pytest.raises(AuthenticationError, match="Access denied"):
        await provider.complete(HELLO)

    tokens = [
        sent["authorization"].removeprefix("Bearer token-") for sent in _sent(script)
    ]
    assert tokens == ["1", "1", "1", "2", "2", "3"]


@pytest.mark.process
async def test_without_a_token_nothing_is_sent() -> None:
    provider, script = azure(
        TEXT, credential=["sh", "-c", "echo 'Please run az login' >&2; exit 1"]
    )

    with pytest.raises(AuthenticationError, match="Please run az login") as raised:
        await provider.complete(HELLO)
    assert (raised.value.provider, script.requests) == ("azure-openai", [])


@pytest.mark.process
async def test_a_command_has_the_seconds_that_it_is_given() -> None:
    provider, _ = azure(credential=["sleep", "300"], credential_timeout=0.05)

    with pytest.raises(AuthenticationError, match=r"after 0\.05 s"):
        await provider.complete(HELLO)


# -- what Azure answers


async def test_the_wait_is_told_in_milliseconds() -> None:
    refused = HttpAnswer(
        status=429, headers={"retry-after-ms": "20", "retry-after": "60"}
    )
    provider, script = azure(
        refused, TEXT, max_retries=1, min_retry_delay=0, retry_jitter=False
    )

    assert (await provider.complete(HELLO)).text
    assert len(script.requests) == 2


async def test_a_gateways_page_is_tried_again() -> None:
    page = HttpAnswer(
        status=403,
        headers={"content-type": "text/html"},
        parts=(b"<html>Forbidden</html>",),
    )
    provider, script = azure(page, TEXT, page, max_retries=1, min_retry_delay=0)

    assert (await provider.complete(HELLO)).text
    assert len(script.requests) == 2
    provider, _ = azure(page)
    with pytest.raises(ProviderUnavailableError, match="a gateway on the way"):
        await provider.complete(HELLO)


async def test_a_filtered_prompt_names_the_categories() -> None:
    result: JSONObject = {
        "hate": {"filtered": True, "severity": "medium"},
        "jailbreak": {"filtered": True, "detected": True},
        "violence": {"filtered": False, "severity": "safe"},
        "custom": "none",
    }
    error: JSONObject = {
        "code": "content_filter",
        "message": "Filtered.",
        "innererror": {"content_filter_result": result},
    }
    provider, _ = azure(json_answer({"error": error}, status=400))

    with pytest.raises(
        ContentFilterError, match=r"filtered: hate \(medium\), jailbreak$"
    ):
        await provider.complete(HELLO)


@pytest.mark.parametrize(
    ("found", "reported"),
    [
        ([{"blocked": False, "source_type": "prompt"}], True),
        ([], False),
        ("none", False),
        (None, False),
    ],
    ids=["some", "empty", "text", "absent"],
)
async def test_what_the_filters_found_is_told_with_the_answer(
    found: JSONValue, reported: bool
) -> None:
    response: JSONObject = {
        "id": "resp_1",
        "status": "completed",
        "output": [],
        "content_filters": found,
    }
    provider, _ = azure(
        HttpAnswer(parts=(sse({"type": "response.completed", "response": response}),))
    )

    metadata = (await provider.complete(HELLO)).metadata or {}

    assert metadata.get("azure:content_filters") == (found if reported else None)
