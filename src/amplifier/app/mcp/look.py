"""A look at MCP servers: a session with nothing but the module that connects to them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Final, TypeVar

import attrs

from amplifier.app.mcp.entries import MODULE
from amplifier.app.plan_entries import entries
from amplifier.app.sessions.composition import Composition
from amplifier.app.sessions.opened import open_session
from amplifier.app.sessions.tool_calls import ToolShown, show_tools
from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier_kit.installation import install_command
from amplifier_kit.mcp_servers import LOGINS, SERVERS, ServerLogin, ShownServer
from amplifier_kit.open_data import as_object
from amplifier_kit.trust import TrustDecision
from amplifier_sdk.errors import AmplifierError, ConfigError, did_you_mean
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "ServersReport",
    "is_read",
    "look_at_servers",
    "open_login",
    "require_package",
]

_PACKAGE: Final = "amplifier_module_tool_mcp"
_MORE_SECONDS: Final = 1.0

C = TypeVar("C")


@attrs.frozen(kw_only=True)
class ServersReport:
    """What was seen.

    Args:
        servers: the servers, by name.
        tools: their tools as a session has them, by the names that models use.
        pending: what of the project's folder a person has not decided on.
    """

    servers: tuple[ShownServer, ...] = ()
    tools: Mapping[str, ToolShown] = attrs.field(factory=dict)
    pending: tuple[TrustDecision, ...] = ()

    def require(self, name: str) -> ShownServer:
        """Return the server of a name.

        Raises:
            ConfigError: there is none; names the nearest.
        """
        known = {server.name: server for server in self.servers}
        if name in known:
            return known[name]
        raise _unknown(name, list(known))


def require_package() -> None:
    """Check that the module that connects to servers is installed.

    Raises:
        AmplifierError: it is not; names the command that installs it.
    """
    if find_spec(_PACKAGE) is None:
        raise AmplifierError(
            f"MCP servers need a package: {install_command('amplifier[mcp]')}"
        )


def is_read(composition: Composition) -> bool:
    """Tell whether sessions of a composition read the files in which servers are declared."""
    return any(
        entry.get("module") == MODULE for entry in entries(composition.plan, "tools")
    )


async def look_at_servers(composition: Composition, timeout: float) -> ServersReport:
    """Connect to the servers of new sessions, list their tools, and end the connections.

    Servers of a project's folder that nobody trusted are not started.

    Args:
        composition: what new sessions are made of.
        timeout: seconds that each server has to answer.

    Raises:
        AmplifierError: the module is not installed, or cannot be mounted.
        ConfigError: what the settings or the profile say of it does not fit.
    """
    async with _opened(composition, timeout) as coordinator:
        shown = await coordinator.collect_contributions(SERVERS)
        pending = await coordinator.collect_contributions("trust.pending")
        tools = {tool.name: tool for tool in show_tools(coordinator.tools)}
    return ServersReport(
        servers=tuple(_each(shown, ShownServer)),
        tools=tools,
        pending=tuple(_each(pending, TrustDecision)),
    )


@asynccontextmanager
async def open_login(
    composition: Composition, name: str, timeout: float
) -> AsyncGenerator[ServerLogin, None]:
    """Yield what signs the person in to a server, and out.

    Args:
        composition: what new sessions are made of.
        name: the server.
        timeout: seconds that a request to it may take.

    Raises:
        AmplifierError: the module is not installed, or cannot be mounted.
        ConfigError: there is no such server; names the nearest.
    """
    async with _opened(composition, timeout) as coordinator:
        contributed = await coordinator.collect_contributions(LOGINS)
        logins: dict[str, ServerLogin] = {
            login.name: login
            for each in contributed
            if isinstance(each, Sequence)
            for login in each
        }
        if name not in logins:
            raise _unknown(name, list(logins))
        yield logins[name]


@asynccontextmanager
async def _opened(
    composition: Composition, timeout: float
) -> AsyncGenerator[ModuleCoordinator, None]:
    require_package()
    plan: JSONObject = {
        "session": dict(as_object(composition.plan.get("session"))),
        "tools": _limited(entries(composition.plan, "tools"), timeout),
    }
    alone = attrs.evolve(composition, plan=plan, written=plan, profile=None)
    async with open_session(alone, needs_provider=False) as opened:
        for failure in opened.session.failures:
            raise AmplifierError(f"MCP servers cannot be checked: {failure}")
        yield opened.session.coordinator


def _unknown(name: str, known: Sequence[str]) -> ConfigError:
    hint = did_you_mean(name, known) or f"; known: {', '.join(known) or 'none'}"
    return ConfigError.of(name, f"there is no such server{hint}", subject="MCP server")


def _each(contributed: Sequence[object], cls: type[C]) -> Iterator[C]:
    """Yield what is of a class in lists that modules contributed."""
    for listed in contributed:
        if isinstance(listed, Sequence):
            yield from (each for each in listed if isinstance(each, cls))


def _limited(tools: Sequence[JSONObject], timeout: float) -> list[JSONValue]:
    """Return the module's entries, waiting for every server as long as one may take to answer."""
    own = [entry for entry in tools if entry.get("module") == MODULE]
    more = {"connect_timeout": timeout, "start_timeout": timeout + _MORE_SECONDS}
    return [
        {**entry, "config": {**as_object(entry.get("config")), **more}}
        for entry in own or [{"module": MODULE}]
    ]
