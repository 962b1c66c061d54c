"""The provider: requests out, answers in, and the turns that the API pauses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from typing import ClassVar
from urllib.parse import quote

from amplifier_kit.media.support import IMAGES, PDF, TEXT
from amplifier_kit.vendors import AnswerReader, Outgoing, VendorProvider
from amplifier_module_provider_anthropic.answers import Continuation, MessageReader
from amplifier_module_provider_anthropic.config import AnthropicConfig
from amplifier_module_provider_anthropic.faults import fault, reported_fault
from amplifier_module_provider_anthropic.models import (
    DEFAULT_MODEL,
    LONG_CONTEXT_WINDOW,
    capabilities,
    default_max_tokens,
    listed_models,
    model_of,
    next_page,
)
from amplifier_module_provider_anthropic.requests import VERSION, write_request
from amplifier_module_provider_anthropic.tools import tool_names
from amplifier_sdk import provider
from amplifier_sdk.chat import ChatRequest, ChatResponse, ModelInfo, ProviderInfo
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import LLMError
from amplifier_sdk.streaming import Delta

__all__ = ["AnthropicProvider"]


@provider
class AnthropicProvider(VendorProvider):
    """Answers with Claude models, over the Messages API of Anthropic or of a server that speaks it."""

    name = "anthropic"
    key_variable: ClassVar[str | None] = "ANTHROPIC_API_KEY"
    url_variable: ClassVar[str | None] = "ANTHROPIC_BASE_URL"
    public_url: ClassVar[str | None] = "https://api.anthropic.com"
    standard_model: ClassVar[str | None] = DEFAULT_MODEL
    protocol_media: ClassVar[tuple[str, ...]] = (*IMAGES, PDF, TEXT)
    has_text_documents: ClassVar[bool] = True

    def __init__(self, config: AnthropicConfig, coordinator: Coordinator) -> None:
        super().__init__(config, coordinator)
        self.settings = config

    def get_info(self) -> ProviderInfo:
        """Say what the provider is, and what its default model takes; no network."""
        id = self.settings.default_model or DEFAULT_MODEL
        model = model_of(id, self.settings.models)
        is_long = self.settings.enable_1m_context and model.has_long_context
        return ProviderInfo(
            id=self.name,
            display_name="Anthropic",
            credential_env_vars=("ANTHROPIC_API_KEY",),
            capabilities=capabilities(model),
            media=self.media,
            defaults={
                "model": id,
                "context_window": LONG_CONTEXT_WINDOW
                if is_long
                else model.context_window,
                "max_output_tokens": self.settings.max_tokens
                or default_max_tokens(model),
            },
            config_fields=self.config_fields(),
        )

    async def list_models(self) -> list[ModelInfo]:
        """Ask the API for its models.

        Raises:
            LLMError: it refused, or could not be reached.
        """
        models: list[ModelInfo] = []
        path: str | None = self._path("models?limit=1000")
        while path is not None:
            listing = await self.get(path)
            models += listed_models(listing, self.settings.models)
            after = next_page(listing)
            path = None
            if after is not None:
                path = self._path(f"models?limit=1000&after_id={quote(after, safe='')}")
        return models

    def write(self, request: ChatRequest, model: str) -> Outgoing:
        """Write a request; see `write_request`."""
        return write_request(request, model, self.settings, path=self._path("messages"))

    def reader(self, request: ChatRequest, model: str) -> AnswerReader:  # noqa: ARG002  # of the base class
        """Make the reader of one answer."""
        return MessageReader(
            names=tool_names(tool.name for tool in request.tools or ()),
            fail=partial(
                reported_fault, multiplier=self.settings.overloaded_delay_multiplier
            ),
        )

    def headers(self) -> Mapping[str, str]:
        """Return the version of the API that every call is made in."""
        return {"anthropic-version": VERSION}

    async def credentials(self) -> Mapping[str, str]:
        """Return the key, as the configuration says that it is sent."""
        key = ""
        if self.key is not None:
            key = self.key.reveal()
        if self.settings.auth == "bearer":
            return {"Authorization": f"Bearer {key}"}
        return {"x-api-key": key}

    def refusal(self, status: int, headers: Mapping[str, str], body: bytes) -> LLMError:
        """Return the error for an answer that is none; see `fault`."""
        return fault(
            status, headers, body, multiplier=self.settings.overloaded_delay_multiplier
        )

    async def deltas(
        self, request: ChatRequest
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        """Answer a request; an answer that the API pauses is sent back to be continued."""
        begun = Continuation(request=request)
        while True:
            # Closed here: left to the garbage collector, the connection would stay open
            # after a cancelled turn.
            async with aclosing(super().deltas(begun.next_request())) as items:
                async for item in items:
                    if not isinstance(item, ChatResponse):
                        yield begun.shifted(item)
                        continue
                    begun.add(item)
            # A bound, since each round is paid for and a tool of the API may never
            # finish.
            if not begun.is_paused or begun.rounds > self.settings.max_continuations:
                yield begun.answer()
                return

    def _path(self, path: str) -> str:
        # The address is often given with the version that the paths of the API begin with.
        if self.base_url.rstrip("/").endswith("/v1"):
            return path
        return f"v1/{path}"
