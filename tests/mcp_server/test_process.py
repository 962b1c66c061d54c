"""The official client drives `amplifier mcp serve` as a process."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client
from mcp_types import CallToolResult

from tests.cli.programs import BACKENDS, PROGRAM, call, write_plan

pytestmark = pytest.mark.process


@BACKENDS
def test_a_client_calls_a_tool_that_prints(project: Path, backend: str) -> None:
    plan = write_plan(project.parent, ["done"], "tool-filesystem")
    command, *arguments = (*PROGRAM, "mcp", "serve", "--plan", str(plan))
    given = StdioServerParameters(
        command=command,
        args=[*arguments, "--tool", "read_file", "--backend", backend],
        env=dict(os.environ),
        cwd=project,
    )

    async def use() -> tuple[CallToolResult, CallToolResult]:
        async with Client(stdio_client(given)) as client:
            read = await client.call_tool("read_file", {"file_path": "notes.txt"})
            agent = await client.call_tool("agent_self", {"instruction": "Hi"})
            return read, agent

    read, agent = anyio.run(use, backend=backend)

    assert "old text" in str(read.content)
    assert "done" in str(agent.content)


def test_what_cannot_be_served_is_an_error(project: Path) -> None:
    plan = str(write_plan(project.parent, ["done"], "tool-filesystem"))
    result = call("mcp", "serve", "--plan", plan, "--tool", "raed_file", expect=1)
    assert "read_file" in result.stderr
    result = call("mcp", "serve", "--yes", expect=2)
    assert "use --accept-edits" in result.stderr
    result = call("acp", "--yes", expect=2)
    assert "use --accept-edits" in result.stderr
