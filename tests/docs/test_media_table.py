"""The page on media lists what the providers' code says that they take."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from amplifier.testing import ScriptedProvider
from amplifier_kit.media.support import EVERY
from amplifier_module_provider_anthropic import AnthropicProvider
from amplifier_module_provider_azure_openai import AzureOpenAIProvider
from amplifier_module_provider_chat_completions import ChatCompletionsProvider
from amplifier_module_provider_local import LocalConfig, LocalProvider
from amplifier_module_provider_ollama import OllamaProvider
from amplifier_module_provider_openai import OpenAIProvider

ROOT: Final = Path(__file__).parents[2]
DECLARED: Final = {
    "anthropic": AnthropicProvider.protocol_media,
    "azure-openai": AzureOpenAIProvider.protocol_media,
    "chat-completions": ChatCompletionsProvider.protocol_media,
    "local": LocalProvider(LocalConfig()).get_info().media,
    "ollama": OllamaProvider.protocol_media,
    "openai": OpenAIProvider.protocol_media,
    "scripted": ScriptedProvider().get_info().media,
}


def rows() -> dict[str, tuple[str, ...]]:
    """Return the media types of each provider in the page's table."""
    page = (ROOT / "docs" / "how-to" / "media.md").read_text("utf-8")
    _, _, table = page.partition("| provider | media types |\n| --- | --- |\n")
    found: dict[str, tuple[str, ...]] = {}
    for row in table.partition("\n\n")[0].splitlines():
        providers, types = row.strip("| ").split(" | ")
        listed = EVERY if types == "all" else tuple(re.findall(r"`(\S+)`", types))
        found |= dict.fromkeys(re.findall(r"`(\S+)`", providers), listed)
    return found


def test_the_page_lists_every_provider() -> None:
    assert sorted(rows()) == sorted(DECLARED)


@pytest.mark.parametrize("provider", DECLARED)
def test_the_page_lists_what_the_provider_declares(provider: str) -> None:
    assert rows()[provider] == DECLARED[provider]
