"""One server in one session: connected when it is needed, watched, and given up and retried when it fails.

The connection lives in a task of its own, which is the only one that opens and closes it. What it offers is what its
definitions were when a person agreed to them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final

import anyio
import attrs
from anyio.abc import TaskGroup

from amplifier_kit.trust.untrusted import UNTRUSTED, mark_untrusted
from amplifier_module_tool_mcp.config import McpConfig
from amplifier_module_tool_mcp.connection import ServerConnection, TooSlowError
from amplifier_module_tool_mcp.elicitation import Elicitations
from amplifier_module_tool_mcp.events import ServerState, StateChanged
from amplifier_module_tool_mcp.links import Links, ServerRefusedError
from amplifier_module_tool_mcp.notices import ServerNotices
from amplifier_module_tool_mcp.offers import Offers
from amplifier_module_tool_mcp.results import NoAnswer, words_of
from amplifier_module_tool_mcp.server_definitions import ServerDefinition
from amplifier_sdk.errors import ToolError

if TYPE_CHECKING:
    from mcp import MCPError  # takes most of a second to import
    from mcp.client import Client

__all__ = ["Server"]

_FIRST_WAIT: Final = 1.0
_LONGEST_WAIT: Final = 60.0
_PING_SECONDS: Final = 5.0


@attrs.define(eq=False, kw_only=True)
class Server:
    """One server.

    Args:
        declared: what was written of it.
        config: the module's configuration.
        links: makes the connections.
        notices: reports what happens.
        offers: what of it is offered.
        tasks: where its task runs; ends with the session.
        refreshed: called when what it offers may have changed.
    """

    declared: ServerDefinition
    config: McpConfig
    links: Links
    notices: ServerNotices
    offers: Offers
    tasks: TaskGroup
    refreshed: Callable[[Server], Awaitable[None]]
    state: ServerState = "waiting"
    problem: str | None = None
    has_resources: bool = False
    has_prompts: bool = False
    _connection: ServerConnection | None = None
    _failures: int = 0
    _retry_at: float = -inf
    _is_suspect: bool = False

    @property
    def name(self) -> str:
        """Its name."""
        return self.declared.name

    @property
    def call_timeout(self) -> float:
        """How many seconds a call may take."""
        own = None
        if self.declared.config is not None:
            own = self.declared.config.call_timeout
        return own or self.config.call_timeout

    def start(self) -> anyio.Event:
        """Begin to connect, unless that was done; return what is set when it is ready or has failed."""
        if self._connection is None:
            self._connection = ServerConnection(
                declared=self.declared,
                config=self.config,
                links=self.links,
                notices=self.notices,
                offers=self.offers,
            )
            self.state = "connecting"
            self.tasks.start_soon(self._run, self._connection, name=f"mcp:{self.name}")
        return self._connection.settled

    async def client(self) -> Client:
        """Return the connection's client; a connection is made anew where there is none.

        Raises:
            ToolError: there is none, and why.
        """
        await self._leave_if_silent()
        connection = self._connection
        if connection is not None and connection.is_ending:
            await connection.over.wait()
        if self._connection is None:
            if self.state in ("refused", "closed"):
                raise self._error()
            # An error at once, so that the model can do something else than wait.
            if (left := self._retry_at - anyio.current_time()) > 0:
                raise self._error(f"; it is retried in {left:.0f} s")
        await self.start().wait()
        if (client := self.ready) is None:
            raise self._error()
        return client

    @property
    def ready(self) -> Client | None:
        """The connection's client, where there is one by now."""
        if self._connection is None:
            return None
        return self._connection.client

    @property
    def elicitations(self) -> Elicitations:
        """What brings its questions to the call that runs; only while it is ready."""
        assert self._connection is not None
        return self._connection.elicitations

    def failed(self, error: MCPError) -> None:
        """Draw the consequences of a request that failed.

        One that ended the session makes the next use begin another. One without an answer makes it ask for a sign of
        life first.
        """
        from mcp_types import REQUEST_TIMEOUT  # it is imported when there is a client

        why: object = error.data
        if (
            isinstance(why, NoAnswer)
            and why.ended_session
            and self._connection is not None
        ):
            self._connection.give_up()
        # A slow tool is no dead server: it is asked for a sign of life before the next
        # use.
        elif error.code == REQUEST_TIMEOUT:
            self._is_suspect = True

    def reopen(self) -> None:
        """Let it be retried at once, also when it was refused."""
        if self._connection is None and self.state != "closed":
            self.state, self._retry_at, self._failures = "waiting", -inf, 0

    async def close(self) -> None:
        """End the connection for good, and wait until nothing of it is left."""
        if (connection := self._connection) is not None:
            connection.give_up()
            await connection.over.wait()
        self.state = "closed"

    def _error(self, more: str = "") -> ToolError:
        who = f"the MCP server {self.name!a} cannot be used"
        if self.problem is None:
            return ToolError(f"{who}: {self.state}{more}")
        return ToolError(f"{who}{more}:\n{self.marked_problem}", trust=UNTRUSTED)

    @property
    def marked_problem(self) -> str | None:
        """Why it cannot be used, as a model reads it: the server's own words are in it."""
        if self.problem is None:
            return None
        return mark_untrusted(self.problem, f"mcp:{self.name}")

    def unusable(self) -> str:
        """Say to the person why it cannot be used."""
        return (
            f"the MCP server {self.name!a} cannot be used: {self.problem or self.state}"
        )

    async def _leave_if_silent(self) -> None:
        """End a connection that gives no sign of life."""
        connection = self._connection
        if not self._is_suspect or connection is None or connection.client is None:
            return
        self._is_suspect = False
        from mcp import MCPError  # it is imported when there is a client

        with anyio.move_on_after(_PING_SECONDS):
            with suppress(MCPError):  # an answer as well
                await connection.client.session.send_ping()
            return
        connection.give_up()
        await connection.over.wait()

    # -- the task

    async def _run(self, connection: ServerConnection) -> None:
        problem, refused = "it closed the connection", False
        try:
            await connection.hold(
                partial(self._begun, connection), partial(self.refreshed, self)
            )
        except (ServerRefusedError, TooSlowError) as error:
            problem, refused = str(error), isinstance(error, ServerRefusedError)
        except Exception as error:
            # foreign code, and whatever the protocol's library makes of a broken connection
            problem = words_of(error)
        finally:
            # before `settled` is set: whoever waits for that must find no dead client
            self._connection, connection.client = None, None
            self._end(connection, refused=refused)
            connection.settled.set()
            connection.over.set()
        if not connection.is_given_up:
            self.problem = self.notices.clean(connection.ending(problem))
            await self.notices.state(
                StateChanged(server=self.name, state=self.state, problem=self.problem)
            )

    def _end(self, connection: ServerConnection, *, refused: bool) -> None:
        """Note that there is no connection, and when there may be another."""
        if connection.is_given_up:
            self.state, self._retry_at = "waiting", -inf
            return
        if refused:
            self.state = "refused"
        elif connection.needs_login:
            self.state = "login"
        else:
            self.state = "failed"
        self._retry_at = anyio.current_time() + min(
            _FIRST_WAIT * 2**self._failures, _LONGEST_WAIT
        )
        self._failures += 1

    async def _begun(self, connection: ServerConnection) -> None:
        """Note that there is a connection, and offer what came over it."""
        assert connection.client is not None
        able = connection.client.server_capabilities
        self.has_resources = able.resources is not None
        self.has_prompts = able.prompts is not None
        self.state, self.problem, self._failures = "ready", None, 0
        # Before `settled`: whoever waited for the server finds its tools mounted.
        await self.refreshed(self)
        connection.settled.set()
        await self.notices.state(
            StateChanged(
                server=self.name, state="ready", tools=len(self.offers.offered)
            )
        )
