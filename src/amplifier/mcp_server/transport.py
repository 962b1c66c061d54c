"""Lines of a byte stream as the messages that the protocol's library takes, within bounds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

import anyio
import attrs
from anyio.abc import AnyByteReceiveStream, AnyByteSendStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from amplifier.kernel.groups import open_group
from amplifier_kit.rpc.frames import INVALID_REQUEST, RpcError, write_frame
from amplifier_kit.rpc.lines import LineSplitter, TooLong
from amplifier_kit.rpc.received import RefusedFrame, RpcLimits, error_frame, read_line
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["Messages", "message_streams"]

Messages: TypeAlias = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception],
    MemoryObjectSendStream[SessionMessage],
]


@attrs.define(eq=False, kw_only=True)
class _Connection:
    """The two ends of a connection, between bytes and messages."""

    incoming: AnyByteReceiveStream
    outgoing: AnyByteSendStream
    limits: RpcLimits
    to_server: MemoryObjectSendStream[SessionMessage | Exception]
    from_server: MemoryObjectReceiveStream[SessionMessage]
    _sending: anyio.Lock = attrs.field(factory=anyio.Lock, init=False)

    async def read(self) -> None:
        lines = LineSplitter(self.limits.max_bytes)
        async with self.to_server:
            # The other side, or the server, may be gone.
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                async for data in self.incoming:
                    for line in lines.feed(data):
                        await self._take(line)

    async def pass_on(self) -> None:
        async with self.from_server:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                async for message in self.from_server:
                    text = message.message.model_dump_json(
                        by_alias=True, exclude_unset=True
                    )
                    await self._write(text.encode() + b"\n")

    async def _take(self, line: bytes | TooLong) -> None:
        if isinstance(line, bytes) and not line.strip():
            return
        message = read_line(line, self.limits)
        if not isinstance(message, RefusedFrame):
            parsed = _parsed(message)
            if not isinstance(parsed, RefusedFrame):
                await self.to_server.send(parsed)
                return
            message = parsed
        frame = error_frame(message.id, message.error)
        await self._write(write_frame({"jsonrpc": "2.0", **frame}))

    async def _write(self, data: bytes) -> None:
        async with self._sending:
            await self.outgoing.send(data)


def _parsed(message: JSONObject) -> SessionMessage | RefusedFrame:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_python(message))
    except (ValueError, RecursionError):
        problem = "the message is no request, notification or answer"
        number = message.get("id")
        known = None
        if isinstance(number, (int, str)) and not isinstance(number, bool):
            known = number
        return RefusedFrame(known, RpcError(INVALID_REQUEST, problem))


@asynccontextmanager
async def message_streams(
    incoming: AnyByteReceiveStream, outgoing: AnyByteSendStream, limits: RpcLimits
) -> AsyncIterator[Messages]:
    """Give the messages of a connection; what is none is answered here with an error."""
    to_server, received = anyio.create_memory_object_stream[SessionMessage | Exception](
        0
    )
    sent, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    connection = _Connection(
        incoming=incoming,
        outgoing=outgoing,
        limits=limits,
        to_server=to_server,
        from_server=from_server,
    )
    async with received, sent, open_group() as group:
        group.start_soon(connection.read)
        group.start_soon(connection.pass_on)
        yield received, sent
        group.cancel_scope.cancel()
