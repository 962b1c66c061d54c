"""One connection to a server: opened, its tools listed, held and listened to until it ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf
from typing import TYPE_CHECKING, Final

import anyio
import attrs

from amplifier_module_tool_mcp.config import McpConfig
from amplifier_module_tool_mcp.elicitation import Elicitations
from amplifier_module_tool_mcp.links import Link, Links
from amplifier_module_tool_mcp.notices import Hearing, ServerNotices
from amplifier_module_tool_mcp.offers import Offers
from amplifier_module_tool_mcp.server_definitions import ServerDefinition
from amplifier_module_tool_mcp.variables import Expanded

if TYPE_CHECKING:
    # takes most of a second to import
    from mcp.client import Client, ClientRequestContext, IncomingMessage
    from mcp_types import ListRootsResult, LoggingMessageNotificationParams, Tool

__all__ = ["ServerConnection", "TooSlowError"]

_BETWEEN_LISTINGS: Final = 1.0
_MAX_PAGES: Final = 100
_VERSION: Final = "0.1"


class TooSlowError(Exception):
    """A server was not ready in time; says in which."""


@attrs.define(eq=False, kw_only=True)
class ServerConnection:
    """A connection, from the attempt to open it until nothing of it is left.

    Args:
        declared: what was written of the server.
        config: the module's configuration.
        links: makes the link that it goes over.
        notices: reports what the server says.
        offers: takes what the server lists.
        settled: set when it is ready or has failed.
        over: set when nothing of it is left.
        client: the protocol's client, while it is ready.
        is_given_up: whether it was ended on purpose, through no failure.
        elicitations: brings what the server asks to the call that runs.
    """

    declared: ServerDefinition
    config: McpConfig
    links: Links
    notices: ServerNotices
    offers: Offers
    settled: anyio.Event = attrs.field(factory=anyio.Event)
    over: anyio.Event = attrs.field(factory=anyio.Event)
    client: Client | None = None
    is_given_up: bool = False
    elicitations: Elicitations = attrs.field(
        default=attrs.Factory(
            lambda self: Elicitations(self.declared.name), takes_self=True
        )
    )
    _changed: anyio.Event = attrs.field(factory=anyio.Event)
    _link: Link | None = None
    _used: Expanded | None = None  # holds the secrets that redactors are to know
    _hearing: Hearing = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._hearing = Hearing(
            self.declared.name, self.notices, self.config.max_log_lines
        )

    @property
    def is_ending(self) -> bool:
        """Whether it was there and is of no use any more."""
        return self.settled.is_set() and (
            self.client is None or self._link is None or self._link.ended.is_set()
        )

    @property
    def needs_login(self) -> bool:
        """Whether the person has to sign in before it is of use."""
        return self._link is not None and self._link.needs_login

    def give_up(self) -> None:
        """End it, through no failure."""
        self.is_given_up = True
        if self._link is not None:
            self._link.ended.set()

    def ending(self, problem: str) -> str:
        """Say why it ended: what the link knows is closer to the cause than what the library makes of it."""
        cause = None
        if self._link is not None:
            cause = self._link.problem
        return f"{cause or problem}{self._hearing.ending()}"

    async def hold(
        self,
        begun: Callable[[], Awaitable[None]],
        listed: Callable[[], Awaitable[None]],
    ) -> None:
        """Open it, list what there is, and hold it until it ends.

        Args:
            begun: called when it is ready.
            listed: called when what is offered may have changed later on.

        Raises:
            RefusedError: the server may not be used.
            TooSlowError: it is not ready in time.
            Exception: whatever the protocol's library makes of a connection that fails.
        """
        self._link, self._used = await self.links.make(
            self.declared, self._hearing.hear
        )
        # it may have been given up while the link was made
        if self.is_given_up:
            return
        with anyio.move_on_after(self.config.connect_timeout) as scope:
            async with anyio.create_task_group() as helpers:
                helpers.start_soon(self._hearing.pass_on)
                async with self._open(self._link) as client:
                    await self._list(client)
                    # the time to connect is over; what follows may last as long as the
                    # session
                    scope.deadline = inf
                    self.client = client
                    await begun()
                    async with anyio.create_task_group() as watchers:
                        watchers.start_soon(self._follow, client, listed)
                        watchers.start_soon(self._subscribe, client)
                        await self._link.ended.wait()
                        self.client = None
                        watchers.cancel_scope.cancel()
                helpers.cancel_scope.cancel()
        if scope.cancelled_caught:
            raise TooSlowError(
                f"it did not answer within {self.config.connect_timeout:g} s (connect_timeout)"
            )

    def _open(self, link: Link) -> Client:
        # takes most of a second to import; the link has done it in a thread
        from mcp.client import Client
        from mcp_types import Implementation, ToolListChangedNotification

        async def take(message: IncomingMessage) -> None:
            if isinstance(message, ToolListChangedNotification):
                self._changed.set()

        async def log(params: LoggingMessageNotificationParams) -> None:
            data: object = params.data
            self._hearing.log(
                params.level, data if isinstance(data, str) else repr(data)
            )

        is_program = (
            self.declared.config is not None
            and self.declared.config.command is not None
        )
        return Client(
            link.transport(),
            cache=None,
            elicitation_callback=self.elicitations.elicit,
            client_info=Implementation(name="amplifier", version=_VERSION),
            list_roots_callback=self._roots
            if self.config.roots and is_program
            else None,
            logging_callback=log,
            log_level="info",
            message_handler=take,
            read_timeout_seconds=self.config.connect_timeout,
        )

    async def _roots(self, context: ClientRequestContext) -> ListRootsResult:  # noqa: ARG002  # called by its name
        """Tell where the person works."""
        # it is imported when there is a client
        from mcp_types import ListRootsResult, Root

        folder = self.links.working_dir
        return ListRootsResult(
            roots=[Root.model_validate({"uri": folder.as_uri(), "name": folder.name})]
        )

    async def _list(self, client: Client) -> None:
        """List the server's tools, and decide which of them are offered."""
        tools: list[Tool] = []
        cursor: str | None = None
        for _ in range(
            _MAX_PAGES if client.server_capabilities.tools is not None else 0
        ):
            page = await client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            # a server may send pages without end
            if cursor is None or len(tools) > self.config.max_tools:
                break
        held_before = self.offers.withheld
        await self.offers.take(tools)
        news = {
            name: why
            for name, why in self.offers.withheld.items()
            if name not in held_before
        }
        # once for each tool, not at every listing
        if news:
            await self.notices.withheld(self.declared.name, news)

    async def _follow(
        self, client: Client, listed: Callable[[], Awaitable[None]]
    ) -> None:
        """List the tools anew whenever the server says that they changed, at most once a second."""
        while True:
            await self._changed.wait()
            # renewed before the list is asked for: a change meanwhile is not missed
            self._changed = anyio.Event()
            await self._list(client)
            await listed()
            await anyio.sleep(_BETWEEN_LISTINGS)

    async def _subscribe(self, client: Client) -> None:
        """Ask a server that reports changes only on request to do so."""
        from mcp import MCPError  # it is imported when there is a client
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        tools = client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return
        try:
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._changed.set()
        except (ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
            return  # it reports them without being asked, or never
