"""What JSON can hold, as types: the shape of tool arguments, schemas and stored messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

__all__ = ["JSONObject", "JSONValue"]

JSONValue: TypeAlias = "str | int | float | bool | Sequence[JSONValue] | Mapping[str, JSONValue] | None"
"""Any value that JSON can write, at any depth."""

JSONObject: TypeAlias = "dict[str, JSONValue]"
"""A JSON object as Python reads it."""
