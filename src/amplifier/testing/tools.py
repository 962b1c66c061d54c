"""A tool that answers from a script and records its inputs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from inspect import isawaitable
from typing import Final, TypeAlias, cast

import anyio

from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.results import ToolResult

__all__ = ["MockTool", "ToolFunction", "ToolOutput"]

ToolFunction: TypeAlias = Callable[[JSONObject], Awaitable[object] | object]
"""What computes a tool's output from its input; sync or async."""

ToolOutput: TypeAlias = JSONValue | ToolResult | BaseException | ToolFunction
"""What a tool answers: a value, a whole result, an exception to raise, or a function of the input."""

ANY_OBJECT: Final[Mapping[str, JSONValue]] = {"type": "object"}

# An object of its own: None is an output that a test may want.
_NOT_GIVEN: Final = ToolResult()


class MockTool:
    """A tool with one answer, or one function that answers; `calls` holds every input it saw.

    Args:
        name: what the model calls it.
        output: what it answers; see `ToolOutput`.
        description: for the model; default names the tool.
        return_value: another name of `output`.
        input_schema: the schema of its arguments; default any object.
        exclusive: whether it runs alone.
        effects: what it says that it does; default it says nothing.
    """

    def __init__(
        self,
        name: str = "mock_tool",
        output: ToolOutput = "Success",
        *,
        description: str | None = None,
        return_value: ToolOutput = _NOT_GIVEN,
        input_schema: Mapping[str, JSONValue] = ANY_OBJECT,
        exclusive: bool = False,
        effects: Collection[str] | None = None,
    ) -> None:
        self.name: str = name
        self.description: str = (
            f"Mock tool: {name}" if description is None else description
        )
        self.output: ToolOutput = output if return_value is _NOT_GIVEN else return_value
        self.input_schema: Mapping[str, JSONValue] = input_schema
        self.exclusive: bool = exclusive
        self.effects: Collection[str] | None = effects
        self.calls: list[JSONObject] = []
        self._called: anyio.Event | None = None

    @property
    def return_value(self) -> ToolOutput:
        """Another name of `output`."""
        return self.output

    @return_value.setter
    def return_value(self, value: ToolOutput) -> None:
        self.output = value

    @property
    def call_count(self) -> int:
        """How often it was called."""
        return len(self.calls)

    @property
    def last_input(self) -> JSONObject | None:
        """The input of the last call; `None` before the first."""
        if self.calls:
            return self.calls[-1]
        return None

    async def wait_for_call(self, number: int = 1) -> JSONObject:
        """Wait until the tool was called `number` times, and return that call's input."""
        while len(self.calls) < number:
            self._called = self._called or anyio.Event()
            await self._called.wait()
        return self.calls[number - 1]

    async def execute(self, input: JSONObject, /) -> ToolResult:
        """Note the input and answer."""
        self.calls.append(input)
        if self._called is not None:
            # an event is set once: who waits for another call makes a new one
            self._called.set()
            self._called = None
        answer: object
        if callable(self.output):
            answer = self.output(input)
        else:
            answer = self.output
        if isawaitable(answer):
            answer = await answer
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, ToolResult):
            return answer
        # what is no JSON value is the test's own wish
        return ToolResult(output=cast("JSONValue", answer))
