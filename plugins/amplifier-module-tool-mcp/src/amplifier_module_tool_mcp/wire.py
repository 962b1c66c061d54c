"""Messages as they travel, the errors that stand for missing answers, and how much that nobody asked for is taken."""

from __future__ import annotations

from contextlib import suppress
from typing import Final, TypeAlias

import anyio
import attrs
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

from amplifier_kit.rpc.frames import values_in
from amplifier_module_tool_mcp.results import NoAnswer
from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "Incoming",
    "MessageTooLargeError",
    "Outgoing",
    "Streams",
    "UnencodableError",
    "UnexpectedMessages",
    "pass_on",
    "read_message",
    "unanswered",
    "write_message",
]

_MOST: Final = 200
"""Messages in a second that answer nothing."""

Incoming: TypeAlias = MemoryObjectSendStream[SessionMessage | Exception]
"""Takes what a server sends."""

Outgoing: TypeAlias = MemoryObjectReceiveStream[SessionMessage]
"""Gives what a server is sent."""

Streams: TypeAlias = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception],
    MemoryObjectSendStream[SessionMessage],
]
"""The other ends of the two, for the protocol's client."""

_MAX_VALUES: Final = 100_000
_MAX_IN_PARTS: Final = 10_000
_PARTS: Final = ("content", "contents", "inputRequests", "messages", "requestedSchema")
"""Where the protocol's library tries several types for each value, and remembers what is wrong with each."""


class MessageTooLargeError(Exception):
    """A message is larger than is taken; says in what."""

    def __init__(self, limit: str) -> None:
        super().__init__(f"it sent a message of more than {limit}; ask for less")


class UnencodableError(ValueError):
    """A message has no form in JSON, for example because a text in it holds half a surrogate pair."""


def read_message(data: bytes | str) -> JSONRPCMessage:
    """Read a message.

    Raises:
        TooLargeError: it holds so many values that reading them would hold up everything else.
        ValueError: it is none.
    """
    # Counted before parsing: a few megabytes of brackets become gigabytes of objects.
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    values = values_in(data)
    if values > _MAX_VALUES:
        raise MessageTooLargeError(f"{_MAX_VALUES} values")
    try:
        message = jsonrpc_message_adapter.validate_json(data, by_name=False)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    body = getattr(message, "result", None) or getattr(message, "params", None) or {}
    if (
        values > _MAX_IN_PARTS
        and sum(_size(body.get(key)) for key in _PARTS) > _MAX_IN_PARTS
    ):
        raise MessageTooLargeError(f"{_MAX_IN_PARTS} values in its parts")
    return message


def _size(value: JSONValue) -> int:
    """Return how many values a value holds."""
    parts = (
        value.values()
        if isinstance(value, dict)
        else value
        if isinstance(value, list)
        else ()
    )
    return 1 + sum(map(_size, parts))


def write_message(message: JSONRPCMessage) -> bytes:
    """Write a message on one line.

    Raises:
        UnwritableError: it cannot be written.
    """
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except ValueError as error:
        raise UnencodableError(
            f"the message cannot be written as JSON: {error}"
        ) from error


def unanswered(
    request: RequestId, problem: str, why: NoAnswer, code: int = INTERNAL_ERROR
) -> JSONRPCError:
    """Make the error for a caller that gets no answer."""
    return JSONRPCError(
        jsonrpc="2.0", id=request, error=ErrorData(code=code, message=problem, data=why)
    )


async def pass_on(message: JSONRPCMessage, incoming: Incoming) -> None:
    """Hand a message over, unless nobody waits for it any more."""
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await incoming.send(SessionMessage(message))


@attrs.define(eq=False)
class UnexpectedMessages:
    """Counts what a server sends that answers nothing."""

    _second: float = 0.0
    _count: int = 0

    def is_too_much(self) -> bool:
        """Count a message; true for those beyond 200 in a second, which are dropped."""
        now = anyio.current_time()
        # Seconds are counted from the first message of each, which needs no timer.
        if now - self._second >= 1.0:
            self._second, self._count = now, 0
        self._count += 1
        return self._count > _MOST
