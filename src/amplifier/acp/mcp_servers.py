"""The MCP servers that an editor passes: part of the session's plan while it is open, and never recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Final

import attrs

from amplifier.acp.params import objects_param, refused, text_param
from amplifier.app.plan_entries import entries
from amplifier.app.sessions.composition import Composition
from amplifier.kernel.plans.overlays import merge_plans
from amplifier_kit.open_data import as_object
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["EditorServers", "read_servers"]

_MODULE: Final = "tool-mcp"
_PACKAGE: Final = "amplifier_module_tool_mcp"


@attrs.frozen
class EditorServers:
    """Servers by name, as `tool-mcp` is configured; they may hold keys."""

    servers: Mapping[str, JSONValue] = attrs.field(factory=dict, repr=False)

    def added(self, composition: Composition) -> tuple[Composition, list[str]]:
        """Add them to what a session is made of; return it, and what the person should know.

        A server of the plan keeps its name: what guards it there, an editor must not take away.
        """
        if not self.servers:
            return composition, []
        if find_spec(_PACKAGE) is None:
            message = "The editor's MCP servers are not used; install amplifier-module-tool-mcp."
            return composition, [message]
        config: JSONObject = {"home_file": False, "project_file": False}
        own: JSONObject = {}
        for entry in entries(composition.plan, "tools"):
            if entry.get("module") == _MODULE:
                config = as_object(entry.get("config"))
                own = as_object(config.get("servers"))
        taken = [name for name in self.servers if name in own]
        config["servers"] = {**self.servers, **own}
        tool: JSONObject = {"module": _MODULE, "config": config}
        plan = as_object(merge_plans(composition.plan, {"tools": [tool]}))
        notices = [
            f"The editor's MCP server {name!r:.60} is not used: the session has one of that name."
            for name in taken
        ]
        # `written` is what is recorded, and stays as it is: the editor passes its
        # servers, and their keys, each time.
        return attrs.evolve(
            composition, plan=plan, written=composition.written
        ), notices


def read_servers(given: Sequence[JSONObject]) -> EditorServers:
    """Read what an editor passes.

    Raises:
        RpcError: a server is not as it must be.
    """
    return EditorServers(
        {text_param(server, "name"): _config(server) for server in given}
    )


def _config(server: JSONObject) -> JSONObject:
    kind = server.get("type", "stdio")
    if kind == "http":
        headers = dict(_pairs(server, "headers"))
        return {"type": "http", "url": text_param(server, "url"), "headers": headers}
    if kind != "stdio":
        raise refused("mcpServers.type", "stdio or http")
    args = server.get("args", [])
    if not isinstance(args, list) or not all(isinstance(arg, str) for arg in args):
        raise refused("mcpServers.args", "a list of texts")
    return {
        "type": "stdio",
        "command": text_param(server, "command"),
        "args": args,
        "env": dict(_pairs(server, "env")),
    }


def _pairs(server: JSONObject, key: str) -> Iterator[tuple[str, JSONValue]]:
    for pair in objects_param(server, key):
        value = pair.get("value")
        if not isinstance(value, str):
            raise refused(f"mcpServers.{key}", "names with values")
        yield text_param(pair, "name"), value
