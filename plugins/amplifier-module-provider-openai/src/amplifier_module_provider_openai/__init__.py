"""The provider module `provider-openai`: OpenAI's models, through the Responses API."""

from __future__ import annotations

from amplifier_module_provider_openai.provider import OpenAIConfig, OpenAIProvider

__all__ = ["OpenAIConfig", "OpenAIProvider"]
