"""A client of the Model Context Protocol that has an agent do one thing, in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf

import anyio
import attrs
from anyio.abc import AnyByteReceiveStream, AnyByteSendStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client import Client
from mcp_types import TextContent

from amplifier.mcp_server.transport import message_streams
from amplifier_kit.rpc.received import RpcLimits

__all__ = ["OneCallClient"]


@attrs.define(eq=False)
class OneCallClient:
    """Calls the agent that is made as the session is, can ask nobody, and leaves.

    Args:
        instruction: what the agent is to do.
        text: what came of it.
        is_error: whether it failed.
    """

    instruction: str
    text: str = ""
    is_error: bool = False

    @asynccontextmanager
    async def streams(
        self,
    ) -> AsyncIterator[tuple[AnyByteReceiveStream, AnyByteSendStream]]:
        """Give the server the two ends of a connection."""
        to_server, incoming = anyio.create_memory_object_stream[bytes](inf)
        outgoing, from_server = anyio.create_memory_object_stream[bytes](inf)
        async with incoming, outgoing, anyio.create_task_group() as group:
            group.start_soon(self._call, to_server, from_server)
            yield incoming, outgoing
            group.cancel_scope.cancel()

    async def _call(
        self,
        to_server: MemoryObjectSendStream[bytes],
        from_server: MemoryObjectReceiveStream[bytes],
    ) -> None:
        streams = message_streams(from_server, to_server, RpcLimits())
        async with to_server, from_server, Client(streams) as client:
            arguments = {"instruction": self.instruction}
            result = await client.call_tool("agent_self", arguments)
            self.is_error = bool(result.is_error)
            for content in result.content:
                assert isinstance(content, TextContent)
                self.text += content.text
