"""Tools on either side of the boundary: the original's for the session, the session's for original modules."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Protocol, cast

from amplifier.compat.original import models
from amplifier.compat.plain import native_result, plain_copy
from amplifier.kernel.turn.proxies import unwrapped
from amplifier_sdk.contracts import Tool
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.loops import schema_of
from amplifier_sdk.results import ToolResult

__all__ = ["AdaptedTool", "OriginalTool", "ShownTool"]


class OriginalTool(Protocol):
    """What a tool of the original has."""

    def execute(self, input: dict[str, object], /) -> Awaitable[object]:
        """Run it once."""


class AdaptedTool:
    """A tool of the original as the session calls it.

    It has what the contract names and nothing else: an original's own `timeout`, `effects` or `exclusive` would mean
    something to the session that its author did not mean.
    """

    def __init__(self, original: OriginalTool, mounted_as: str = "") -> None:
        self.original: OriginalTool = original
        self._mounted_as = mounted_as
        self._schema: JSONObject = {}

    @property
    def name(self) -> str:
        """The name that the model calls."""
        return str(getattr(self.original, "name", "") or self._mounted_as)

    @property
    def description(self) -> str:
        """What the tool does, for the model."""
        return str(getattr(self.original, "description", "") or "")

    @property
    def input_schema(self) -> Mapping[str, JSONValue]:
        """The JSON Schema of the arguments."""
        schema = schema_of(self.original)  # type: ignore[arg-type]  # read by name
        # one object as long as it says the same: its validator is compiled once
        if schema != self._schema:
            self._schema = cast("JSONObject", plain_copy(schema))
        return self._schema

    async def execute(self, input: JSONObject, /) -> ToolResult:
        """Run the tool; what is no result is its output.

        Raises:
            Exception: whatever the tool raised.
        """
        answer: object = await self.original.execute(cast("dict[str, object]", input))
        if isinstance(answer, ToolResult):
            return native_result(answer)
        # the original's loops write whatever a tool returns
        return ToolResult(output=cast("JSONValue", plain_copy(answer)))


class ShownTool:
    """A tool of the session as modules of the original call it."""

    def __init__(self, tool: Tool) -> None:
        self.native: Tool = tool

    @property
    def name(self) -> str:
        """The name that the model calls."""
        return self.native.name

    @property
    def description(self) -> str:
        """What the tool does, for the model."""
        return self.native.description

    @property
    def input_schema(self) -> dict[str, object]:
        """The JSON Schema of the arguments."""
        return cast("dict[str, object]", plain_copy(schema_of(self.native)))

    async def execute(self, input: dict[str, object]) -> models.ToolResult:
        """Run the tool."""
        return models.ToolResult.of(
            await self.native.execute(cast("JSONObject", input))
        )

    def __getattr__(self, name: str) -> object:
        tool = unwrapped(self.native)
        if isinstance(tool, AdaptedTool):
            return getattr(tool.original, name)
        return getattr(tool, name)
