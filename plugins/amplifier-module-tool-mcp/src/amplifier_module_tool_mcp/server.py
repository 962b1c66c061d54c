"""One server in one session: connected when it is needed, watched, and given up and tried again when it fails.

The connection lives in a task of its own, which is the only one that opens and closes it. What it offers is what its
definitions were when a person agreed to them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Final

import anyio
import attrs
from anyio.abc import TaskGroup

from amplifier_module_tool_mcp.config import McpConfig
from amplifier_module_tool_mcp.declaring import Declared
from amplifier_module_tool_mcp.events import ServerState, StateChanged
from amplifier_module_tool_mcp.expanding import Expanded
from amplifier_module_tool_mcp.hearing import Hearing
from amplifier_module_tool_mcp.links import Link, Links, RefusedError
from amplifier_module_tool_mcp.offers import Offers
from amplifier_module_tool_mcp.telling import Teller
from amplifier_sdk.errors import ToolError

if TYPE_CHECKING:
    from mcp.client import Client, ClientRequestContext, IncomingMessage  # takes most of a second to import
    from mcp_types import ListRootsResult, LoggingMessageNotificationParams, Tool

__all__ = ["Server"]

_FIRST_WAIT: Final = 1.0
_LONGEST_WAIT: Final = 60.0
_PING_SECONDS: Final = 5.0
_BETWEEN_LISTINGS: Final = 1.0
_MOST_PAGES: Final = 100
_VERSION: Final = "0.1"


@attrs.define(eq=False)
class _Attempt:
    """One connection: `settled` when it is ready or has failed, `over` when nothing of it is left."""

    settled: anyio.Event = attrs.field(factory=anyio.Event)
    over: anyio.Event = attrs.field(factory=anyio.Event)
    changed: anyio.Event = attrs.field(factory=anyio.Event)
    link: Link | None = None
    used: Expanded | None = None  # holds the secrets that redactors are to know
    client: Client | None = None
    is_given_up: bool = False


@attrs.define(eq=False, kw_only=True)
class Server:
    """One server.

    Args:
        declared: what was written of it.
        config: the module's configuration.
        links: makes the connections.
        teller: tells what happens.
        offers: what of it is offered.
        tasks: where its task runs; ends with the session.
        refreshed: called when what it offers may have changed.
    """

    declared: Declared
    config: McpConfig
    links: Links
    teller: Teller
    offers: Offers
    tasks: TaskGroup
    refreshed: Callable[[Server], Awaitable[None]]
    state: ServerState = "waiting"
    problem: str | None = None
    has_resources: bool = False
    has_prompts: bool = False
    _attempt: _Attempt | None = None
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
        own = None if self.declared.config is None else self.declared.config.call_timeout
        return own or self.config.call_timeout

    def start(self) -> anyio.Event:
        """Begin to connect, unless that was done; return what is set when it is ready or has failed."""
        if self._attempt is None:
            self._attempt = _Attempt()
            self.state = "connecting"
            self.tasks.start_soon(self._run, self._attempt, name=f"mcp:{self.name}")
        return self._attempt.settled

    async def client(self) -> Client:
        """Return the connection, made anew where there is none.

        Raises:
            ToolError: there is none, and why.
        """
        await self._leave_if_silent()
        if self._attempt is not None and self._attempt.settled.is_set() and self._attempt.client is None:
            await self._attempt.over.wait()
        if self._attempt is None:
            if self.state in ("refused", "closed"):
                raise self._error()
            if (left := self._retry_at - anyio.current_time()) > 0:
                raise self._error(f"; it is tried again in {left:.0f} s")
        await self.start().wait()
        if self._attempt is None or self._attempt.client is None:
            raise self._error()
        return self._attempt.client

    @property
    def ready(self) -> Client | None:
        """The connection, where there is one by now."""
        return None if self._attempt is None else self._attempt.client

    def suspect(self) -> None:
        """Ask it for a sign of life before it is used the next time."""
        self._is_suspect = True

    def give_up(self) -> None:
        """Close the connection, through no failure; the next use makes another."""
        if self._attempt is not None:
            self._attempt.is_given_up = True
            if self._attempt.link is not None:
                self._attempt.link.ended.set()

    def reopen(self) -> None:
        """Let it be tried again at once, also when it was refused."""
        if self._attempt is None and self.state != "closed":
            self.state, self._retry_at, self._failures = "waiting", -inf, 0

    async def close(self) -> None:
        """End the connection for good, and wait until nothing of it is left."""
        attempt = self._attempt
        self.give_up()
        if attempt is not None:
            await attempt.over.wait()
        self.state = "closed"

    def _error(self, more: str = "") -> ToolError:
        return ToolError(f"the MCP server {self.name!a} cannot be used: {self.problem or self.state}{more}")

    async def _leave_if_silent(self) -> None:
        """End a connection that gives no sign of life."""
        attempt = self._attempt
        if not self._is_suspect or attempt is None or attempt.client is None:
            return
        self._is_suspect = False
        from mcp import MCPError  # it is imported when there is a client

        with anyio.move_on_after(_PING_SECONDS):
            with suppress(MCPError):  # an answer as well
                await attempt.client.session.send_ping()
            return
        self.give_up()
        await attempt.over.wait()

    # -- the task

    async def _run(self, attempt: _Attempt) -> None:
        hearing = Hearing(self.name, self.teller, self.config.max_log_lines)
        problem, refused = "it closed the connection", False
        scope = anyio.CancelScope()
        try:
            with scope:
                await self._connect(attempt, scope, hearing)
            if scope.cancelled_caught:
                problem = f"it did not answer within {self.config.connect_timeout:g} s (connect_timeout)"
        except RefusedError as error:
            problem, refused = str(error), True
        except Exception as error:  # foreign code, and whatever the protocol's library makes of a broken connection
            problem = _words(error)
        finally:
            self._attempt, attempt.client = None, None
            self._end(attempt, refused=refused)
            attempt.settled.set()
            attempt.over.set()
        if attempt.is_given_up:
            return
        if attempt.link is not None and attempt.link.problem is not None:
            problem = attempt.link.problem  # closer to the cause than what the library makes of it
        self.problem = self.teller.clean(f"{problem}{hearing.ending()}")
        await self.teller.state(StateChanged(server=self.name, state=self.state, problem=self.problem))

    def _end(self, attempt: _Attempt, *, refused: bool) -> None:
        """Note that there is no connection, and when there may be another."""
        if attempt.is_given_up:
            self.state, self._retry_at = "waiting", -inf
            return
        self.state = "refused" if refused else "failed"
        self._retry_at = anyio.current_time() + min(_FIRST_WAIT * 2**self._failures, _LONGEST_WAIT)
        self._failures += 1

    async def _connect(self, attempt: _Attempt, scope: anyio.CancelScope, hearing: Hearing) -> None:
        """Open the connection, list what there is, and hold it until it ends."""
        attempt.link, attempt.used = await self.links.make(self.declared, hearing.hear)
        scope.deadline = anyio.current_time() + self.config.connect_timeout
        async with anyio.create_task_group() as helpers:
            helpers.start_soon(hearing.pass_on)
            async with self._make_client(attempt, hearing) as client:
                await self._take_listing(client)
                scope.deadline = inf
                attempt.client, self.state, self.problem, self._failures = client, "ready", None, 0
                await self.refreshed(self)
                attempt.settled.set()
                await self.teller.state(StateChanged(server=self.name, state="ready", tools=len(self.offers.offered)))
                async with anyio.create_task_group() as watchers:
                    watchers.start_soon(self._follow, client, attempt)
                    watchers.start_soon(self._subscribe, client, attempt)
                    await attempt.link.ended.wait()
                    attempt.client = None
                    watchers.cancel_scope.cancel()
            helpers.cancel_scope.cancel()

    def _make_client(self, attempt: _Attempt, hearing: Hearing) -> Client:
        from mcp.client import Client  # takes most of a second to import; the link has done it in a thread
        from mcp_types import Implementation, ToolListChangedNotification

        assert attempt.link is not None

        async def take(message: IncomingMessage) -> None:
            if isinstance(message, ToolListChangedNotification):
                attempt.changed.set()

        async def log(params: LoggingMessageNotificationParams) -> None:
            data: object = params.data
            hearing.log(params.level, data if isinstance(data, str) else repr(data))

        is_program = self.declared.config is not None and self.declared.config.command is not None
        return Client(
            attempt.link.transport(),
            cache=None,
            client_info=Implementation(name="amplifier", version=_VERSION),
            list_roots_callback=self._roots if self.config.roots and is_program else None,
            logging_callback=log,
            log_level="info",
            message_handler=take,
            read_timeout_seconds=self.config.connect_timeout,
        )

    async def _roots(self, context: ClientRequestContext) -> ListRootsResult:  # noqa: ARG002  # called by its name
        """Tell where the person works."""
        from mcp_types import ListRootsResult, Root  # it is imported when there is a client

        folder = self.links.working_dir
        return ListRootsResult(roots=[Root.model_validate({"uri": folder.as_uri(), "name": folder.name})])

    async def _take_listing(self, client: Client) -> None:
        """List the server's tools, and decide which of them are offered."""
        able = client.server_capabilities
        self.has_resources, self.has_prompts = able.resources is not None, able.prompts is not None
        tools: list[Tool] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES if able.tools is not None else 0):
            page = await client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            if cursor is None or len(tools) > self.config.max_tools:
                break
        held_before = dict(self.offers.withheld)
        await self.offers.take(tools)
        news = {name: why for name, why in self.offers.withheld.items() if name not in held_before}
        if news:
            await self.teller.withheld(self.name, news)

    async def _follow(self, client: Client, attempt: _Attempt) -> None:
        """List the tools anew whenever the server says that they changed, at most once a second."""
        while True:
            await attempt.changed.wait()
            attempt.changed = anyio.Event()
            await self._take_listing(client)
            await self.refreshed(self)
            await anyio.sleep(_BETWEEN_LISTINGS)

    async def _subscribe(self, client: Client, attempt: _Attempt) -> None:
        """Ask a server that tells of changes only then to do so."""
        from mcp import MCPError  # it is imported when there is a client
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        tools = client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return
        try:
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    attempt.changed.set()
        except (ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
            return  # it tells unasked, or does not


def _words(error: BaseException) -> str:
    """Say what went wrong; of several failures the first counts."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
