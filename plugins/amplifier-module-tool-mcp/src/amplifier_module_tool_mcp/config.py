"""The module's configuration: which servers there are, what of them is offered, and how much they may send.

Files list servers as several products write them: `mcpServers` or `servers`, each with its configuration.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal

import attrs

from amplifier_kit.claude_plugins import SERVER_KEYS
from amplifier_kit.files.documents import DocumentError, parse_yaml
from amplifier_kit.vendors.headers import is_header_value
from amplifier_sdk.bounds import count, seconds
from amplifier_sdk.configuration import read_config
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["McpConfig", "ServerConfig", "parse_servers", "read_servers"]

_LONGEST_CALL: Final = 3600
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def _most_seconds(
    instance: object, attribute: attrs.Attribute[float], value: object
) -> None:
    """Refuse what a call cannot wait for."""
    seconds(instance, attribute, value)
    if isinstance(value, (int, float)) and value > _LONGEST_CALL:
        raise ValueError(
            f"{attribute.name} is at most {_LONGEST_CALL} seconds; got {value!r}"
        )


def _sendable(_: object, __: object, headers: Mapping[str, str]) -> None:
    """Refuse headers that cannot be sent; their values may be secret and are not told."""
    for name, value in headers.items():
        if not _HEADER.fullmatch(name) or not is_header_value(value):
            raise ValueError(
                f"the header {name!a} holds a line end, or a character that no header may hold"
            )


@attrs.frozen(kw_only=True)
class ServerConfig:
    """One server: a program (`command`), or an address (`url`).

    Args:
        type: `stdio` or `http`; default what `command` or `url` says.
        command: the program, searched in `PATH` when it has no slash.
        args: its arguments.
        env: variables that it is given, with their values.
        env_allow: variables of the process that it is given besides the ordinary ones; `*` for any characters.
        cwd: the folder it starts in, from the working directory on; default an empty one of its own.
        url: the address of its HTTP endpoint.
        headers: sent with every request.
        disabled: leave it out.
        tools: the names of the tools that are offered; `*` for any characters.
        exclude_tools: those that are not, whatever `tools` says.
        require_approval: the names of the tools that a person is asked about before each call.
        call_timeout: seconds that a call may take; default the module's.
    """

    type: Literal["stdio", "http", "streamable-http", "sse"] | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    env_allow: tuple[str, ...] = ()
    cwd: str | None = None
    url: str | None = attrs.field(default=None, repr=False)
    headers: Mapping[str, str] = attrs.field(
        factory=dict, repr=False, validator=_sendable
    )
    disabled: bool = False
    tools: tuple[str, ...] = ("*",)
    exclude_tools: tuple[str, ...] = ()
    require_approval: tuple[str, ...] = ()
    call_timeout: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(_most_seconds)
    )

    def __attrs_post_init__(self) -> None:
        if self.type == "sse":
            raise ValueError(
                "type 'sse' is a transport that the protocol gave up; use 'http' with the server's new url"
            )
        if (self.command is None) == (self.url is None):
            raise ValueError("a server has either a command or a url")
        if self.type is not None and (self.type == "stdio") != (
            self.command is not None
        ):
            raise ValueError(
                f"type {self.type!r} does not go with {'command' if self.command else 'url'}"
            )
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise ValueError("url begins with http:// or https://")
        for key, text in self._texts():
            if not _is_passable(text):
                raise ValueError(
                    f"{key} holds a NUL or half of a surrogate pair, which no program can be given"
                )
        for key in (
            ("args", "env", "env_allow", "cwd")
            if self.url is not None
            else ("headers",)
        ):
            if getattr(self, key):
                raise ValueError(
                    f"{key} does not go with {'url' if self.url is not None else 'command'}"
                )

    def _texts(self) -> Iterator[tuple[str, str]]:
        yield from (("command", self.command or ""), ("cwd", self.cwd or ""))
        yield from (("args", text) for text in self.args)
        yield from (("env", name) for name in self.env)
        yield from ((f"env.{name}", value) for name, value in self.env.items())


def _is_passable(text: str) -> bool:
    """Tell whether the system takes a text: it has no NUL and no half of a surrogate pair."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


@attrs.frozen(kw_only=True)
class McpConfig:
    """What `config` of the plan may hold.

    Args:
        servers: by name; one here hides one of that name in a file.
        home_file: whether the servers of the person's own `mcp.json` and plugins are there as well.
        project_file: whether those of the project's `.mcp.json` are, once a person trusts it.
        start_timeout: seconds that the session's start waits for servers; slower ones join later.
        connect_timeout: seconds that a server has to answer when it starts.
        call_timeout: seconds that a call may take.
        max_message_bytes: the most that a server may send in one message.
        max_result_chars: the most text of one result; of longer ones the head and the tail.
        max_tools: the most tools of one server.
        max_description_chars: how much of a tool's description is shown.
        max_log_lines: how many lines of a server's own log are passed on, for each connection.
        pin_definitions: whether tools whose definition changed are held back until a person agrees.
        resources: whether servers' resources can be listed and read.
        prompts: whether servers' prompts are offered as commands.
        roots: whether programs get the working directory when they ask for roots.
    """

    servers: Mapping[str, ServerConfig] = attrs.field(factory=dict)
    home_file: bool = True
    project_file: bool = True
    start_timeout: float = attrs.field(default=10.0, validator=seconds)
    connect_timeout: float = attrs.field(default=30.0, validator=seconds)
    call_timeout: float = attrs.field(default=60.0, validator=_most_seconds)
    max_message_bytes: int = attrs.field(
        default=8 * 1024 * 1024, validator=[count, attrs.validators.ge(1024)]
    )
    max_result_chars: int = attrs.field(
        default=50_000, validator=[count, attrs.validators.ge(100)]
    )
    max_tools: int = attrs.field(default=100, validator=count)
    max_description_chars: int = attrs.field(default=2000, validator=count)
    max_log_lines: int = attrs.field(default=200, validator=count)
    pin_definitions: bool = True
    resources: bool = True
    prompts: bool = True
    roots: bool = True


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
