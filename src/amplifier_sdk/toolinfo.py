"""What a handler learns of the tool that is called: what it says of itself, and nothing that it holds.

A tool leads to its module, the coordinator and the configuration with its secrets. A handler that writes down all that
it is given must not write those.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from amplifier_sdk.effects import Effect, effects_of, read_only_of
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.loops.specs import schema_of
from amplifier_sdk.values import Value

if TYPE_CHECKING:
    from amplifier_sdk.contracts import Coordinator, Tool
    from amplifier_sdk.events import ToolPre

__all__ = ["ToolInfo", "called_tool"]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ToolInfo(Value):
    """A tool as `tool:pre` describes it.

    Args:
        name: what it is called.
        description: what it says it does.
        input_schema: the JSON Schema of its arguments.
        effects: what it says it does outside the conversation; `None` where it says nothing.
        read_only: whether it says that it changes nothing; `None` where it says nothing.
    """

    name: str
    description: str
    input_schema: Mapping[str, JSONValue]
    effects: frozenset[Effect] | None = None
    read_only: bool | None = None
    # a number, since the tool itself would lead to its module and the secrets there
    _identity: int = attrs.field(default=0, eq=False, repr=False)

    @classmethod
    def of(cls, tool: Tool) -> ToolInfo:
        """Describe a tool."""
        return cls(
            name=tool.name,
            description=tool.description,
            input_schema=schema_of(tool),
            effects=effects_of(tool),
            read_only=read_only_of(tool),
            identity=id(tool),
        )

    def is_of(self, tool: object) -> bool:
        """Whether it describes this very tool."""
        return self._identity == id(tool)


def called_tool(data: ToolPre, coordinator: Coordinator) -> object | None:
    """Return the mounted tool that a call is for, whatever its name; `None` where none is or nobody says which.

    For a handler that must know whether a call is one of its own module's, or where a tool comes from.
    """
    described = data.get("tool_obj")
    if not isinstance(described, ToolInfo):
        return described
    mounted = coordinator.get("tools")
    tools = mounted.values() if isinstance(mounted, Mapping) else ()
    return next((tool for tool in tools if described.is_of(tool)), None)
