"""How many tokens a request may have."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Final

from amplifier_kit.compaction.options import CompactionOptions
from amplifier_sdk.chat import ModelInfo
from amplifier_sdk.contracts import Provider

__all__ = ["budget_of"]

SAFETY_MARGIN: Final = 4_096
"""Tokens reserved in a provider's window: what hooks inject, and what a vendor adds."""

SMALL_WINDOW: Final = 8
"""The margin is at most this part of a window."""


def budget_of(provider: Provider | None, options: CompactionOptions) -> int:
    """Return the tokens that a request to a provider may have.

    The window is the one that the provider's `get_model_info()` names, if it has that method and it answers with
    a `ModelInfo`, else the one of its `get_info().defaults`; without any the budget is `max_tokens`. From the
    window go the reserve for the answer and a margin.
    """
    if provider is None:
        return options.max_tokens
    ask: Callable[[], object] | None = getattr(provider, "get_model_info", None)
    window = (None if ask is None else _model_window(ask)) or _default_window(provider)
    if window is None:
        return options.max_tokens
    size, answer = window
    margin = min(SAFETY_MARGIN, size // SMALL_WINDOW)
    return max(1, size - int(answer * options.output_reserve_fraction) - margin)


def _model_window(ask: Callable[[], object]) -> tuple[int, int] | None:
    if iscoroutinefunction(ask):  # a budget is worked out without waiting
        return None
    try:
        info = ask()
    except Exception:
        # foreign code: a provider that cannot say what it is may still answer
        return None
    if isinstance(info, ModelInfo):
        return (info.context_window, info.max_output_tokens)
    return None


def _default_window(provider: Provider) -> tuple[int, int] | None:
    try:
        defaults = provider.get_info().defaults
    except Exception:  # foreign code, as above
        return None
    size, answer = defaults.get("context_window"), defaults.get("max_output_tokens")
    if isinstance(size, int) and isinstance(answer, int):
        return (size, answer)
    return None
