"""What is known of the models: windows, how they think, which parameters they take; and those that the API lists.

As of 2026-11-21, from the model pages and the migration guides of the API's documentation. A model that the table
lacks is classified by its name: `claude-…` is taken for a new model of Anthropic, anything else for a model behind
a compatible server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import attrs

from amplifier_kit.open_data import as_list, as_object
from amplifier_kit.vendors import read_tokens
from amplifier_sdk.chat import ModelInfo
from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "DEFAULT_MODEL",
    "LONG_CONTEXT_WINDOW",
    "Effort",
    "Model",
    "Thinking",
    "capabilities",
    "default_max_tokens",
    "listed_models",
    "model_of",
    "next_page",
]

_CAPABILITIES: Final[Mapping[str, str]] = {
    "citations": "citations",
    "image_input": "vision",
    "pdf_input": "documents",
    "structured_outputs": "json_schema",
}
"""What the API calls a capability, and what it is called here."""

DEFAULT_MODEL: Final = "claude-sonnet-5-5"
"""The model of requests and configurations that name none."""

LONG_CONTEXT_WINDOW: Final = 1_000_000
"""The window of the models that have to be asked for it."""

_LONGEST_DEFAULT: Final = 64_000

Effort: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]
"""How much work a model puts into an answer."""

Thinking: TypeAlias = Literal["none", "budget", "adaptive", "default", "always"]
"""How a model thinks.

