"""MCP servers in settings: what a person typed, as `tool-mcp` is configured with it; added and removed by scope."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.directories import AppDirs
from amplifier.app.settings.changes import revise
from amplifier.app.settings.expansion import literally
from amplifier.app.settings.layers import Key, find_module
from amplifier.app.settings.secrets import SecretStore
from amplifier.app.settings.settings import load_settings
from amplifier_kit.open_data import as_list, as_object
from amplifier_kit.redaction import secrets_in
from amplifier_sdk.errors import ConfigError, Problem, did_you_mean
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.secret import is_secret_name

__all__ = [
    "MODULE",
    "DeclaredServer",
    "ServerEntry",
    "add_server",
    "declared_servers",
    "mount_module",
    "remove_server",
    "unset_variables",
]

MODULE: Final = "tool-mcp"
"""The module that connects to servers."""

_LIST: Final[Key] = ("modules", "tools")
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_))*(?<!_)")
_LONGEST_NAME: Final = 40
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_WRITTEN_OUT: Final = (
    "has a secret that is written out; keep it with"
    " 'amplifier config secret set NAME' and write '${NAME}' here"
)
_GIVEN: Final = "AMPLIFIER_WORKING_DIR"


@attrs.frozen(kw_only=True)
class ServerEntry:
    """A server as a person typed it.

    Args:
        target: an address, or a program and its arguments.
        env: variables as `NAME=VALUE`, or `NAME` for the one of that name.
        headers: headers as `NAME: VALUE`.
    """

    target: Sequence[str]
    env: Sequence[str] = ()
    headers: Sequence[str] = ()

    def to_config(self) -> JSONObject:
        """Return what the module is configured with.

        Raises:
            ConfigError: it is no server, or has a secret that is written out; no secret is in the message.
        """
        first, *more = self.target
        found: JSONObject
        if not more and first.startswith(("http://", "https://")):
            found = {"url": first, "headers": self._headers()}
        else:
            found = {"command": first, "args": [*more], "env": self._env()}
        problems = [
            *self._misplaced(found),
            *(
                Problem(path, f"{path.partition('.')[2] or path} {_WRITTEN_OUT}")
                for path, text in _texts(found)
                if _is_plain_secret(path, text)
            ),
        ]
        if problems:
            raise ConfigError(problems, subject="MCP server")
        return {key: value for key, value in found.items() if value not in ({}, [])}

    def _misplaced(self, found: Mapping[str, JSONValue]) -> Iterable[Problem]:
        if "url" in found and self.env:
            yield Problem("env", "a server at an address has headers, no variables")
        if "command" in found and self.headers:
            yield Problem("headers", "a program has variables (--env), no headers")

    def _env(self) -> JSONObject:
        pairs = [given.partition("=") for given in self.env]
        for name, _, _ in pairs:
            if not _VARIABLE.fullmatch(name):
                raise ConfigError.of(
                    "--env", f"NAME or NAME=VALUE; got {name!r}", subject="MCP server"
                )
        return {
            name: value if equals else f"${{{name}}}" for name, equals, value in pairs
        }

    def _headers(self) -> JSONObject:
        pairs = [given.partition(":") for given in self.headers]
        for name, colon, _ in pairs:
            if not colon or not _HEADER.fullmatch(name):
                raise ConfigError.of(
                    "--header", f"'NAME: VALUE'; got {name!r}", subject="MCP server"
                )
        return {name: value.strip() for name, _, value in pairs}


@attrs.frozen(kw_only=True)
class DeclaredServer:
    """A server of the settings: its name, and the scope and the file that declare it."""

    name: str
    scope: str
    path: Path


def add_server(
    name: str, config: JSONObject, *, scope: str, dirs: AppDirs, force: bool = False
) -> Path:
    """Declare a server in a scope's settings and return their file; nothing is started.

    Args:
        name: what it is called; part of its tools' names.
        config: what `ServerEntry.to_config` returns.
        scope: `local`, `project` or `user`.
        dirs: where the files stand.
        force: whether it takes the place of one of its name.

    Raises:
        ConfigError: the name is none, or taken in this scope; or the settings have problems.
        AmplifierError: the scope has no file here, or others wrote it.
        OSError: the file cannot be written.
    """
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise ConfigError.of(
            "NAME",
            f"up to {_LONGEST_NAME} letters, digits, '-' and single '_', such as 'git'; got {name!r}",
            subject="MCP server",
        )

    def added(values: JSONObject) -> list[tuple[Key, JSONValue]]:
        listed, index = _module_of(values)
        if name in _servers_of(listed, index) and not force:
            raise ConfigError.of(
                name,
                f"the scope {scope} has it already; --force replaces it",
                subject="MCP server",
            )
        # The module fills references in when it connects: a variable that is not set concerns this server alone.
        entry = _literally(config)
        if index == len(listed):
            whole: JSONObject = {"module": MODULE, "config": {"servers": {name: entry}}}
            return [((*_LIST, index), whole)]
        place: Key = (*_LIST, index, "config", "servers", name)
        return [(place, None), (place, entry)]

    return revise(scope, added, dirs)


def remove_server(name: str, *, scope: str, dirs: AppDirs) -> Path:
    """Take a server out of a scope's settings and return their file; the module goes with the last one.

    Raises:
        ConfigError: the scope has none of that name; says which has, or names the nearest.
        AmplifierError: the scope has no file here, or others wrote it.
        OSError: the file cannot be written.
    """

    def removed(values: JSONObject) -> list[tuple[Key, JSONValue]]:
        listed, index = _module_of(values)
        servers = _servers_of(listed, index)
        if name not in servers:
            raise _unknown(name, scope, servers, dirs)
        config = as_object(as_object(listed[index]).get("config"))
        if len(servers) == 1 and len(config) == 1:
            return [(_LIST if len(listed) == 1 else (*_LIST, index), None)]
        return [((*_LIST, index, "config", "servers", name), None)]

    return revise(scope, removed, dirs)


def declared_servers(dirs: AppDirs) -> list[DeclaredServer]:
    """Return the servers of all settings that hold, the strongest scope first.

    Raises:
        ConfigError: a file of settings has problems.
    """
    return [
        DeclaredServer(name=name, scope=layer.scope, path=layer.path)
        for layer in load_settings(dirs).layers
        for name in _servers_of(*_module_of(layer.values))
    ]


def mount_module(scope: str, dirs: AppDirs) -> Path:
    """Let every session have the module that reads the files of servers; return the scope's file.

    Raises:
        ConfigError: the settings have problems.
        AmplifierError: the scope has no file here, or others wrote it.
        OSError: the file cannot be written.
    """

    def mounted(values: JSONObject) -> Iterator[tuple[Key, JSONValue]]:
        listed, index = _module_of(values)
        if index == len(listed):
            yield (*_LIST, index), {"module": MODULE}
        # Written out, so that the module stays when the last server of the settings goes.
        yield (*_LIST, index, "config", "project_file"), True

    return revise(scope, mounted, dirs)


def unset_variables(config: Mapping[str, JSONValue], dirs: AppDirs) -> list[str]:
    """Return the variables that a server refers to and that are neither set nor stored.

    Raises:
        PrivateFileError: others may have written the file of secrets, or it is damaged.
    """
    named = {
        name: None
        for _, text in _texts(config)
        for name, default in _REFERENCE.findall(text)
        if not default and name != _GIVEN
    }
    stored = SecretStore.of(dirs).names()
    return [name for name in named if not os.environ.get(name) and name not in stored]


def _module_of(values: JSONObject) -> tuple[list[JSONValue], int]:
    listed = as_list(as_object(values.get("modules")).get("tools"))
    return listed, find_module(listed, MODULE)


def _servers_of(listed: Sequence[JSONValue], index: int) -> JSONObject:
    if index == len(listed):
        return {}
    config = as_object(as_object(listed[index]).get("config"))
    return as_object(config.get("servers"))


def _unknown(
    name: str, scope: str, servers: Iterable[str], dirs: AppDirs
) -> ConfigError:
    known = sorted(servers)
    hint = did_you_mean(name, known) or f"; it has {', '.join(known) or 'none'}"
    for each in declared_servers(dirs):
        if each.name == name:
            hint = f"; it is in {each.path} (--scope {each.scope})"
            break
    return ConfigError.of(
        name,
        f"the scope {scope} has no server of this name{hint}",
        subject="MCP server",
    )


def _texts(
    value: JSONValue | Mapping[str, JSONValue], path: str = ""
) -> list[tuple[str, str]]:
    if isinstance(value, str):
        return [(path, value)]
    if isinstance(value, Mapping):
        begin = f"{path}." if path else ""
        return [
            found
            for name, item in value.items()
            for found in _texts(item, f"{begin}{name}")
        ]
    if isinstance(value, list):
        return [
            found
            for number, item in enumerate(value)
            for found in _texts(item, f"{path}[{number}]")
        ]
    return []


def _is_plain_secret(path: str, text: str) -> bool:
    if "${" in text:
        # What stands beside a reference is a scheme, as in `Bearer ${TOKEN}`.
        text = _REFERENCE.sub("", text)
    elif is_secret_name(path.rpartition(".")[2]) and "." in path:
        return bool(text)
    return next(secrets_in(text), None) is not None


def _literally(value: JSONValue) -> JSONValue:
    if isinstance(value, str):
        return literally(value)
    if isinstance(value, dict):
        return {name: _literally(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_literally(item) for item in value]
    return value
