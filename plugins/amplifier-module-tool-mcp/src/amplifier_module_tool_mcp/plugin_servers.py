"""Servers of the person's own plugin folders, in the shape that Claude Code's plugins have.

Of a plugin that they agreed to, a session has a copy of its own: what is read and what runs is what they agreed to,
whatever happens to its folder meanwhile, and what a server leaves beside itself is no change.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from amplifier_kit.claude_plugins import (
    OwnPlugin,
    own_plugins,
    server_documents,
    write_copies,
)
from amplifier_module_tool_mcp.config import ServerConfig
from amplifier_module_tool_mcp.serverfiles import read_servers
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["PluginCopies", "PluginServer", "plugin_servers"]


@attrs.frozen(kw_only=True)
class PluginServer:
    """A server of a plugin.

    Args:
        name: `PLUGIN-SERVER`.
        entry: what was written of it, or why it cannot be used.
        root: the folder that it runs from.
    """

    name: str
    entry: ServerConfig | str
    root: Path


@attrs.define(eq=False)
class PluginCopies:
    """The copies of one session, in a folder that only this user may enter. Its functions block."""

    _folder: Path | None = None

    def root_of(self, plugin: OwnPlugin) -> Path:
        """Return the folder that a plugin runs from: a copy of what the person agreed to, else itself."""
        if plugin.contents is None:
            return plugin.folder
        if self._folder is None:
            made = tempfile.mkdtemp(prefix="amplifier-mcp-")
            self._folder = Path(os.path.realpath(made))
        copy = self._folder / plugin.folder.name
        write_copies(copy, plugin.contents)
        return copy

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def plugin_servers(copies: PluginCopies) -> Iterator[PluginServer]:
    """Yield the servers of each folder in `plugins` of the home folder, each name once; blocks.

    Those of a plugin that is not what the person agreed to are a problem each, and none is started.
    """
    found: dict[str, PluginServer] = {}
    for server in _every_server(copies):
        first = found.setdefault(server.name, server)
        if first is not server:
            told = "two plugins have a server that is called so; remove one of them"
            found[server.name] = attrs.evolve(first, entry=told)
    yield from found.values()


def _every_server(copies: PluginCopies) -> Iterator[PluginServer]:
    try:
        plugins = own_plugins()
    except (OSError, ValueError) as error:
        told = f"what you agreed to cannot be read: {error}"
        yield PluginServer(name="plugins", entry=told, root=Path())
        return
    for plugin in plugins:
        # most plugins have none, and need no copy
        if not any(server_documents(plugin.folder)):
            continue
        root = copies.root_of(plugin)
        refused = f"the plugin {plugin.folder.name}: {plugin.refusal}"
        for file, document in server_documents(root):
            for name, server in _servers_of(file, document, plugin.folder).items():
                yield PluginServer(
                    name=f"{plugin.folder.name}-{name}",
                    entry=refused if plugin.refusal else server,
                    root=root,
                )


def _servers_of(
    file: str, document: JSONObject | ConfigError, plugin: Path
) -> Mapping[str, ServerConfig | str]:
    if isinstance(document, ConfigError):
        return {file: str(document)}
    return read_servers(document, str(plugin / file))
