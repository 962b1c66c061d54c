"""What a person is shown of servers outside a turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal

import attrs
from anyio import to_thread

from amplifier_kit.mcp_servers import ShownServer, ShownState
from amplifier_module_tool_mcp.config import ServerConfig
from amplifier_module_tool_mcp.events import ServerState
from amplifier_module_tool_mcp.links import ServerRefusedError
from amplifier_module_tool_mcp.server import Server
from amplifier_module_tool_mcp.server_tools import McpTool
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.secret import WITHHELD

if TYPE_CHECKING:
    # imports the protocol's library
    from amplifier_module_tool_mcp.oauth.authorization import Authorization, Show

__all__ = ["Login", "show_server"]

_REFERENCE: Final = "${"
_STATES: Final[Mapping[ServerState, ShownState]] = {
    "waiting": "waiting",
    "connecting": "connecting",
    "ready": "connected",
    "failed": "failed",
    "login": "needs login",
    "refused": "refused",
    "closed": "closed",
}


def show_server(server: Server, tools: Iterable[McpTool]) -> ShownServer:
    """Describe a server and those of its tools that the session has."""
    config = server.declared.config
    return ShownServer(
        name=server.name,
        declared_by=server.declared.source,
        state=_STATES[server.state],
        problem=server.problem,
        written={} if config is None else _written(config, server),
        tools={made.name: made.definition.name for made in tools},
        held_back=dict(server.offers.withheld),
    )


@attrs.frozen
class Login:
    """Signs the person in to a server, and out."""

    server: Server

    @property
    def name(self) -> str:
        """The server's name."""
        return self.server.name

    async def sign_in(self, show: Show, stored_in: Literal["keyring", "file"]) -> None:
        """Let the person sign in, and store what the server grants.

        Raises:
            AmplifierError: nobody can sign in to it, or it failed.
        """
        authorization = await self._authorization()
        try:
            await authorization.sign_in(show, stored_in)
        except AmplifierError as error:
            # what the server said is in it
            raise AmplifierError(self.server.notices.clean(str(error))) from error

    async def sign_out(self) -> bool:
        """Forget what the server granted; whether there was anything.

        Raises:
            AmplifierError: it may not be used, or the keyring does not answer.
            OSError: the file cannot be written.
        """
        authorization = await self._authorization()
        return await to_thread.run_sync(authorization.grants.remove, authorization.url)

    async def _authorization(self) -> Authorization:
        try:
            found = await self.server.links.authorization(self.server.declared)
        except ServerRefusedError as error:
            raise AmplifierError(
                f"The MCP server {self.name} cannot be used: {error}"
            ) from error
        if found is None:
            raise AmplifierError(
                f"Nobody signs in to the MCP server {self.name}: it is a program, or its headers say who calls"
            )
        return found


def _written(config: ServerConfig, server: Server) -> JSONObject:
    clean = server.notices.clean
    if config.url is not None:
        return {"url": clean(config.url), "headers": _pairs(config.headers)}
    place: JSONValue = None if config.cwd is None else clean(config.cwd)
    return {
        "command": clean(config.command or ""),
        "args": [clean(argument) for argument in config.args],
        "env": _pairs(config.env),
        "cwd": place,
    }


def _pairs(values: Mapping[str, str]) -> JSONObject:
    """Show references, and no value that was written out: whether that is secret is not known."""
    return {
        name: value if _REFERENCE in value else WITHHELD
        for name, value in values.items()
    }
