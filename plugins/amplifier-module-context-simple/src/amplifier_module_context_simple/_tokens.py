"""Estimates of tokens, made once for each message as it is added."""

from __future__ import annotations

import json
from typing import Final

from amplifier_sdk import MessageDict, Provider

__all__ = ["budget_of", "estimate"]

OVERHEAD: Final = 4
"""Tokens that a message's role and frame take."""

SAFETY_MARGIN: Final = 1_000
"""Tokens kept free of a provider's window, since these are estimates."""

CHARACTERS_PER_TOKEN: Final = 4


def estimate(message: MessageDict) -> int:
    """Estimate a message's tokens from the length of its JSON, without its metadata."""
    content = message.get("content")
    characters = len(content) if isinstance(content, str) else len(json.dumps(content, default=str))
    return OVERHEAD + characters // CHARACTERS_PER_TOKEN


def budget_of(provider: Provider | None, default: int) -> int:
    """Return how many tokens a request may have: the provider's window less its output and a margin."""
    if provider is None:
        return default
    defaults = provider.get_info().defaults
    window, output = defaults.get("context_window"), defaults.get("max_output_tokens")
    if not isinstance(window, int) or not isinstance(output, int):
        return default
    margin = min(SAFETY_MARGIN, window // 8)
    return max(1, window - output - margin)
