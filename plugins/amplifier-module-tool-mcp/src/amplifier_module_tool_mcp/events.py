"""The events that the module sends besides the canonical ones."""

from __future__ import annotations

from typing import Final, Literal, NotRequired, TypeAlias

from amplifier_sdk.events import Event, EventFields

__all__ = [
    "MCP_LOG",
    "MCP_SERVER",
    "MCP_WITHHELD",
    "ServerLogLine",
    "ServerState",
    "StateChanged",
    "ToolsWithheld",
]

ServerState: TypeAlias = Literal[
    "waiting", "connecting", "ready", "failed", "login", "refused", "closed"
]
"""Not started yet, starting, in use, to be retried, waiting for the person to sign in, not to be used, or ended with
the session."""


class StateChanged(EventFields):
    """A server became ready, failed or was closed; `problem` says why it failed."""

    server: str
    state: ServerState
    problem: NotRequired[str]
    tools: NotRequired[int]


class ServerLogLine(EventFields):
    """A line of a server's own log; `level` is `stderr` for what it wrote to its error output."""

    server: str
    level: str
    text: str


class ToolsWithheld(EventFields):
    """Tools of a server are not offered, by name with the reason."""

    server: str
    tools: dict[str, str]


MCP_SERVER: Final = Event[StateChanged]("mcp:server")
"""Sent when a server's state changes."""

MCP_LOG: Final = Event[ServerLogLine]("mcp:log")
"""Sent for what a server logs, redacted and up to `max_log_lines`."""

MCP_WITHHELD: Final = Event[ToolsWithheld]("mcp:withheld")
"""Sent when tools are held back."""
