"""What is shown of a session's MCP servers."""

from __future__ import annotations

import pytest

from amplifier_kit.mcp_servers import ShownServer
from amplifier_sdk.jsontypes import JSONObject


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ({"command": "clock", "args": ["--utc", "-v"]}, "clock --utc -v"),
        ({"command": "clock"}, "clock"),
        ({"url": "https://a.example/mcp", "command": "clock"}, "https://a.example/mcp"),
        ({"command": 7, "args": "none"}, ""),
    ],
    ids=["arguments", "command", "address", "unreadable"],
)
def test_a_server_stands_where_its_address_or_command_says(
    written: JSONObject, place: str
) -> None:
    server = ShownServer(name="a", declared_by="home", state="refused", written=written)

    assert server.place == place