`budget` takes a number of tokens and `adaptive` decides by itself; both think when asked to. `default` is adaptive
and thinks unless asked not to, `always` cannot be asked not to, `none` does not think.
"""

_ALL: Final[tuple[Effort, ...]] = ("low", "medium", "high", "xhigh", "max")
_NO_XHIGH: Final[tuple[Effort, ...]] = ("low", "medium", "high", "max")
_DATED: Final = re.compile(r"-(\d{8}|latest)$")


@attrs.frozen(kw_only=True)
class Model:
    """One model.

    Args:
        display_name: its name for people.
        context_window: tokens that a request and its answer may have together.
        max_output_tokens: tokens of its longest answer.
        thinking: how it thinks.
        thinking_off: how thinking is turned off.
        efforts: the levels of effort it takes; none when it takes no level.
        takes_temperature: whether requests may set `temperature` and `top_p`.
        takes_forced_tools: whether `tool_choice` may force a call.
        takes_late_system: whether a system message may stand among the others.
        binds_thinking: whether it reads its earlier thoughts only as long as nothing before them has changed.
        has_long_context: whether a beta header gives it a window of a million tokens. None of the table needs one;
            a gateway's model may.
    """

    display_name: str = ""
    context_window: int = 200_000
    max_output_tokens: int = 64_000
    thinking: Thinking = "budget"
    thinking_off: Literal["disabled", "between_tools"] = "disabled"
    efforts: tuple[Effort, ...] = ()
    takes_temperature: bool = False
    takes_forced_tools: bool = True
    takes_late_system: bool = False
    binds_thinking: bool = False
    has_long_context: bool = False


_OPUS_4_8: Final = Model(
    context_window=1_000_000,
    max_output_tokens=128_000,
    thinking="adaptive",
    efforts=_ALL,
    takes_late_system=True,
)
_OPUS_5: Final = attrs.evolve(_OPUS_4_8, thinking="default")
_FABLE_5: Final = attrs.evolve(_OPUS_4_8, thinking="always")
_FABLE_5_1: Final = attrs.evolve(
    _FABLE_5, takes_forced_tools=False, binds_thinking=True
)
_OPUS_4_6: Final = attrs.evolve(
    _OPUS_4_8, efforts=_NO_XHIGH, takes_temperature=True, takes_late_system=False
)
_HAIKU_4_5: Final = Model(takes_temperature=True)


def _named(model: Model, display_name: str) -> Model:
    return attrs.evolve(model, display_name=display_name)


_MODELS: Final[Mapping[str, Model]] = {
    "claude-fable-5-2": _named(_FABLE_5_1, "Claude Fable 5.2"),
    "claude-mythos-5-2": _named(_FABLE_5_1, "Claude Mythos 5.2"),
    "claude-opus-5-5": _named(_FABLE_5_1, "Claude Opus 5.5"),
    "claude-sonnet-5-5": attrs.evolve(
        _FABLE_5_1,
        display_name="Claude Sonnet 5.5",
        thinking="default",
        thinking_off="between_tools",
    ),
    "claude-haiku-5-5": attrs.evolve(
        _OPUS_5, display_name="Claude Haiku 5.5", binds_thinking=True
    ),
    "claude-fable-5-1": _named(_FABLE_5_1, "Claude Fable 5.1"),
    "claude-mythos-5-1": _named(_FABLE_5_1, "Claude Mythos 5.1"),
    "claude-opus-5": _named(_OPUS_5, "Claude Opus 5"),
    "claude-sonnet-5": attrs.evolve(
        _OPUS_5, display_name="Claude Sonnet 5", takes_late_system=False
    ),
    "claude-fable-5": _named(_FABLE_5, "Claude Fable 5"),
    "claude-mythos-5": _named(_FABLE_5, "Claude Mythos 5"),
    "claude-opus-4-8": _named(_OPUS_4_8, "Claude Opus 4.8"),
    "claude-opus-4-7": attrs.evolve(
        _OPUS_4_8, display_name="Claude Opus 4.7", takes_late_system=False
    ),
    "claude-opus-4-6": _named(_OPUS_4_6, "Claude Opus 4.6"),
    "claude-sonnet-4-6": _named(_OPUS_4_6, "Claude Sonnet 4.6"),
    "claude-haiku-4-5": _named(_HAIKU_4_5, "Claude Haiku 4.5"),
    "claude-opus-4-5": attrs.evolve(
        _HAIKU_4_5, display_name="Claude Opus 4.5", efforts=("low", "medium", "high")
    ),
    "claude-sonnet-4-5": _named(_HAIKU_4_5, "Claude Sonnet 4.5"),
}

_NEW_MODEL: Final = _FABLE_5_1
_COMPATIBLE_MODEL: Final = Model(max_output_tokens=8_192, takes_temperature=True)


def model_of(id: str, more: Mapping[str, Model]) -> Model:
    """Return what is known of a model.

    Args:
        id: as requests name it; a date or `latest` at its end does not matter.
        more: what the configuration says of models; it goes before the table.
    """
    # Dated ids name a snapshot of the same model.
    undated = _DATED.sub("", id)
    # What the person configures wins over a table that is older than some models.
    found = more.get(id) or more.get(undated) or _MODELS.get(undated)
    if found is None:
        found = _COMPATIBLE_MODEL
        if id.startswith("claude-"):
            found = _NEW_MODEL
    if found.display_name:
        return found
    return attrs.evolve(found, display_name=id)


def default_max_tokens(model: Model) -> int:
    """Return the tokens that an answer may have when nobody says how many."""
    return min(model.max_output_tokens, _LONGEST_DEFAULT)


def listed_models(listing: JSONValue, more: Mapping[str, Model]) -> list[ModelInfo]:
    """Read a page of the list; what names no model is left out, and what no longer answers.

    Args:
        listing: as the API answers. Its windows go before what is known here.
        more: what the configuration says of models.
    """
    entries = as_list(as_object(listing).get("data"))
    listed = (_listed(entry, more) for entry in entries)
    return [model for model in listed if model is not None]


def _listed(entry: JSONValue, more: Mapping[str, Model]) -> ModelInfo | None:
    # A retired model is listed and answers nothing but an error.
    if not isinstance(entry, Mapping) or entry.get("lifecycle") == "retired":
        return None
    id, name = entry.get("id"), entry.get("display_name")
    if not isinstance(id, str):
        return None
    known = model_of(id, more)
    return ModelInfo(
        id=id,
        display_name=name if isinstance(name, str) else known.display_name,
        context_window=read_tokens(entry, "max_input_tokens") or known.context_window,
        max_output_tokens=read_tokens(entry, "max_tokens") or known.max_output_tokens,
        capabilities=(*capabilities(known), *_declared(entry.get("capabilities"))),
    )


def capabilities(model: Model) -> tuple[str, ...]:
    """Return what any of the models can do, and thinking where this one does."""
    return ("streaming", "tools", *(("thinking",) if model.thinking != "none" else ()))


def _declared(value: JSONValue) -> list[str]:
    if not isinstance(value, Mapping):
        return []
    return [
        name for key, name in _CAPABILITIES.items() if _is_supported(value.get(key))
    ]


def _is_supported(capability: JSONValue) -> bool:
    return isinstance(capability, Mapping) and capability.get("supported") is True


def next_page(listing: JSONValue) -> str | None:
    """Return the id after which the next page begins; `None` when there is none."""
    page = as_object(listing)
    last = page.get("last_id")
    if page.get("has_more") is True and isinstance(last, str):
        return last
    return None
