"""Data that nobody checked, as the object, the list or the text that it should be."""

from __future__ import annotations

from collections.abc import Mapping

from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["as_list", "as_object", "as_text"]


def as_object(value: object) -> JSONObject:
    """Return a copy of an object; of anything else, an empty one."""
    if isinstance(value, Mapping):
        return dict(value)
    return {}


def as_list(value: object) -> list[JSONValue]:
    """Return a copy of a list; of anything else, an empty one."""
    if isinstance(value, (list, tuple)):
        return list(value)
    return []


def as_text(value: object) -> str:
    """Return a text; of anything else, an empty one."""
    if isinstance(value, str):
        return value
    return ""
