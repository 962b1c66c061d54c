"""The provider module `provider-anthropic`: Claude models over Anthropic's Messages API."""

from __future__ import annotations

from amplifier_module_provider_anthropic.config import AnthropicConfig
from amplifier_module_provider_anthropic.models import Model
from amplifier_module_provider_anthropic.provider import AnthropicProvider

__all__ = ["AnthropicConfig", "AnthropicProvider", "Model"]
