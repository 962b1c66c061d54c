"""What a person is shown of servers outside a turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from amplifier_kit.mcp_servers import ShownServer, ShownState
from amplifier_module_tool_mcp.config import ServerConfig
from amplifier_module_tool_mcp.events import ServerState
from amplifier_module_tool_mcp.server import Server
from amplifier_module_tool_mcp.server_tools import McpTool
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.secret import WITHHELD

__all__ = ["show_server"]

_REFERENCE: Final = "${"
_STATES: Final[Mapping[ServerState, ShownState]] = {
    "waiting": "waiting",
    "connecting": "connecting",
    "ready": "connected",
    "failed": "failed",
    "refused": "refused",
    "closed": "closed",
}


def show_server(server: Server, tools: Iterable[McpTool]) -> ShownServer:
    """Describe a server and those of its tools that the session has."""
    config = server.declared.config
    return ShownServer(
        name=server.name,
        declared_by=server.declared.source,
        state=_STATES[server.state],
        problem=server.problem,
        written={} if config is None else _written(config, server),
        tools={made.name: made.definition.name for made in tools},
        held_back=dict(server.offers.withheld),
    )


def _written(config: ServerConfig, server: Server) -> JSONObject:
    clean = server.teller.clean
    if config.url is not None:
        return {"url": clean(config.url), "headers": _pairs(config.headers)}
    place: JSONValue = None if config.cwd is None else clean(config.cwd)
    return {
        "command": clean(config.command or ""),
        "args": [clean(argument) for argument in config.args],
        "env": _pairs(config.env),
        "cwd": place,
    }


def _pairs(values: Mapping[str, str]) -> JSONObject:
    """Show references, and no value that was written out: whether that is secret is not known."""
    return {
        name: value if _REFERENCE in value else WITHHELD
        for name, value in values.items()
    }
