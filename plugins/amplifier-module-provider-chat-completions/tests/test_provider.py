"""The provider as a session mounts it: keys, addresses, models, errors in the stream."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

import attrs
import pytest

from amplifier.testing import TestCoordinator
from amplifier.testing.transport import HttpStep, ScriptedTransport, json_answer
from amplifier_kit.media.support import IMAGES, TEXT
from amplifier_kit.vendors import VendorConfig
from amplifier_module_provider_chat_completions import (
    ChatCompletionsConfig,
    ChatCompletionsProvider,
)
from amplifier_module_provider_chat_completions.media import MEDIA
from amplifier_sdk.chat import ChatRequest
from amplifier_sdk.configuration import read_config
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import Message

LOCAL = "http://127.0.0.1:8080/v1"


def provider(
    *steps: HttpStep, **options: JSONValue
) -> tuple[ChatCompletionsProvider, ScriptedTransport]:
    config = read_config(ChatCompletionsConfig, options, subject="configuration")
    made = ChatCompletionsProvider(config, TestCoordinator())
    made.transport = script = ScriptedTransport(*steps)
    return made, script


@pytest.fixture(autouse=True)
def without_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def test_openais_own_address_needs_openais_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="or the environment variable OPENAI_API_KEY"):
        provider()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    key = provider()[0].key
    assert key is not None
    assert key.reveal() == "sk-openai"


def test_openais_key_goes_to_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")

    made, _ = provider(base_url="https://openrouter.example/api/v1")

    assert made.key is None
    assert made.get_info().credential_env_vars == ()


def test_another_vendors_key_has_a_variable_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ConfigError, match="ROUTER_KEY"):
        provider(
            base_url="https://openrouter.example/api/v1", key_variable="ROUTER_KEY"
        )
    monkeypatch.setenv("ROUTER_KEY", "router")
    made, _ = provider(
        base_url="https://openrouter.example/api/v1", key_variable="ROUTER_KEY"
    )
    assert made.key is not None
    assert made.get_info().credential_env_vars == ("ROUTER_KEY",)


def test_address_of_environment_shares_environments_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example/v1")
    assert provider()[0].key is None
    monkeypatch.setenv("OPENAI_API_KEY", "sk-gateway")
    made, _ = provider()

    assert made.base_url == "https://gateway.example/v1"
    assert made.key is not None


def test_it_says_where_it_asks_and_what_its_model_takes() -> None:
    plain = provider(base_url=LOCAL)[0].get_info()
    reported = provider(
        base_url=LOCAL, model="qwen", context_window=4096, max_tokens=512
    )[0].get_info()

    assert plain.display_name == "Chat completions at 127.0.0.1"
    assert dict(plain.defaults) == {
        "context_window": 128_000,
        "max_output_tokens": 8192,
    }
    assert dict(reported.defaults) == {
        "model": "qwen",
        "context_window": 4096,
        "max_output_tokens": 512,
    }
    assert (
        provider(base_url=LOCAL, context_window=4096)[0]
        .get_info()
        .defaults["max_output_tokens"]
        == 1024
    )


def test_a_window_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="a whole number from 512"):
        provider(base_url=LOCAL, context_window=0)


async def test_models_are_listed_with_what_the_server_tells_of_them() -> None:
    listing: JSONValue = {
        "data": [
            {
                "id": "router",
                "name": "Router",
                "context_length": 9000,
                "top_provider": {"max_completion_tokens": 700},
            },
            {"id": "vllm", "max_model_len": 8000},
            {"id": "groq", "context_window": 7000, "max_completion_tokens": 90_000},
            {"id": "llama", "meta": {"n_ctx_train": 6000}},
            {"id": "silent"},
            {"id": ""},
            "odd",
        ]
    }
    made, script = provider(
        json_answer(listing), json_answer({"data": None}), base_url=LOCAL, model="mine"
    )

    models = await made.list_models()

    assert [
        (model.id, model.context_window, model.max_output_tokens) for model in models
    ] == [
        ("router", 9000, 700),
        ("vllm", 8000, 8000),
        ("groq", 7000, 7000),
        ("llama", 6000, 6000),
        ("silent", 128_000, 8192),
        ("mine", 128_000, 8192),
    ]
    assert models[0].display_name == "Router"
    assert script.requests[0].url.path == "/v1/models"
    assert [model.id for model in await made.list_models()] == ["mine"]


async def test_configuration_tells_of_models_that_server_does_not() -> None:
    made, _ = provider(
        json_answer([{"id": "silent"}]), base_url=LOCAL, context_window=2048
    )

    (model,) = await made.list_models()

    assert model.context_window == 2048


def test_the_longest_answer_has_the_name_that_the_server_knows() -> None:
    request = ChatRequest(
        messages=[Message(role="user", content="Hi")], max_output_tokens=5
    )

    def fields(**options: JSONValue) -> set[str]:
        return set(provider(**options)[0].write(request, "m").body) & {
            "max_tokens",
            "max_completion_tokens",
        }

    assert fields(base_url=LOCAL) == {"max_tokens"}
    assert fields(api_key="sk-1234567") == {"max_completion_tokens"}
    assert fields(base_url=LOCAL, max_tokens_field="max_completion_tokens") == {
        "max_completion_tokens"
    }


def test_openai_s_server_is_given_the_conversation_s_cache_key() -> None:
    request = ChatRequest(
        messages=[Message(role="user", content="Hi")], conversation_id="talk-7"
    )

    def key(**options: JSONValue) -> object:
        return provider(**options)[0].write(request, "m").body.get("prompt_cache_key")

    assert key(api_key="sk-1234567") == "talk-7"
    assert key(base_url=LOCAL) is None


ALL: Final = frozenset(MEDIA)
SEEING: Final = {"id": "sees", "architecture": {"input_modalities": ["text", "image"]}}
BLIND: Final = {"id": "blind", "architecture": {"input_modalities": ["text"]}}


@pytest.mark.parametrize(
    ("listing", "model", "taken"),
    [
        ([SEEING, BLIND], "sees", {*IMAGES, TEXT}),
        ([SEEING, BLIND], "blind", {TEXT}),
        ([SEEING, BLIND], "unlisted", ALL),
        ([BLIND], "whatever", {TEXT}),
        ([{"id": "m"}], "m", ALL),
        ([{"id": "m", "architecture": 5}], "m", ALL),
        (None, "m", ALL),
    ],
    ids=["sees", "blind", "unlisted", "only one", "unrecorded", "broken", "no list"],
)
async def test_servers_list_says_what_a_model_takes(
    listing: JSONValue, model: str, taken: Collection[str]
) -> None:
    status = 404 if listing is None else 200
    made, _ = provider(json_answer({"data": listing}, status=status), base_url=LOCAL)

    assert {*await made.media_of(model)} == {*taken}
    assert {*await made.media_of(model)} == {*taken}  # the server is asked once


async def test_openais_list_is_not_asked_since_it_says_nothing() -> None:
    made, _ = provider(api_key="sk-test")

    assert {*await made.media_of("gpt-5")} == ALL


def test_every_option_is_listed_in_the_readme() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8")

    shared = {field.name for field in attrs.fields(VendorConfig)}
    for field in attrs.fields(ChatCompletionsConfig):
        if field.name not in shared:
            assert f"| `{field.name}` |" in readme, field.name
