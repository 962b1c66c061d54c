"""Providers on either side of the boundary: the original's for the session, the session's for original modules."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol, cast

from amplifier.compat.conversion import (
    RequestWriter,
    native_description,
    native_request,
    native_response,
    original_call,
    original_info,
    original_model,
    original_response,
)
from amplifier.compat.original import message_models, models
from amplifier.kernel.handwritten.providers import unwrapped_provider
from amplifier_sdk import chat
from amplifier_sdk.contracts import Provider
from amplifier_sdk.errors import LLMError

__all__ = ["AdaptedProvider", "OriginalProvider", "ShownProvider"]


class OriginalProvider(Protocol):
    """What a provider of the original has."""

    def get_info(self) -> object:
        """Say what the provider is."""

    def list_models(self) -> Awaitable[Sequence[object]]:
        """List the models on offer."""

    def complete(self, request: object, /, **options: object) -> Awaitable[object]:
        """Answer one request."""

    def parse_tool_calls(self, response: object, /) -> Sequence[object]:
        """Return the calls of an answer."""


class _Complete(Protocol):
    """A provider's `complete` that takes an original loop's options."""

    async def __call__(
        self, request: chat.ChatRequest, /, **options: object
    ) -> chat.ChatResponse: ...


class AdaptedProvider:
    """A provider of the original as the session calls it."""

    def __init__(self, original: OriginalProvider) -> None:
        self.original: OriginalProvider = original
        self._writer = RequestWriter()

    @property
    def name(self) -> str:
        """The provider's name."""
        return str(getattr(self.original, "name", type(self.original).__name__))

    def get_info(self) -> chat.ProviderInfo:
        """Say what the provider is."""
        return native_description(self.original.get_info(), chat.ProviderInfo)

    async def list_models(self) -> list[chat.ModelInfo]:
        """List the models on offer."""
        listed = await self.original.list_models()
        return [native_description(model, chat.ModelInfo) for model in listed]

    async def complete(
        self, request: chat.ChatRequest, /, **options: object
    ) -> chat.ChatResponse:
        """Answer one request; the options are those that an original loop gives.

        Raises:
            LLMError: what came is no answer.
        """
        asked = self._writer.write(request)
        answer: object = await self.original.complete(asked, **options)
        if isinstance(answer, chat.ChatResponse):
            return answer
        if not isinstance(answer, message_models.ChatResponse):
            raise LLMError(
                f"Provider {self.name!r} answered with {type(answer).__name__}; it must be a ChatResponse",
                provider=self.name,
            )
        try:
            return native_response(answer, self.original.parse_tool_calls(answer))
        except ValueError as error:
            raise LLMError(
                f"Provider {self.name!r} answered with what cannot be read: {error}",
                provider=self.name,
            ) from error

    def parse_tool_calls(self, response: chat.ChatResponse, /) -> list[chat.ToolCall]:
        """Return the calls that the provider read of its answer."""
        return list(response.tool_calls or ())

    def __getattr__(self, name: str) -> object:
        """Return what else the provider has; its own way to stream is not the session's."""
        if name == "stream":
            raise AttributeError(name)
        return getattr(self.original, name)


class ShownProvider:
    """A provider of the session as modules of the original call it; they know no `stream`."""

    def __init__(self, provider: Provider) -> None:
        self.native: Provider = provider

    @property
    def name(self) -> str:
        """The provider's name."""
        return self.native.name

    def get_info(self) -> models.ProviderInfo:
        """Say what the provider is."""
        return original_info(self.native.get_info())

    async def list_models(self) -> list[models.ModelInfo]:
        """List the models on offer."""
        found = self.native.list_models()
        return [original_model(model) for model in await found]

    async def complete(
        self, request: message_models.ChatRequest, **options: object
    ) -> message_models.ChatResponse:
        """Answer one request; keywords that only providers of the original take reach no other."""
        asked = native_request(request)
        if isinstance(unwrapped_provider(self.native), AdaptedProvider):
            complete = cast("_Complete", self.native.complete)
            return original_response(await complete(asked, **options))
        return original_response(await self.native.complete(asked))

    def parse_tool_calls(
        self, response: message_models.ChatResponse
    ) -> list[message_models.ToolCall]:
        """Return the calls of an answer; a provider of the original reads its own."""
        provider = unwrapped_provider(self.native)
        if isinstance(provider, AdaptedProvider):
            calls = provider.original.parse_tool_calls(response)
            return cast("list[message_models.ToolCall]", list(calls or ()))
        if response.tool_calls is not None:
            return list(response.tool_calls)
        native = native_response(response, None)
        return [original_call(call) for call in self.native.parse_tool_calls(native)]

    def __getattr__(self, name: str) -> object:
        if name == "stream":
            raise AttributeError(name)
        return getattr(self.native, name)
