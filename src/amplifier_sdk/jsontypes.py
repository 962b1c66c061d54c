"""What JSON can hold, as types: the shape of tool arguments, schemas and stored messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["JSONObject", "JSONValue"]

if TYPE_CHECKING:
    JSONValue: TypeAlias = (
        str
        | int
        | float
        | bool
        | Sequence["JSONValue"]
        | Mapping[str, "JSONValue"]
        | None
    )
    """Any value that JSON can write, at any depth."""

    JSONObject: TypeAlias = dict[str, JSONValue]
    """A JSON object as Python reads it."""
else:
    # What reads annotations at run time needs types, and Python has none that holds itself.
    JSONValue = object
    JSONObject = dict[str, object]
