"""The MCP servers that a plugin folder declares, as its author wrote them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from amplifier_kit.claude_plugins.folders import path_inside
from amplifier_kit.files.documents import read_mapping
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["SERVER_KEYS", "server_documents"]

SERVER_KEYS: Final = ("mcpServers", "servers")
"""Under which a file has its servers."""

_FILE: Final = ".mcp.json"
_MANIFEST: Final = ".claude-plugin/plugin.json"
_KEY: Final = SERVER_KEYS[0]


def server_documents(folder: Path) -> Iterator[tuple[str, JSONObject | ConfigError]]:
    """Yield each file that declares servers, with `mcpServers` as it holds them, or why it cannot be read; blocks.

    They stand in `.mcp.json`, with or without `mcpServers` around them, in the manifest, or in files that it names.

    Args:
        folder: the plugin's folder.
    """
    named: JSONValue = None
    if (folder / _MANIFEST).is_file():
        manifest = _read(folder / _MANIFEST)
        if isinstance(manifest, ConfigError):
            yield "plugin.json", manifest
        else:
            named = manifest.get(_KEY)
    if isinstance(named, Mapping):
        yield "plugin.json", {_KEY: dict(named)}
        named = None
    for path in dict.fromkeys((folder / _FILE, *_named(folder, named))):
        if path.is_file():
            document = _read(path)
            if isinstance(document, dict) and _KEY not in document:
                document = {_KEY: document}
            yield path.name, document


def _named(folder: Path, named: JSONValue) -> Iterator[Path]:
    for entry in named if isinstance(named, list) else [named]:
        path = path_inside(folder, entry)
        if path is not None:
            yield folder / path.relative_to(folder.resolve())


def _read(path: Path) -> JSONObject | ConfigError:
    try:
        return read_mapping(path)
    except ConfigError as error:
        return error
