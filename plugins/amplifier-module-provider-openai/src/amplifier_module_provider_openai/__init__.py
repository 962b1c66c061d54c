"""The provider module `provider-openai`: OpenAI's models, through the Responses API."""

from __future__ import annotations

from amplifier_module_provider_openai.config import OpenAIConfig
from amplifier_module_provider_openai.provider import OpenAIProvider

__all__ = ["OpenAIConfig", "OpenAIProvider"]
