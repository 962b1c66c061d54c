"""The models that a server lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from amplifier_kit.open_data import as_list
from amplifier_kit.vendors import read_tokens
from amplifier_module_provider_chat_completions.config import ChatCompletionsConfig
from amplifier_sdk.chat import ModelInfo
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["read_models"]

_WINDOWS: Final = (
    "context_length",
    "max_model_len",
    "context_window",
    "max_context_length",
)
_OUTPUTS: Final = ("max_completion_tokens", "max_output_tokens", "max_output_length")


def read_models(listing: JSONValue, config: ChatCompletionsConfig) -> list[ModelInfo]:
    """Read a listing; the default model is among them, also when the server does not list it.

    Args:
        listing: what the server sent.
        config: describes models that the server does not.
    """
    found = {model.id: model for model in _models(listing, config)}
    if config.default_model is not None and config.default_model not in found:
        found[config.default_model] = _model(config.default_model, {}, config)
    return list(found.values())


def _models(listing: JSONValue, config: ChatCompletionsConfig) -> Iterator[ModelInfo]:
    data = listing.get("data") if isinstance(listing, Mapping) else listing
    for entry in as_list(data):
        if isinstance(entry, Mapping) and isinstance(id := entry.get("id"), str) and id:
            yield _model(id, entry, config)


def _model(
    id: str, entry: Mapping[str, JSONValue], config: ChatCompletionsConfig
) -> ModelInfo:
    takes = (
        _first(entry, _WINDOWS)
        or read_tokens(entry.get("meta"), "n_ctx_train")
        or config.context_window
    )
    writes = (
        _first(entry, _OUTPUTS)
        or _first(entry.get("top_provider"), _OUTPUTS)
        or config.longest_answer
    )
    name = entry.get("name")
    return ModelInfo(
        id=id,
        display_name=name if isinstance(name, str) else id,
        context_window=takes,
        # Some servers report an output limit that is larger than the window.
        max_output_tokens=min(writes, takes),
        capabilities=("streaming", "tools"),
    )


def _first(entry: JSONValue, keys: tuple[str, ...]) -> int | None:
    return next((count for key in keys if (count := read_tokens(entry, key))), None)
