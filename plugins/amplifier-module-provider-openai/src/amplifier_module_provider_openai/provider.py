"""The provider: OpenAI's address, key and models, and what it has beside the API that others speak too."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import attrs

from amplifier_kit.open_data import as_object
from amplifier_kit.vendors.addresses import is_loopback
from amplifier_kit.vendors.responses import (
    ResponsesConfig,
    ResponsesProvider,
    is_listed,
)
from amplifier_sdk import provider
from amplifier_sdk.chat import ModelInfo
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import StreamError

__all__ = ["OpenAIConfig", "OpenAIProvider"]


@provider
class OpenAIProvider(ResponsesProvider):
    """Answers with OpenAI's models, or with those of a server that speaks their API."""

    name = "openai"
    title = "OpenAI"
    key_variable: ClassVar[str | None] = "OPENAI_API_KEY"
    url_variable: ClassVar[str | None] = "OPENAI_BASE_URL"
    public_url: ClassVar[str | None] = "https://api.openai.com/v1"
    standard_model: ClassVar[str | None] = "gpt-6.1-sol"
    price_vendor: ClassVar[str | None] = "openai"

    def __init__(self, config: OpenAIConfig, coordinator: Coordinator) -> None:
        super().__init__(config, coordinator)
        self._own: Final = config

    def needs_key(self) -> bool:
        """Tell whether a key must be there: a server on this machine needs none."""
        return not is_loopback(self.base_url)

    async def credentials(self) -> Mapping[str, str]:
        """Return the key, and the organisation and project that are billed."""
        billed = {
            "OpenAI-Organization": self._own.organization
            or os.environ.get("OPENAI_ORG_ID"),
            "OpenAI-Project": self._own.project or os.environ.get("OPENAI_PROJECT_ID"),
        }
        return {
            **await super().credentials(),
            **{name: value for name, value in billed.items() if value},
        }

    async def list_models(self) -> list[ModelInfo]:
        """List the models that the account may use, by name.

        Raises:
            LLMError: they cannot be had.
        """
        answer = await self.get("models")
        found = as_object(answer).get("data")
        if not isinstance(found, Sequence) or isinstance(found, str):
            raise StreamError(
                "The vendor sent what is no list of models", provider=self.mounted_name
            )
        names = {
            name
            for model in found
            if isinstance(model, Mapping) and isinstance(name := model.get("id"), str)
        }
        if self._own.filtered is None:
            is_filtered = self.base_url == self.public_url
        else:
            is_filtered = self._own.filtered
        return [
            self.described(name)
            for name in sorted(names)
            if not is_filtered or is_listed(name)
        ]


@attrs.frozen(kw_only=True)
class OpenAIConfig(ResponsesConfig):
    """What `config` of the plan may hold beside what the API has.

    Args:
        organization: the organisation that is billed; default `OPENAI_ORG_ID`, else the key's.
        project: the project that is billed; default `OPENAI_PROJECT_ID`, else the key's.
        filtered: whether `list_models` leaves out models that are not for conversations; default at OpenAI's own
            address alone, where their names are known.
    """

    organization: str | None = None
    project: str | None = None
    filtered: bool | None = None
