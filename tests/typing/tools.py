"""What `@tool` and the module decorators keep and refuse. Checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import assert_type

from amplifier_sdk import FunctionTool, Tool, ToolResult, provider, tool, toolset


@tool
def add(left: int, right: int = 0) -> int:
    """Add two numbers."""
    return left + right


@tool(name="search_notes", exclusive=True)
async def search(query: str) -> list[str]:
    """Search the notes."""
    return [query]


@toolset
class Notes:
    @tool
    def read(self, title: str) -> str:
        """Read a note."""
        return title


assert_type(add(1, right=2), int)
assert_type(add.name, str)
assert_type(Notes().read("x"), str)

pending: Coroutine[object, object, list[str]] = search("x")
as_tool: Tool = add
typed: FunctionTool[[str], str] = Notes().read

assert_type(add.call(1, right=2), int)
assert_type(Notes().read.call("x"), str)

add("1")  # error: arg-type
add.call("1")  # error: arg-type
add.call(1, rigth=2)  # error: call-arg
add(1, rigth=2)  # error: call-arg
Notes().read(1)  # error: arg-type
wrong: str = add(1)  # error: assignment


async def use() -> None:
    assert_type(await search("x"), list[str])
    assert_type(await add.execute({"left": 1}), ToolResult)
    await search(1)  # error: arg-type
    search("x")  # error: unused-coroutine


class NotAProvider:
    name = "nothing"


provider(NotAProvider)  # error: type-var
