"""Providers as a loop written by hand receives them: asking one is a provider call of the turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, cast

from amplifier.kernel.turn.provider_calls import AROUND_MODEL

if TYPE_CHECKING:
    from amplifier.kernel.handwritten.provider_calls import ReceivedProviderCaller
    from amplifier.kernel.turn.registry import HookRegistry
    from amplifier_sdk.chat import ChatResponse, ModelInfo, ProviderInfo, ToolCall
    from amplifier_sdk.contracts import Provider, StreamingProvider
    from amplifier_sdk.streaming import Delta

__all__ = ["ProviderProxy", "proxy_of", "unwrapped_provider"]


class ProviderProxy:
    """A provider whose `complete` goes through the turn that runs: decided on, limited, paid for, journaled.

    `name` is the one it is mounted under, which an `instance_id` of the plan may have given it.
    """

    __slots__ = ("_hooks", "_mounted_as", "provider")

    def __init__(self, provider: Provider, hooks: HookRegistry, name: str) -> None:
        self.provider: Provider = provider
        self._hooks = hooks
        self._mounted_as = name

    # Defined rather than passed on: whether an object fits a protocol is asked of its class.

    @property
    def name(self) -> str:
        """The provider's own name."""
        return self.provider.name

    def get_info(self) -> ProviderInfo:
        """Say what the provider is."""
        return self.provider.get_info()

    async def list_models(self) -> list[ModelInfo]:
        """List the models on offer."""
        return await self.provider.list_models()

    def parse_tool_calls(self, response: ChatResponse, /) -> list[ToolCall]:
        """Return the tool calls of an answer."""
        return self.provider.parse_tool_calls(response)

    async def complete(self, *request: object, **options: object) -> object:
        """Ask the provider what the loop asks, as a provider call of the turn."""
        return await self._calls.complete_received(
            self.provider, self._mounted_as, request, options
        )

    @property
    def _calls(self) -> ReceivedProviderCaller:
        # the turn that runs now: a loop may hold on to what it received in an earlier one
        return cast("ReceivedProviderCaller", self._hooks.host.provider_calls)

    def __getattr__(self, name: str) -> object:
        # the provider's own would leave the turn out
        if name == "stream":
            raise AttributeError(name)
        return getattr(self.provider, name)


class _StreamingProxy(ProviderProxy):
    """A provider that streams."""

    __slots__ = ()

    def stream(
        self, *request: object, **options: object
    ) -> AbstractAsyncContextManager[AsyncIterator[Delta | ChatResponse]]:
        """Open the answer to what the loop asks, as a provider call of the turn."""
        return self._calls.stream_received(
            cast("StreamingProvider", self.provider), self._mounted_as, request, options
        )


def proxy_of(provider: Provider, hooks: HookRegistry, name: str) -> Provider:
    """Return a proxy that has `stream` where the provider has, and no middleware wants the whole answer."""
    can_stream = getattr(provider, "stream", None) is not None
    if not can_stream or hooks.middleware(AROUND_MODEL) is not None:
        proxy = ProviderProxy(provider, hooks, name)
    else:
        proxy = _StreamingProxy(provider, hooks, name)
    return cast("Provider", proxy)


def unwrapped_provider(provider: object) -> Provider:
    """Return the provider itself, whether or not it is a proxy."""
    if isinstance(provider, ProviderProxy):
        return provider.provider
    return cast("Provider", provider)
