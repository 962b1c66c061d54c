"""Estimates of tokens, made once for each message as it is added."""

from __future__ import annotations

from typing import Final

from amplifier_sdk import MessageDict, Provider

__all__ = ["budget_of", "estimate"]

OVERHEAD: Final = 4
"""Tokens that a message's role and frame take."""

SAFETY_MARGIN: Final = 1_000
"""Tokens kept free of a provider's window, since these are estimates."""

CHARACTERS_PER_TOKEN: Final = 4


def estimate(message: MessageDict) -> int:
    """Estimate a message's tokens from the characters of its content, and of calls that stand only beside it.

    What is no text counts as Python writes it: as good a guess as JSON, and much faster.
    """
    content = message.get("content")
    characters = len(content if isinstance(content, str) else str(content))
    if "tool_calls" in message and not isinstance(content, (list, tuple)):
        characters += len(str(message["tool_calls"]))
    return OVERHEAD + characters // CHARACTERS_PER_TOKEN


def budget_of(provider: Provider | None, default: int) -> int:
    """Return how many tokens a request may have: the provider's window less its output and a margin."""
    if provider is None:
        return default
    try:
        defaults = provider.get_info().defaults
    except Exception:  # foreign code: a provider that cannot say what it is may still answer
        return default
    window, output = defaults.get("context_window"), defaults.get("max_output_tokens")
    if not isinstance(window, int) or not isinstance(output, int):
        return default
    margin = min(SAFETY_MARGIN, window // 8)
    return max(1, window - output - margin)
