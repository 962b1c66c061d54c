"""The tools of servers, as a session calls them."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from math import isfinite
from typing import TYPE_CHECKING, Final

import anyio
import attrs

from amplifier_kit.trust.untrusted import UNTRUSTED, mark_untrusted, without_unseen
from amplifier_module_tool_mcp.definitions import Definition, tool_name
from amplifier_module_tool_mcp.elicitation import CallDeadline
from amplifier_module_tool_mcp.results import NoAnswer, read_result, words_of
from amplifier_module_tool_mcp.server import Server
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.progress import ToolContext
from amplifier_sdk.results import ToolResult

if TYPE_CHECKING:
    from mcp import MCPError  # takes most of a second to import
    from mcp_types import CallToolResult

__all__ = ["McpTool"]

_SPARE_SECONDS: Final = 10.0
_USUAL_SECONDS: Final = 120.0
_NEVER: Final = 1e9
"""Seconds that no call takes."""

_LONGEST_PROGRESS: Final = 300
_CLOSED: Final = "Connection closed"
_TIMED_OUT: Final = "Request 'tools/call' timed out"
"""Codes of the library for a lost connection or a deadline, which servers use for any failure."""


@attrs.define(eq=False, kw_only=True)
class McpTool:
    """One tool of one server.

    What its server says of it never allows anything: `read_only` is false where the server says that it changes
    something, and says nothing otherwise, and its effects are unknown.
    """

    server: Server
    definition: Definition

    @property
    def name(self) -> str:
        """The name by which models call it."""
        return tool_name(self.server.name, self.definition.name)

    @property
    def description(self) -> str:
        """The server's description of it, said to be that."""
        return self.definition.description

    @property
    def input_schema(self) -> Mapping[str, JSONValue]:
        """The server's schema of its arguments."""
        return self.definition.schema

    @property
    def takes_context(self) -> bool:
        """Whether its `execute` takes the call's context: it does."""
        return True

    @property
    def read_only(self) -> bool | None:
        """False where the server says that it changes something."""
        if self.definition.changes:
            return False
        return None

    @property
    def timeout(self) -> float | None:
        """Seconds that a call may take with a new connection, where that is longer than sessions allow by default."""
        longest = (
            self.server.call_timeout
            + self.server.config.connect_timeout
            + _SPARE_SECONDS
        )
        if longest > _USUAL_SECONDS:
            return longest
        return None

    @property
    def needs_approval(self) -> bool:
        """Whether the configuration wants a person to be asked about each call."""
        config = self.server.declared.config
        return config is not None and any(
            fnmatchcase(self.definition.name, entry)
            for entry in config.require_approval
        )

    async def execute(
        self, input: JSONObject, /, *, context: ToolContext | None = None
    ) -> ToolResult:
        """Call the tool on its server.

        Args:
            input: the arguments, checked against the schema.
            context: the call's own, which hears of progress.
        """
        try:
            return await self._call(input, context)
        except ToolError as error:
            return ToolResult.failure(error.message, **error.details)

    async def _call(
        self, arguments: JSONObject, context: ToolContext | None
    ) -> ToolResult:
        client = await self.server.client()
        current = self.server.offers.offered.get(self.definition.name)
        # Between a model's request and its call the server may have changed what the
        # tool does.
        if current is None or current.digest != self.definition.digest:
            raise ToolError(
                f"{self._who} no longer offers this tool as it was defined; see mcp_status"
            )
        from mcp import MCPError  # it is imported when there is a client
        from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult

        async def heard(
            progress: float, total: float | None, message: str | None
        ) -> None:
            if context is None:
                return
            with suppress(ToolError):  # the call is over by now
                text = without_unseen(message or "")[:_LONGEST_PROGRESS]
                context.progress(text, done=_finite(progress), total=_finite(total))

        try:
            params = CallToolRequestParams(
                name=self.definition.name, arguments=arguments
            )
            request = client.session.send_request(
                CallToolRequest(params=params),
                CallToolResult,
                # its own clock would run while a person thinks
                request_read_timeout_seconds=_NEVER,
                progress_callback=heard,
            )
            result = await self._in_time(request, context)
        except MCPError as error:
            raise self._unanswered(error) from error
        except (ValueError, RuntimeError) as error:
            # a result that is not the protocol's
            raise self._unusable(words_of(error)) from error
        return read_result(result, self._source, self.server.config.max_result_chars)

    async def _in_time(
        self, request: Awaitable[CallToolResult], context: ToolContext | None
    ) -> CallToolResult:
        """Return the result of a call that takes no longer than it may, but for the time in which a person is asked.

        Raises:
            MCPError: it failed, or took longer.
        """
        from mcp import MCPError  # it is imported when there is a client
        from mcp_types import REQUEST_TIMEOUT

        result: CallToolResult | None = None
        failure: Exception | None = None
        with anyio.move_on_after(self.server.call_timeout) as scope:
            async with self.server.elicitations.of_call(context, CallDeadline(scope)):
                try:
                    result = await request
                except Exception as error:
                    failure = error  # raised below: a task group would wrap it
        if failure is not None:
            raise failure
        if result is None:
            raise MCPError(code=REQUEST_TIMEOUT, message=_TIMED_OUT)
        return result

    def _unanswered(self, error: MCPError) -> ToolError:
        """Say why a call has no result, and whether it may have had its effect all the same."""
        # it is imported when there is a client
        from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

        self.server.failed(error)
        why: object = error.data
        # By the message as well: a server may use the library's code for any failure of
        # its own.
        if error.code == REQUEST_TIMEOUT and error.message == _TIMED_OUT:
            limit = f"within {self.server.call_timeout:g} s"
            return ToolError(
                f"{self._who} did not answer {limit}; the call was cancelled, but may have had its effect"
            )
        if error.code == CONNECTION_CLOSED and error.message == _CLOSED:
            return ToolError(
                f"{self._who} ended the connection before it answered; the call may have had its effect"
            )
        if isinstance(why, NoAnswer) and why.ended_session:
            return ToolError(
                f"{self._who} has ended the session: the call was not made; the next call begins another"
            )
        if isinstance(why, NoAnswer) and why.may_have_run:
            return self._unusable(error.message)
        shown = self._marked(error.message)
        return ToolError(
            f"{self._who} did not carry the call out:\n{shown}", trust=UNTRUSTED
        )

    def _unusable(self, problem: str) -> ToolError:
        message = f"{self._who} gave no answer that can be used; the call may have had its effect"
        return ToolError(f"{message}:\n{self._marked(problem)}", trust=UNTRUSTED)

    def _marked(self, problem: str) -> str:
        return mark_untrusted(
            problem[: self.server.config.max_result_chars], self._source
        )

    @property
    def _source(self) -> str:
        return f"mcp:{self.server.name}/{self.definition.name}"

    @property
    def _who(self) -> str:
        return f"the MCP server {self.server.name!a}"


def _finite(number: float | None) -> float | None:
    """Return a number that JSON can hold."""
    if number is not None and isfinite(number):
        return number
    return None
