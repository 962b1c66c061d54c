"""What a loop tells the model of its tools, turn after turn."""

from __future__ import annotations

import pytest

from amplifier.testing import MockTool, ScriptedProvider
from tests.loops.parts import LOOPS, open_loop


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("anew", [True, False], ids=["anew", "once"])
async def test_tool_that_may_change_described_again_when_turn_begins(
    loop: str, anew: bool
) -> None:
    class Changing(MockTool):
        describes_anew = anew

    changing = Changing("changing", description="one", input_schema={"type": "object"})
    provider = ScriptedProvider("a", "b", "c", "d")
    async with open_loop(loop, provider, MockTool("plain"), changing) as session:
        await session.execute("1")
        await session.execute("2")
        changing.description = "two"
        await session.execute("3")
        changing.input_schema = {
            "type": "object",
            "properties": {"x": {"type": "string"}},
        }
        await session.execute("4")

    tools = [request.tools for request in provider.requests]
    assert tools[1] is tools[0]
    reported = [
        (specs[1].description, "properties" in specs[1].parameters)
        for specs in tools
        if specs is not None
    ]
    assert reported[2:] == (
        [("two", False), ("two", True)] if anew else [("one", False)] * 2
    )
