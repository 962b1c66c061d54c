"""What a server asks the person while it works on a call: asked as what any tool asks, in the task of that call.

A server does not say which call it asks for. Where one call runs it is that one; where several do, or none, nobody is
asked, since a person could not know what their answer is for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from typing import TYPE_CHECKING, Final, Literal

import anyio
import attrs

from amplifier_kit.trust.untrusted import without_unseen
from amplifier_sdk.errors import ToolError

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    # takes most of a second to import
    from mcp.client import ClientRequestContext
    from mcp_types import ElicitRequestParams, ElicitResult

    from amplifier_sdk.jsontypes import JSONObject, JSONValue
    from amplifier_sdk.progress import ToolContext

__all__ = ["CallDeadline", "Elicitations"]

_LONGEST: Final = 4000
_MOST: Final = 20
"""Questions that a server may ask in one call: no deadline ends one that asks for ever."""

_MAX_WAITING: Final = 8
"""How many questions of one call wait behind the one that is asked."""


@attrs.define(eq=False)
class CallDeadline:
    """How long a call may still take; it stands still while a person thinks.

    Args:
        scope: is cancelled when the time is over.
    """

    scope: anyio.CancelScope

    async def held(self, context: ToolContext, asked: _Asked) -> JSONValue:
        """Ask the person, with no deadline running."""
        left = self.scope.deadline - anyio.current_time()
        self.scope.deadline = inf
        try:
            return await context.ask(asked.message, schema=asked.schema)
        finally:
            self.scope.deadline = anyio.current_time() + left


@attrs.define(eq=False)
class _Asked:
    """One question, and what came of it."""

    message: str
    schema: JSONObject
    action: Literal["accept", "decline", "cancel"] = "cancel"
    content: JSONValue = None
    is_over: anyio.Event = attrs.field(factory=anyio.Event)


@attrs.define(eq=False)
class Elicitations:
    """Brings what a server asks to the call that runs.

    Args:
        server: its name.
    """

    server: str
    _calls: list[MemoryObjectSendStream[_Asked]] = attrs.field(factory=list)

    async def elicit(
        self,
        context: ClientRequestContext,  # noqa: ARG002  # the library's
        params: ElicitRequestParams,
    ) -> ElicitResult:
        """Return what the person answers: a callback of the protocol's client."""
        # it is imported when there is a client
        from mcp_types import ElicitRequestFormParams, ElicitResult

        # a page of the server's own choice is opened for nobody
        if not isinstance(params, ElicitRequestFormParams) or len(self._calls) != 1:
            return ElicitResult(action="cancel")
        said = without_unseen(params.message)[:_LONGEST]
        asked = _Asked(
            f"The MCP server {self.server!a} asks: {said}",
            dict(params.requested_schema),
        )
        try:
            self._calls[0].send_nowait(asked)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.WouldBlock):
            return ElicitResult(action="cancel")
        await asked.is_over.wait()
        if asked.action != "accept" or not isinstance(asked.content, dict):
            return ElicitResult(action=asked.action)
        return ElicitResult.model_validate(
            {"action": "accept", "content": asked.content}
        )

    @asynccontextmanager
    async def of_call(
        self, context: ToolContext | None, deadline: CallDeadline
    ) -> AsyncIterator[None]:
        """Ask for a call what the server asks while the block runs."""
        if context is None:
            yield
            return
        send, receive = anyio.create_memory_object_stream[_Asked](_MAX_WAITING)
        self._calls.append(send)
        try:
            with receive:
                async with anyio.create_task_group() as group:
                    group.start_soon(_serve, receive, context, deadline)
                    yield
                    group.cancel_scope.cancel()
        finally:
            self._calls.remove(send)
            send.close()


async def _serve(
    questions: MemoryObjectReceiveStream[_Asked],
    context: ToolContext,
    deadline: CallDeadline,
) -> None:
    """Ask one question after the other; what is left when the call ends takes no answer any more."""
    count = 0
    try:
        async for asked in questions:
            count += 1
            if count > _MOST:
                asked.is_over.set()
                continue
            try:
                asked.content = await deadline.held(context, asked)
                asked.action = "decline" if asked.content is None else "accept"
            except (ToolError, ValueError):
                pass  # nobody can be asked, or not so: the server reads that nobody answered
            finally:
                asked.is_over.set()
    finally:
        while questions.statistics().current_buffer_used:
            questions.receive_nowait().is_over.set()
