"""Tools from functions and methods."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from math import inf
from pathlib import Path

import pytest

from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier_sdk import (
    Coordinator,
    FunctionTool,
    RunContext,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    tool,
    toolset,
)
from amplifier_sdk.contracts import ToolWithSchema
from amplifier_sdk.modules import definition_of
from amplifier_sdk.tools import tools_of


@tool
def add(left: int, right: int = 1) -> int:
    """Add two numbers.

    The sum is exact.

    Args:
        left: the first number
    """
    return left + right


@tool(name="look_up", description="Find a note.", exclusive=True)
async def search(query: str) -> list[str]:
    """Search the notes."""
    return [query, threading.current_thread().name]


@tool
def fail(code: int) -> str:
    """Fail."""
    if code:
        raise ToolError("It failed", code=code)
    raise OSError("disk")


@tool
def which_thread() -> str:
    """Name the thread."""
    return threading.current_thread().name


@tool
def where() -> Path:
    """Return a value that JSON has no type for."""
    return Path("a") / "b"


@tool
def where_all() -> dict[str, object]:
    """Return such values inside of others."""
    return {"path": Path("a") / "b", "set": {2, 1}}


@tool
def refuse() -> ToolResult:
    """Return a result of its own."""
    return ToolResult.failure("No")


@tool
async def session_name(greeting: str, coordinator: Coordinator) -> str:
    """Greet the session."""
    return f"{greeting} {coordinator.session_id}"


@tool
async def maybe_session(coordinator: Coordinator | None = None) -> str:
    """Name the session, if there is one."""
    return coordinator.session_id if coordinator is not None else "none"


class Notes:
    """A class whose methods are tools."""

    def __init__(self, *titles: str) -> None:
        self.titles = titles

    @tool
    def titles_of_notes(self) -> list[str]:
        """List the titles."""
        return list(self.titles)

    @tool(name="count")
    async def count_notes(self, at_least: int = 0) -> int:
        """Count the notes."""
        return max(at_least, len(self.titles))

    def helper(self) -> None:
        """No tool."""


class MoreNotes(Notes):
    """Adds a tool and replaces one."""

    @tool
    def first(self) -> str:
        """Return the first title."""
        return self.titles[0]

    @tool
    def titles_of_notes(self) -> list[str]:
        """List the titles in order."""
        return sorted(self.titles)


@toolset
class Session:
    """A tool module that knows its session."""

    @tool
    async def greet(self, coordinator: Coordinator) -> str:
        """Name the session."""
        return coordinator.session_id


def test_a_tool_is_still_its_function() -> None:
    assert add(2, right=3) == 5


def test_a_tool_describes_itself_to_a_model() -> None:
    assert add.name == "add"
    assert add.description == "Add two numbers.\n\nThe sum is exact."
    assert add.input_schema["required"] == ["left"]
    assert isinstance(add, ToolWithSchema)
    assert not add.exclusive


def test_a_tool_may_be_named_and_described_apart() -> None:
    assert (search.name, search.description, search.exclusive) == (
        "look_up",
        "Find a note.",
        True,
    )


async def test_a_returned_value_is_the_output() -> None:
    assert await add.execute({"left": 2}) == ToolResult(output=3)


async def test_async_tool_runs_on_loop_and_sync_one_in_thread() -> None:
    here = threading.current_thread().name

    assert (await search.execute({"query": "x"})).output == ["x", here]
    assert (await which_thread.execute({})).output != here


async def test_values_without_a_json_type_reach_the_model_as_json() -> None:
    assert (await where.execute({})).output == "a/b"
    assert (
        await where_all.execute({})
    ).get_serialized_output() == '{"path": "a/b", "set": [1, 2]}'


async def test_a_returned_result_is_taken_as_it_is() -> None:
    assert await refuse.execute({}) == ToolResult.failure("No")


async def test_a_tool_error_is_a_failed_result_with_its_details() -> None:
    assert await fail.execute({"code": 7}) == ToolResult.failure("It failed", code=7)


async def test_any_other_error_is_left_to_the_kernel() -> None:
    with pytest.raises(OSError, match="disk"):
        await fail.execute({"code": 0})


async def test_a_method_is_a_tool_of_its_instance() -> None:
    notes = Notes("b", "a")

    assert notes.titles_of_notes() == ["b", "a"]
    assert (await notes.titles_of_notes.execute({})).output == ["b", "a"]
    assert (await Notes().count_notes.execute({"at_least": 4})).output == 4
    assert isinstance(Notes.titles_of_notes, FunctionTool)


async def test_a_class_offers_its_tools_in_the_order_of_definition() -> None:
    tools = tools_of(MoreNotes("b", "a"))

    assert [tool.name for tool in tools] == ["titles_of_notes", "count", "first"]
    assert (await tools[0].execute({})).output == ["a", "b"]


async def test_coordinator_parameter_is_hidden_from_model() -> None:
    coordinator = ModuleCoordinator(session_id="s-1")
    definition = definition_of(session_name)
    assert definition is not None

    mounted = await definition.mount(coordinator, {})

    assert session_name.input_schema["properties"] == {"greeting": {"type": "string"}}
    assert isinstance(mounted, Tool)
    assert (await mounted.execute({"greeting": "Hello"})).output == "Hello s-1"


async def test_tool_that_needs_an_agent_says_so_elsewhere() -> None:
    @tool
    async def owner(ctx: RunContext[str]) -> str:
        """Say whose run it is."""
        return ctx.deps

    definition = definition_of(owner)
    assert definition is not None
    mounted = await definition.mount(ModuleCoordinator(), {})
    assert isinstance(mounted, Tool)

    assert "owner takes a RunContext" in str((await mounted.execute({})).error)


async def test_a_tool_without_a_session_keeps_its_default() -> None:
    assert (await maybe_session.execute({})).output == "none"


async def test_the_tools_of_a_set_get_the_coordinator_too() -> None:
    definition = definition_of(Session)
    assert definition is not None

    mounted = await definition.mount(ModuleCoordinator(session_id="s-2"), {})

    assert isinstance(mounted, list)
    assert (await mounted[0].execute({})).output == "s-2"


def test_a_parameter_without_a_type_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="'amount' has no annotation"):

        @tool
        def pay(amount) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001  # what is refused
            """Pay."""


def test_a_generator_is_no_tool_and_the_error_says_what_is() -> None:
    def lines(text: str) -> Iterator[str]:
        yield text

    async def lines_later(text: str) -> AsyncIterator[str]:
        yield text

    for function in (lines, lines_later):
        with pytest.raises(
            TypeError,
            match=r"is a generator; return the result whole, and report .* 'context: Tool",
        ):
            tool(function)


async def test_a_callable_object_is_a_tool_once_it_has_a_name() -> None:
    class Adder:
        """Adds."""

        async def __call__(self, left: int, right: int) -> int:
            return left + right

    with pytest.raises(
        TypeError, match=r"has no name that a model could call; write @tool\(name=…\)"
    ):
        tool(Adder())
    with pytest.raises(TypeError, match="has no name"):
        tool(lambda: 1)

    adder = tool(name="add_up")(Adder())

    assert (await adder.execute({"left": 1, "right": 2})).output == 3


@toolset
class Builder:
    @tool
    async def build(
        self, target: str, coordinator: Coordinator, context: ToolContext
    ) -> str:
        """Build."""
        return f"{target} {coordinator.session_id} {context.tool_name}"


async def test_method_may_take_coordinator_and_context_of_its_call() -> None:
    (build,) = tools_of(Builder())
    build = build.with_coordinator(ModuleCoordinator(session_id="s1"))

    assert build.takes_context
    assert list(build.input_schema["properties"]) == ["target"]  # type: ignore[arg-type]  # an object
    assert (await build.execute({"target": "t"})).output == "t s1 build"
    assert (
        await build.execute({"target": "t"}, context=ToolContext("c", "other"))
    ).output == "t s1 other"


@pytest.mark.parametrize("timeout", [-1, 0, inf, True])
def test_a_tool_s_timeout_is_a_number_of_seconds_above_0(timeout: float) -> None:
    with pytest.raises(
        TypeError, match="Tool 'wait': timeout is a number of seconds above 0; got"
    ):

        @tool(timeout=timeout)
        def wait() -> None:
            """Wait."""
