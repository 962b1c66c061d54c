"""Data that nobody checked, as the object or the list that it should be."""

from __future__ import annotations

from collections.abc import Mapping

from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["as_list", "as_object"]


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
