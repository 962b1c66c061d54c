"""Tools as a loop receives them: calling one directly still runs everything a tool call owes."""

from __future__ import annotations

from collections.abc import Mapping
from random import getrandbits
from typing import TYPE_CHECKING

from amplifier_sdk.chat import ToolCall
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.loops import schema_of

if TYPE_CHECKING:
    from amplifier.kernel.turn.registry import HookRegistry
    from amplifier_sdk.contracts import Tool
    from amplifier_sdk.results import ToolResult

__all__ = ["ToolProxy", "unwrapped"]


class ToolProxy:
    """A tool whose `execute` goes through the turn that runs: checked, decided on, limited, journaled.

    `name` is the one it is mounted under, which an `instance_id` of the plan may have given it.
    """

    __slots__ = ("_hooks", "_name", "tool")

    def __init__(self, tool: Tool, hooks: HookRegistry, name: str) -> None:
        self.tool: Tool = tool
        self._hooks = hooks
        self._name = name

    @property
    def name(self) -> str:
        """The name by which the model calls it."""
        return self._name

    @property
    def description(self) -> str:
        """The tool's description."""
        return self.tool.description

    @property
    def input_schema(self) -> Mapping[str, JSONValue]:
        """The tool's schema, from whichever spelling it offers."""
        return schema_of(self.tool)

    async def execute(self, input: JSONObject, /) -> ToolResult:
        """Run the tool as a call of its own."""
        fits = isinstance(input, Mapping)
        problem = None
        if not fits:
            problem = f"The arguments of {self.name!r} are an object; got {type(input).__name__}"
        call = ToolCall(
            id=f"call_{getrandbits(64):016x}",
            name=self.name,
            arguments=input if fits else {},
            problem=problem,
        )
        return await self._hooks.host.tool_calls.run_received(call, self.tool)

    def __getattr__(self, name: str) -> object:
        return getattr(self.tool, name)


def unwrapped(tool: Tool) -> Tool:
    """Return the tool itself, whether or not it is a proxy."""
    if isinstance(tool, ToolProxy):
        return tool.tool
    return tool
