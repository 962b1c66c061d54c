"""The arguments of tool calls: copied, and checked against the tools' schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from amplifier.kernel.reports import report
from amplifier_sdk.arguments import ArgumentSchema
from amplifier_sdk.contracts import Tool
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.loops import schema_of

__all__ = ["ArgumentSchemas", "copied"]

_NESTED: Final = frozenset({dict, list, tuple})


@attrs.define(eq=False)
class ArgumentSchemas:
    """The compiled schemas of a session's tools, each compiled once."""

    _compiled: dict[int, tuple[Tool, Mapping[str, JSONValue], ArgumentSchema]] = (
        attrs.field(factory=dict)
    )

    def problem(self, tool: Tool, arguments: JSONObject) -> str | None:
        """Check arguments against the tool's schema; a schema that cannot be read is a problem."""
        known = self._compiled.get(id(tool))
        try:
            # Most tools have one schema for ever, which is looked up as the attribute that it is.
            if (
                known is not None
                and known[0] is tool
                and getattr(tool, "input_schema", None) is known[1]
            ):
                return known[2].problem(arguments)
            schema = schema_of(tool)
            if known is None or known[0] is not tool or known[1] != schema:
                known = self._compiled[id(tool)] = (
                    tool,
                    schema,
                    ArgumentSchema.of(schema, tool.name),
                )
            return known[2].problem(arguments)
        except Exception as error:  # foreign code: a tool's schema
            report("tool.schema_failed", error, tool=type(tool).__name__)
            return f"The tool cannot be used: its schema cannot be read ({type(error).__name__}: {error})"


def copied(arguments: Mapping[str, JSONValue]) -> JSONObject:
    """Copy arguments, so that neither a handler nor a tool changes what others see and the history says."""
    if _NESTED.isdisjoint(map(type, arguments.values())):
        return dict(arguments)
    return {
        key: _copied_value(value) if type(value) in _NESTED else value
        for key, value in arguments.items()
    }


def _copied_value(value: JSONValue) -> JSONValue:
    if isinstance(value, Mapping):
        return copied(value)
    if isinstance(value, (list, tuple)):
        return [_copied_value(item) for item in value]
    return value
