"""What a server reports about its models: `GET /api/tags` and `POST /api/show`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from amplifier_kit.open_data import as_list, as_object
from amplifier_kit.vendors import read_tokens
from amplifier_module_provider_ollama.config import OllamaConfig
from amplifier_sdk.chat import ModelInfo
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["UNKNOWN", "Abilities", "model_info", "model_names", "read_abilities"]

_CAPABILITIES: Final[Mapping[str, str]] = {
    "tools": "tools",
    "vision": "vision",
    "thinking": "thinking",
}
"""What Ollama calls the capabilities that `ModelInfo` knows."""


@attrs.frozen(kw_only=True)
class Abilities:
    """What a model can do.

    Args:
        capabilities: as the server names them.
        levels: the values that `think` may have for it; `None` when the server does not tell.
        trained_window: tokens of context that it was made for; `None` when the server does not tell.
        family: whose kind it is.
        size: how many parameters it has, as a text.
    """

    capabilities: frozenset[str] = frozenset()
    levels: tuple[JSONValue, ...] | None = None
    trained_window: int | None = None
    family: str = ""
    size: str = ""

    @property
    def is_chatting(self) -> bool:
        """Whether it answers; servers that list no capabilities are believed to."""
        return not self.capabilities or "completion" in self.capabilities

    @property
    def can_see(self) -> bool:
        """Whether it takes images; servers that list no capabilities are believed to."""
        return not self.capabilities or "vision" in self.capabilities

    def think_for(self, effort: str) -> bool | str | None:
        """Return the value of `think` that comes next to an effort; `None` when the model does not think."""
        levels = self.levels
        if levels is None:
            # its levels are known: it takes no switch, and thinks at every level
            levels = (False, True)
            if self.family == "gptoss":
                levels = ("low", "medium", "high")
            levels = levels if "thinking" in self.capabilities else ()
        if effort == "none":
            # sent only where thinking can be on as well, else there is nothing to turn off
            if False in levels and levels != (False,):
                return False
            return None
        if effort in levels:
            return effort
        if True in levels or any(isinstance(level, str) for level in levels):
            return True
        return None


UNKNOWN: Final = Abilities()
"""The abilities of a model that the server does not describe."""


def read_abilities(shown: JSONValue) -> Abilities:
    """Read the answer to `/api/show`; what is missing or strange stays unknown."""
    if not isinstance(shown, Mapping):
        return UNKNOWN
    capabilities, thinking = shown.get("capabilities"), shown.get("thinking")
    details, facts = shown.get("details"), shown.get("model_info")
    levels = as_object(thinking).get("values")
    return Abilities(
        capabilities=frozenset(map(str, capabilities))
        if isinstance(capabilities, list)
        else frozenset(),
        levels=tuple(levels) if isinstance(levels, list) else None,
        trained_window=_window(facts),
        family=_text(details, "family"),
        size=_text(details, "parameter_size"),
    )


def model_names(tags: JSONValue) -> list[str]:
    """Return the names of the models that the answer to `/api/tags` lists."""
    models = as_list(as_object(tags).get("models"))
    names = (_text(model, "model") or _text(model, "name") for model in models)
    return [name for name in names if name]


def model_info(name: str, abilities: Abilities, config: OllamaConfig) -> ModelInfo:
    """Describe a model; its window is what the server loads it with, at most what it was made for."""
    known = [
        _CAPABILITIES[word]
        for word in sorted(abilities.capabilities & _CAPABILITIES.keys())
    ]
    window = min(config.window, abilities.trained_window or config.window)
    return ModelInfo(
        id=name,
        display_name=f"{name} ({abilities.size})" if abilities.size else name,
        context_window=window,
        max_output_tokens=min(config.longest_answer, window),
        capabilities=("streaming", "json_mode", *known),
    )


def _window(facts: JSONValue) -> int | None:
    """Find `ARCHITECTURE.context_length`."""
    if not isinstance(facts, Mapping):
        return None
    architecture = facts.get("general.architecture")
    return read_tokens(facts, f"{architecture}.context_length") or None


def _text(fields: JSONValue, key: str) -> str:
    value = as_object(fields).get(key)
    if isinstance(value, str):
        return value
    return ""
