"""Which servers there are: those of the plan, of the person's own file, and of the project's once it is trusted."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

import attrs

from amplifier_kit.files.documents import read_mapping
from amplifier_kit.files.homes import amplifier_home
from amplifier_module_tool_mcp.config import McpConfig, ServerConfig
from amplifier_module_tool_mcp.plugin_servers import PluginCopies, plugin_servers
from amplifier_module_tool_mcp.projects import ProjectServers
from amplifier_module_tool_mcp.serverfiles import read_servers
from amplifier_module_tool_mcp.variables import Expanded, expand
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["ServerDefinition", "declared_servers"]

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
