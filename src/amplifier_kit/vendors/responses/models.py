"""What is known of OpenAI's models, by the beginning of their names; as of November 2026."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

__all__ = ["ModelFacts", "facts_of", "is_listed"]


@attrs.frozen(kw_only=True)
class ModelFacts:
    """What a request to a model must know of it.

    Args:
        context_window: tokens of input and output together.
        max_output_tokens: the most that one answer can have, its reasoning included.
        is_reasoning: whether it reasons before it answers: such a model takes an effort and no temperature.
        is_long: whether prompts of more than 272,000 tokens cost more, all of their tokens.
        is_known: whether the table has the model.
    """

    context_window: int
    max_output_tokens: int
    is_reasoning: bool = False
    is_long: bool = False
    is_known: bool = True


_GPT_5: Final = ModelFacts(
    context_window=400_000, max_output_tokens=128_000, is_reasoning=True
)
_LONG: Final = ModelFacts(
    context_window=1_050_000, max_output_tokens=128_000, is_reasoning=True, is_long=True
)
_CHAT: Final = ModelFacts(context_window=128_000, max_output_tokens=16_384)
_O_SERIES: Final = ModelFacts(
    context_window=200_000, max_output_tokens=100_000, is_reasoning=True
)
_UNKNOWN: Final = ModelFacts(
    context_window=128_000, max_output_tokens=16_384, is_known=False
)

_TABLE: Final[Mapping[str, ModelFacts]] = {
    "codex-mini": _O_SERIES,
    "gpt-3.5-turbo": ModelFacts(context_window=16_385, max_output_tokens=4_096),
    "gpt-4": ModelFacts(context_window=8_192, max_output_tokens=4_096),
    "gpt-4-turbo": ModelFacts(context_window=128_000, max_output_tokens=4_096),
    "gpt-4.1": ModelFacts(context_window=1_047_576, max_output_tokens=32_768),
    "gpt-4o": _CHAT,
    "gpt-5": _GPT_5,
    "gpt-5-chat": _CHAT,
    "gpt-5.1-chat": _CHAT,
    "gpt-5.2-chat": _CHAT,
    "gpt-5.3-chat": _CHAT,
    "gpt-5.4": _LONG,
    "gpt-5.4-mini": _GPT_5,
    "gpt-5.4-nano": _GPT_5,
    "gpt-5.5": ModelFacts(
        context_window=1_000_000,
        max_output_tokens=128_000,
        is_reasoning=True,
        is_long=True,
    ),
    "gpt-5.6": _LONG,
    "gpt-6": _LONG,
    "gpt-oss": ModelFacts(
        context_window=131_072, max_output_tokens=131_072, is_reasoning=True
    ),
    "o1": _O_SERIES,
    "o3": _O_SERIES,
    "o4-mini": _O_SERIES,
}
_LONGEST_FIRST: Final = tuple(sorted(_TABLE, key=len, reverse=True))

_OTHER_USES: Final = (
    "audio",
    "image",
    "instruct",
    "live",
    "realtime",
    "search",
    "transcribe",
    "tts",
)
"""Parts of names of models that this API does not serve with text."""


def facts_of(model: str) -> ModelFacts:
    """Return what is known of a model; of one that the table does not have, careful guesses."""
    name = model.removeprefix("ft:").lower()
    return next(
        (_TABLE[known] for known in _LONGEST_FIRST if name.startswith(known)), _UNKNOWN
    )


def is_listed(model: str) -> bool:
    """Tell whether a model is one for conversations."""
    return facts_of(model).is_known and not any(use in model for use in _OTHER_USES)
