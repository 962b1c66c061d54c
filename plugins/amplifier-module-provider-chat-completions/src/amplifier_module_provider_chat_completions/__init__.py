"""A provider for every server that speaks OpenAI's chat protocol."""

from __future__ import annotations

from amplifier_module_provider_chat_completions.config import ChatCompletionsConfig
from amplifier_module_provider_chat_completions.provider import ChatCompletionsProvider

__all__ = ["ChatCompletionsConfig", "ChatCompletionsProvider"]
