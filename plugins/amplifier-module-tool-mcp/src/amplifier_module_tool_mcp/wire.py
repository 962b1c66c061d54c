"""Messages of the protocol as they travel, and the errors that stand for answers that did not come."""

from __future__ import annotations

from contextlib import suppress
from typing import TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    RequestId,
    jsonrpc_message_adapter,
)

from amplifier_module_tool_mcp.links import NoAnswer

__all__ = [
    "Incoming",
    "Outgoing",
    "Streams",
    "UnwritableError",
    "pass_on",
    "read_message",
    "unanswered",
    "write_message",
]

Incoming: TypeAlias = MemoryObjectSendStream[SessionMessage | Exception]
"""Takes what a server sends."""

Outgoing: TypeAlias = MemoryObjectReceiveStream[SessionMessage]
"""Gives what a server is sent."""

Streams: TypeAlias = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]
"""The other ends of the two, for the protocol's client."""


class UnwritableError(ValueError):
    """A message has no form in JSON, for example because a text in it holds half a surrogate pair."""


def read_message(data: bytes | str) -> JSONRPCMessage:
    """Read a message.

    Raises:
        ValueError: it is none.
    """
    try:
        return jsonrpc_message_adapter.validate_json(data, by_name=False)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def write_message(message: JSONRPCMessage) -> bytes:
    """Write a message on one line.

    Raises:
        UnwritableError: it cannot be written.
    """
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except ValueError as error:
        raise UnwritableError(f"the message cannot be written as JSON: {error}") from error


def unanswered(request: RequestId, problem: str, why: NoAnswer, code: int = INTERNAL_ERROR) -> JSONRPCError:
    """Make the error that tells a caller that no answer comes."""
    return JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=code, message=problem, data=why))


async def pass_on(message: JSONRPCMessage, incoming: Incoming) -> None:
    """Hand a message over, unless nobody waits for it any more."""
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await incoming.send(SessionMessage(message))
