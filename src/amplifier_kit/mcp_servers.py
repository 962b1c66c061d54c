"""What is shown of a session's MCP servers: each with its state, where it was declared, and what it offers.

`tool-mcp` contributes lists of `ShownServer` to the channel `SERVERS`; nothing in them is a secret.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal, Protocol, TypeAlias

import attrs

from amplifier_kit.open_data import as_list
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["LOGINS", "SERVERS", "ServerLogin", "ShownServer", "ShownState"]

SERVERS: Final = "mcp.servers"
"""The channel of contributions."""

LOGINS: Final = "mcp.logins"
"""The channel of lists of `ServerLogin`."""

ShownState: TypeAlias = Literal[
    "connected", "connecting", "waiting", "failed", "needs login", "refused", "closed"
]
"""In use, starting, not started yet, to be retried, after the person signed in, not to be used, or ended with the
session."""


@attrs.frozen(kw_only=True)
class ShownServer:
    """One server.

    Args:
        name: its name.
        declared_by: `plan` for a plan, a profile or settings, `home` for the person's own file, `plugin` for one of
            their plugins, `project` for a file
            of the project's folder.
        state: how it is.
        problem: why it cannot be used, in one line; `None` where it can.
        written: its program or address with references to variables as they were written; literal values of
            variables and headers are left out.
        tools: the names that models call its tools by, with the names that it has for them itself.
        held_back: the tools that are not offered, with the reasons.
    """

    name: str
    declared_by: Literal["plan", "home", "plugin", "project"]
    state: ShownState
    problem: str | None = None
    written: Mapping[str, JSONValue] = attrs.field(factory=dict)
    tools: Mapping[str, str] = attrs.field(factory=dict)
    held_back: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def place(self) -> str:
        """Its address, or its command line; empty where that cannot be read."""
        if isinstance(url := self.written.get("url"), str):
            return url
        words = [self.written.get("command"), *as_list(self.written.get("args"))]
        return " ".join(word for word in words if isinstance(word, str))

    def to_dict(self) -> JSONObject:
        """Write it as JSON data."""
        return {
            "name": self.name,
            "declared_by": self.declared_by,
            "state": self.state,
            "problem": self.problem,
            **self.written,
            "tools": list(self.tools),
            "held_back": dict(self.held_back),
        }


class ServerLogin(Protocol):
    """Signs the person in to one server, and out."""

    @property
    def name(self) -> str:
        """The server's name."""

    async def sign_in(
        self,
        show: Callable[[str], Awaitable[None]],
        stored_in: Literal["keyring", "file"],
    ) -> None:
        """Let the person sign in, and store what the server grants.

        Args:
            show: shows the address that the person opens in a browser of this machine.
            stored_in: where it is stored.

        Raises:
            AmplifierError: nobody can sign in to it, or it failed; no token is in the message.
        """

    async def sign_out(self) -> bool:
        """Forget what the server granted; whether there was anything.

        Raises:
            AmplifierError: the server may not be used, or the keyring does not answer.
            OSError: the file cannot be written.
        """
