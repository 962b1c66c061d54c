"""Asking a provider: for its models, or for one tiny answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import anyio
import attrs

from amplifier.app.providers.details import alone, mounted
from amplifier.app.providers.entries import ProviderEntry
from amplifier.app.sessions.composition import Composition
from amplifier.app.sessions.opened import open_session
from amplifier_sdk.chat import ModelInfo
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["Answered", "ask_provider", "list_models"]

_PROMPT: Final = "Answer with the one word OK."
_TOKENS: Final = 64


@attrs.frozen(kw_only=True)
class Answered:
    """What became of a test: the answer, the model, the tokens, the cost in US dollars, the time in seconds."""

    text: str
    seconds: float
    spent: Mapping[str, JSONValue]


async def list_models(
    entry: ProviderEntry, composition: Composition
) -> list[ModelInfo]:
    """Ask a provider for its models.

    Raises:
        ConfigError: its configuration has problems.
        ModuleError: it could not be mounted.
        LLMError: the vendor refused, or could not be reached.
    """
    async with mounted(entry, composition) as provider:
        return sorted(await provider.list_models(), key=lambda model: model.id)


async def ask_provider(
    entry: ProviderEntry, composition: Composition, *, model: str | None = None
) -> Answered:
    """Take one tiny turn with a provider and return what it answered and cost.

    Args:
        entry: the provider.
        composition: what new sessions are made of.
        model: the model; default the provider's.

    Raises:
        ConfigError: its configuration has problems.
        ModuleError: it could not be mounted.
        LLMError: the vendor refused, or could not be reached.
    """
    loop: JSONObject = {
        "max_output_tokens": _TOKENS,
        **({"model": model} if model else {}),
    }
    async with open_session(alone(entry, composition, loop)) as opened:
        started = anyio.current_time()
        text = await opened.session.execute(_PROMPT)
        seconds = anyio.current_time() - started
        return Answered(
            text=text, seconds=seconds, spent=opened.session.spending.to_dict()
        )
