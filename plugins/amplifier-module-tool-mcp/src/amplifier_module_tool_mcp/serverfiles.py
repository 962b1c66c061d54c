"""Files that list servers, as several products write them: `mcpServers` or `servers`, each with its configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping

from amplifier_kit.claude_plugins import SERVER_KEYS
from amplifier_kit.files.documents import DocumentError, parse_yaml
from amplifier_module_tool_mcp.config import ServerConfig
from amplifier_sdk.configuration import read_config
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["parse_servers", "read_servers"]


def parse_servers(name: str, content: bytes) -> dict[str, ServerConfig | str]:
    """Read a file's content: the servers by name, or what is wrong with one; a broken file counts as one server.

    Args:
        name: the file's name; JSON when it ends in `.json`, else YAML.
        content: what it holds.
    """
    try:
        text = content.decode("utf-8-sig")
        document: JSONValue
        if name.endswith(".json"):
            document = json.loads(text)
        else:
            document = parse_yaml(text)
    except (ValueError, RecursionError, DocumentError) as error:
        return {name: f"{name} cannot be read: {error}"}
    if isinstance(document, dict):
        return read_servers(document, name)
    return {name: f"{name} holds no mapping"}


def read_servers(
    document: Mapping[str, JSONValue], name: str
) -> dict[str, ServerConfig | str]:
    """Read the servers of a document; what is wrong with one does not touch the others."""
    # A misspelt key would mean no servers at all, without a word.
    unknown = [key for key in document if key not in SERVER_KEYS]
    if unknown:
        return {name: f"{name} has the unknown key {unknown[0]!a}; write mcpServers"}
    found: dict[str, ServerConfig | str] = {}
    for key in SERVER_KEYS:
        entries = document.get(key, {})
        if not isinstance(entries, dict):
            return {name: f"{key} of {name} is no mapping"}
        for server, entry in entries.items():
            found[server] = _read_server(entry, f"server {server!a} of {name}")
    return found


def _read_server(entry: JSONValue, subject: str) -> ServerConfig | str:
    if not isinstance(entry, dict):
        return f"{subject} is no mapping"
    try:
        return read_config(ServerConfig, entry, subject=subject)
    except (ConfigError, ValueError) as error:
        return str(error)
