"""Which servers there are: of the plan, of the person's own file and plugins, and of the project's once it is trusted.

Plugin folders have the shape that Claude Code's plugins have. Of a plugin that the person agreed to, a session has a
copy of its own: what is read and what runs is what they agreed to, whatever happens to its folder meanwhile, and what a
server leaves beside itself is no change.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

import attrs

from amplifier_kit.claude_plugins import (
    OwnPlugin,
    own_plugins,
    server_documents,
    write_copies,
)
from amplifier_kit.files.documents import read_mapping
from amplifier_kit.files.homes import amplifier_home
from amplifier_module_tool_mcp.config import McpConfig, ServerConfig, read_servers
from amplifier_module_tool_mcp.projects import ProjectServers
from amplifier_module_tool_mcp.variables import Expanded, expand
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "PluginCopies",
    "PluginServer",
    "ServerDefinition",
    "declared_servers",
    "plugin_servers",
]

_HOME_FILES: Final = ("mcp.json", "mcp.yaml")

_Source: TypeAlias = Literal["plan", "home", "plugin", "project"]


@attrs.frozen(kw_only=True)
class ServerDefinition:
    """One server as somebody declared it.

    Args:
        name: its name.
        source: who declared it.
        config: what was written; `None` where that cannot be used.
        problem: why not.
        root: the folder that a plugin's runs from.
    """

    name: str
    source: _Source
    config: ServerConfig | None
    problem: str | None = None
    root: Path | None = None

    @property
    def key(self) -> str:
        """What the server is known by: its name and what runs, or where it is, as it was written."""
        assert self.config is not None
        # Not its variables: a renewed key is no other server.
        parts: JSONValue = [
            self.name,
            self.config.command,
            list(self.config.args),
            self.config.cwd,
            self.config.url,
        ]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).hexdigest()

    def expanded(self, working_dir: Path) -> Expanded:
        """Put the values of variables in; `AMPLIFIER_WORKING_DIR` is the working directory.

        `CLAUDE_PLUGIN_ROOT` is the folder of a plugin whose server it is.

        Raises:
            MissingVariableError: a variable has none.
            ValueError: what it holds cannot be used there.
        """
        assert self.config is not None
        own = {"AMPLIFIER_WORKING_DIR": str(working_dir)}
        if self.root is not None:
            own["CLAUDE_PLUGIN_ROOT"] = str(self.root)
        return expand(self.config, {**os.environ, **own})


def declared_servers(
    config: McpConfig, project: ProjectServers, copies: PluginCopies
) -> list[ServerDefinition]:
    """Return every server that is not disabled, sorted by name; blocks."""
    found: dict[str, ServerDefinition] = {}
    if config.project_file:
        for name, entry in project.look()[0].items():
            found[name] = _declared(name, "project", entry)
    if config.home_file:
        for server in plugin_servers(copies):
            declared = _declared(server.name, "plugin", server.entry)
            found[server.name] = attrs.evolve(declared, root=server.root)
        for file in _HOME_FILES:
            path = amplifier_home() / file
            for name, entry in _of_person(path).items():
                found[name] = _declared(name, "home", entry)
    # Last, so that the plan wins over the person's file, and both over the project's.
    for name, planned in config.servers.items():
        found[name] = _declared(name, "plan", planned)
    return [
        each
        for _, each in sorted(found.items())
        if each.config is None or not each.config.disabled
    ]


def _declared(
    name: str, source: _Source, entry: ServerConfig | str
) -> ServerDefinition:
    if isinstance(entry, str):
        return ServerDefinition(name=name, source=source, config=None, problem=entry)
    return ServerDefinition(name=name, source=source, config=entry)


def _of_person(path: Path) -> Mapping[str, ServerConfig | str]:
    if not path.exists():
        return {}
    try:
        return read_servers(read_mapping(path), str(path))
    except ConfigError as error:
        # A broken file is shown as a server that cannot be used; the others still
        # start.
        return {path.name: str(error)}


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
            problem = "two plugins have a server that is called so; remove one of them"
            found[server.name] = attrs.evolve(first, entry=problem)
    yield from found.values()


def _every_server(copies: PluginCopies) -> Iterator[PluginServer]:
    try:
        plugins = own_plugins()
    except (OSError, ValueError) as error:
        problem = f"what you agreed to cannot be read: {error}"
        yield PluginServer(name="plugins", entry=problem, root=Path())
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
