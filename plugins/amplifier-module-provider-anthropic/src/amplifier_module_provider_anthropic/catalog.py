"""The models that the API lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from amplifier_kit.open_data import as_list, as_object
from amplifier_kit.vendors import read_tokens
from amplifier_module_provider_anthropic.models import Model, model_of
from amplifier_sdk.chat import ModelInfo
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["capabilities", "listed_models", "next_page"]

_CAPABILITIES: Final[Mapping[str, str]] = {
    "citations": "citations",
    "image_input": "vision",
    "pdf_input": "documents",
    "structured_outputs": "json_schema",
}
"""What the API calls a capability, and what it is called here."""


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
        capabilities=(*capabilities(known), *_told(entry.get("capabilities"))),
    )


def capabilities(model: Model) -> tuple[str, ...]:
    """Return what any of the models can do, and thinking where this one does."""
    return ("streaming", "tools", *(("thinking",) if model.thinking != "none" else ()))


def _told(told: JSONValue) -> list[str]:
    if not isinstance(told, Mapping):
        return []
    return [name for key, name in _CAPABILITIES.items() if _is_supported(told.get(key))]


def _is_supported(capability: JSONValue) -> bool:
    return isinstance(capability, Mapping) and capability.get("supported") is True


def next_page(listing: JSONValue) -> str | None:
    """Return the id after which the next page begins; `None` when there is none."""
    page = as_object(listing)
    last = page.get("last_id")
    if page.get("has_more") is True and isinstance(last, str):
        return last
    return None
