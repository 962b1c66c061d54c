"""Servers of the person's own plugin folders, in the shape that Claude Code's plugins have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from amplifier_kit.claude_plugins import ROOT_VARIABLE, own_plugins, server_documents
from amplifier_module_tool_mcp.config import ServerConfig
from amplifier_module_tool_mcp.serverfiles import read_servers
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["plugin_servers"]


def plugin_servers() -> Iterator[tuple[str, ServerConfig | str]]:
    """Yield the servers of each folder in `plugins` of the home folder, as `PLUGIN-SERVER`; blocks.

    Those of a plugin that is not what the person agreed to are a problem each, and none is started.
    """
    try:
        plugins = own_plugins()
    except (OSError, ValueError) as error:
        yield "plugins", f"what you agreed to cannot be read: {error}"
        return
    for plugin in plugins:
        refused = f"the plugin {plugin.folder.name}: {plugin.refusal}"
        for file, document in server_documents(plugin.folder):
            for name, server in _servers_of(file, document, plugin.folder).items():
                entry = refused if plugin.refusal else server
                yield f"{plugin.folder.name}-{name}", entry


def _servers_of(
    file: str, document: JSONObject | ConfigError, plugin: Path
) -> Mapping[str, ServerConfig | str]:
    if isinstance(document, ConfigError):
        return {file: str(document)}
    return read_servers(_placed(document, str(plugin)), str(plugin / file))


def _placed(document: JSONObject, plugin: str) -> JSONObject:
    def placed(value: JSONValue) -> JSONValue:
        if isinstance(value, str):
            return value.replace(ROOT_VARIABLE, plugin)
        if isinstance(value, list):
            return [placed(item) for item in value]
        if isinstance(value, dict):
            return {name: placed(item) for name, item in value.items()}
        return value

    return {name: placed(value) for name, value in document.items()}
