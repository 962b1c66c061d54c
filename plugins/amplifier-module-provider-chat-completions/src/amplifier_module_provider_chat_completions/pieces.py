"""What stands in the pieces of a tool call."""

from __future__ import annotations

import json
from collections.abc import Mapping

from amplifier_sdk.jsontypes import JSONValue

__all__ = ["arguments_of", "function_of", "text_of"]


def function_of(piece: Mapping[str, JSONValue]) -> Mapping[str, JSONValue]:
    """Return the function of a piece of a call; empty if it has none."""
    value = piece.get("function")
    if isinstance(value, Mapping):
        return value
    return {}


def arguments_of(piece: Mapping[str, JSONValue]) -> str:
    """Return the arguments of a piece as text; some servers send the object itself."""
    value = function_of(piece).get("arguments")
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return ""


def text_of(values: Mapping[str, JSONValue], key: str) -> str:
    """Return a text out of an object; empty if there is none."""
    value = values.get(key)
    if isinstance(value, str):
        return value
    return ""
