"""The samples of the provider contract: the same calls and names, in a real session."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable

import pytest

from amplifier import ModuleCoordinator
from amplifier.testing import EventRecorder, create_test_session
from amplifier_sdk import (
    ChatRequest,
    ChatResponse,
    ConfigError,
    ModelInfo,
    Provider,
    ProviderInfo,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    Usage,
)
from amplifier_sdk.hookspecs import Config

logger = logging.getLogger(__name__)


class Client:
    def __init__(self) -> None:
        self.closings = 0

    async def close(self) -> None:
        self.closings += 1


class MyProvider:
    """The contract's `MyProvider`: its five members, and nothing else."""

    def __init__(self, api_key: str, config: Config) -> None:
        self.client = Client()
        self.config = config
        MADE.append(self)

    @property
    def name(self) -> str:
        return "my-provider"

    def get_info(self) -> ProviderInfo:
        return ProviderInfo(
            id="my-provider", display_name="Mine", credential_env_vars=["MY_API_KEY"]
        )

    async def list_models(self) -> list[ModelInfo]:
        return [
            ModelInfo(
                id="model-v1",
                display_name="Model v1",
                context_window=8192,
                max_output_tokens=1024,
            ),
        ]

    async def complete(self, request: ChatRequest, **kwargs: object) -> ChatResponse:
        return ChatResponse(
            content=[
                ThinkingBlock(thinking="hm", signature="sig_abc"),
                TextBlock(text=request.messages[-1].text[::-1]),
            ],
            usage=Usage(input_tokens=1, output_tokens=2, total_tokens=3),
            finish_reason="stop",
        )

    def parse_tool_calls(self, response: ChatResponse) -> list[ToolCall]:
        return list(response.tool_calls or ())


MADE: list[MyProvider] = []


async def mount(
    coordinator: ModuleCoordinator, config: Config
) -> Callable[[], Awaitable[None]] | None:
    api_key = config.get("api_key") or os.environ.get("MY_API_KEY")
    if not api_key:
        logger.warning("No API key - provider not mounted")
        return None

    provider = MyProvider(api_key=str(api_key), config=config)
    await coordinator.mount("providers", provider, name="my-provider")
    coordinator.register_contributor(
        "observability.events",
        "my-provider",
        lambda: ["my-provider:rate_limit", "my-provider:retry"],
    )

    async def cleanup() -> None:
        await provider.client.close()

    return cleanup


async def mount_and_return_it(
    coordinator: ModuleCoordinator, config: Config
) -> Provider:
    """As the contract says beside the sample: a returned provider is registered automatically."""
    return MyProvider(api_key="k", config=config)


CONFIG = {
    "provider": {"api_key": "${MY_API_KEY}", "default_model": "model-v1", "debug": True}
}


async def test_turn_is_answered_by_it_and_its_cleanup_runs_at_end() -> None:
    recorder = EventRecorder()

    async with create_test_session(
        provider=mount, hooks=[recorder], configs=CONFIG
    ) as session:
        assert list(session.coordinator.providers) == ["my-provider"]
        assert await session.execute("abc") == "cba"
        message = (await session.coordinator.context.get_messages())[-1]
        provider = MADE[-1]
        assert provider.client.closings == 0

    assert provider.client.closings == 1
    assert message["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig_abc"},
        {"type": "text", "text": "cba"},
    ]
    assert recorder.one("provider:response")["usage"] == Usage(
        input_tokens=1, output_tokens=2, total_tokens=3
    )


async def test_a_provider_that_is_returned_is_registered() -> None:
    async with create_test_session(provider=mount_and_return_it) as session:
        assert list(session.coordinator.providers) == ["my-provider"]


async def test_provider_without_key_is_skipped_and_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MY_API_KEY", raising=False)

    async with create_test_session(provider=mount) as session:
        assert session.coordinator.providers == {}
        assert session.failures == ()
        with pytest.raises(ConfigError, match="no provider is mounted"):
            await session.execute("abc")


async def test_the_protocol_of_the_sample_is_that_of_the_sdk() -> None:
    assert isinstance(MyProvider("k", {}), Provider)
    assert await MyProvider("k", {}).list_models() == [
        ModelInfo(
            id="model-v1",
            display_name="Model v1",
            context_window=8192,
            max_output_tokens=1024,
        )
    ]
