"""The provider: the chat protocol as its many servers speak it."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import ClassVar, Final
from urllib.parse import urlsplit

from amplifier_kit.vendors import Outgoing, VendorProvider
from amplifier_kit.vendors.refusals import status_of
from amplifier_module_provider_chat_completions.answers import ChatAnswer
from amplifier_module_provider_chat_completions.config import ChatCompletionsConfig
from amplifier_module_provider_chat_completions.media import (
    MEDIA,
    Modalities,
    read_modalities,
    taken_media,
)
from amplifier_module_provider_chat_completions.models import read_models
from amplifier_module_provider_chat_completions.requests import write_request
from amplifier_sdk import provider
from amplifier_sdk.chat import ChatRequest, ModelInfo, ProviderInfo
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import LLMError

__all__ = ["ChatCompletionsProvider"]

_OPENAI: Final = "api.openai.com"
_KEY: Final = "OPENAI_API_KEY"


@provider
class ChatCompletionsProvider(VendorProvider):
    """Answers with the models of a server that speaks OpenAI's chat protocol."""

    name = "chat-completions"
    key_variable: ClassVar[str | None] = _KEY
    url_variable: ClassVar[str | None] = "OPENAI_BASE_URL"
    public_url: ClassVar[str | None] = "https://api.openai.com/v1"
    protocol_media: ClassVar[tuple[str, ...]] = MEDIA
    fetched_media: ClassVar[frozenset[str]] = frozenset({"image"})

    def __init__(self, config: ChatCompletionsConfig, coordinator: Coordinator) -> None:
        self.settings = config
        self._modalities: Modalities | None = None
        super().__init__(config, coordinator)

    def get_info(self) -> ProviderInfo:
        """Say what the provider is, with the model and the window of its configuration."""
        info, config = super().get_info(), self.settings
        return ProviderInfo(
            id=info.id,
            display_name=f"Chat completions at {urlsplit(self.base_url).hostname}",
            credential_env_vars=info.credential_env_vars,
            capabilities=("streaming", "tools", "json_mode"),
            media=self.media,
            defaults={
                **info.defaults,
                "context_window": config.context_window,
                "max_output_tokens": config.longest_answer,
            },
            config_fields=info.config_fields,
        )

    async def list_models(self) -> list[ModelInfo]:
        """Ask the server for its models.

        Raises:
            LLMError: it refused, or could not be reached.
        """
        return read_models(await self.get("models"), self.settings)

    async def media_of(self, model: str) -> Collection[str]:
        """Return the media types that a model takes: by the server's list of models, which is asked for once.

        A server whose list says nothing of it is believed to take all that the protocol has.
        """
        # OpenAI's list says nothing of it
        if self._modalities is None and not self._is_openai:
            try:
                self._modalities = read_modalities(await self.get("models"))
            except LLMError:  # not every server has such a list
                self._modalities = {}
        listed = self._modalities or {}
        known = listed.get(model, listed.get(""))
        return self.media if known is None else taken_media(self.media, known)

    def write(self, request: ChatRequest, model: str) -> Outgoing:
        """Write a request; see `write_request`."""
        return write_request(
            request,
            model,
            self.settings,
            limit_field=self._limit_field,
            takes_cache_key=self._is_openai,
        )

    def reader(self, request: ChatRequest, model: str) -> ChatAnswer:  # noqa: ARG002  # of the base class
        """Make the reader of one answer."""
        return ChatAnswer(fail=self._reported)

    def key_source(self) -> str | None:
        """Return the environment variable of the key: OpenAI's is for no other server that the configuration names."""
        if self.settings.key_variable is not None:
            return self.settings.key_variable
        # A key that is sent to an address which a project's plan names would be given
        # away.
        is_openai = self._is_openai or self.base_url == os.environ.get(
            "OPENAI_BASE_URL"
        )
        if is_openai:
            return _KEY
        return None

    def needs_key(self) -> bool:
        """Tell whether the server wants a key for sure: OpenAI's does, others may not."""
        return self._is_openai or self.settings.key_variable is not None

    @property
    def _is_openai(self) -> bool:
        return urlsplit(self.base_url).hostname == _OPENAI

    @property
    def _limit_field(self) -> str:
        return self.settings.max_tokens_field or (
            "max_completion_tokens" if self._is_openai else "max_tokens"
        )

    def _reported(self, data: str) -> LLMError:
        """Return the error that an event reports."""
        return self.refusal(status_of(data), {}, data.encode("utf-8", "replace"))
