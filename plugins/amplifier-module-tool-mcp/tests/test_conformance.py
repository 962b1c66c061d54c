"""The module has every behaviour of its type, with a server that has something of everything."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

import amplifier_module_tool_mcp
from amplifier.testing.conformance import ToolSamples, conformance
from amplifier_sdk.jsontypes import JSONValue

pytestmark = pytest.mark.process

SERVER = str(Path(__file__).with_name("scripted_server.py"))


@asynccontextmanager
async def around() -> AsyncGenerator[dict[str, JSONValue], None]:
    """Have one server; the home folder is the test's own."""
    yield {
        "servers": {
            "s": {
                "command": sys.executable,
                "args": ["-IS", SERVER, "conforms"],
                "exclude_tools": ["fail"],
            }
        }
    }


# A real program is what most of the time goes into; the other tests talk to it on both.
ONE_BACKEND: Final = pytest.mark.parametrize("anyio_backend", ["trio"], scope="session")

TestMcp = ONE_BACKEND(
    conformance(
        "tool",
        amplifier_module_tool_mcp,
        samples=ToolSamples(
            around=around,
            arguments={
                "mcp__s__echo": ({"text": "words"},),
                "mcp__s__show": ({},),
                "mcp__s__change": ({"bytes": 3},),
                "mcp_resources": ({"server": "s"}, {"server": "s", "uri": "note:///a"}),
                "mcp__s__wait": ({},),
                "mcp_status": ({},),
            },
            failing={"mcp_resources": ({"server": "nobody"},)},
            slow={"mcp__s__wait": {"long": 987_654}},
            bad_config={"max_tools": -1},
        ),
    )
)
