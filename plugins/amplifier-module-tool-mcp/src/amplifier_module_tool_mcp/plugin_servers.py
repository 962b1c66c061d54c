"""Servers of the person's own plugin folders, in the shape that Claude Code's plugins have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from amplifier_kit.files.documents import read_mapping
from amplifier_kit.files.homes import amplifier_home
from amplifier_module_tool_mcp.config import ServerConfig
from amplifier_module_tool_mcp.serverfiles import read_servers
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["plugin_servers"]

_FILE: Final = ".mcp.json"
_MANIFEST: Final = ".claude-plugin/plugin.json"
_ROOT: Final = "${CLAUDE_PLUGIN_ROOT}"


def plugin_servers() -> Iterator[tuple[str, ServerConfig | str]]:
    """Yield the servers of each folder in `plugins` of the home folder, as `PLUGIN-SERVER`; blocks."""
    folder = amplifier_home() / "plugins"
    for plugin in sorted(folder.iterdir()) if folder.is_dir() else ():
        for path, is_manifest in ((plugin / _FILE, False), (plugin / _MANIFEST, True)):
            if not path.is_file():
                continue
            for name, server in _servers_of(path, plugin, is_manifest).items():
                yield f"{plugin.name}-{name}", server


def _servers_of(
    path: Path, plugin: Path, is_manifest: bool
) -> Mapping[str, ServerConfig | str]:
    try:
        document = read_mapping(path)
    except ConfigError as error:
        return {path.name: str(error)}
    if is_manifest:
        servers = document.get("mcpServers")
        if not isinstance(servers, dict):  # a path to the file that is read anyway
            return {}
        document = {"mcpServers": servers}
    elif "mcpServers" not in document:
        document = {"mcpServers": document}
    return read_servers(_placed(document, str(plugin)), str(path))


def _placed(document: JSONObject, plugin: str) -> JSONObject:
    def placed(value: JSONValue) -> JSONValue:
        if isinstance(value, str):
            return value.replace(_ROOT, plugin)
        if isinstance(value, list):
            return [placed(item) for item in value]
        if isinstance(value, dict):
            return {name: placed(item) for name, item in value.items()}
        return value

    return {name: placed(value) for name, value in document.items()}
