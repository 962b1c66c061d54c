"""Tools as a model sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from amplifier_sdk.chat import ToolSpec
from amplifier_sdk.contracts import Tool
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["schema_of", "tool_spec"]

ANY_OBJECT: Final[Mapping[str, JSONValue]] = {"type": "object"}


def tool_spec(tool: Tool) -> ToolSpec:
    """Describe a tool for a model; its schema is `input_schema`, else `get_schema()`, else any object."""
    return ToolSpec(
        name=tool.name, description=tool.description, parameters=schema_of(tool)
    )


def schema_of(tool: Tool) -> Mapping[str, JSONValue]:
    """Return the JSON Schema of a tool's arguments, in whichever of the contracts' spellings it offers one."""
    schema = getattr(tool, "input_schema", None)
    if schema is None and callable(get_schema := getattr(tool, "get_schema", None)):
        schema = get_schema()
    # the type first: the test for any mapping is slow, and each turn asks each tool
    if schema and (type(schema) is dict or isinstance(schema, Mapping)):
        return schema
    return ANY_OBJECT
