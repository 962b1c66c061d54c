"""The provider module `provider-azure-openai`: OpenAI's models on Azure, through the Responses API."""

from __future__ import annotations

from amplifier_module_provider_azure_openai.config import AzureConfig
from amplifier_module_provider_azure_openai.provider import AzureOpenAIProvider

__all__ = ["AzureConfig", "AzureOpenAIProvider"]
