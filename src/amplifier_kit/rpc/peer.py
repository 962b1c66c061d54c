"""One side of a JSON-RPC connection: it answers requests, and asks the other side."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Final, TypeAlias

import anyio
import attrs
from anyio.abc import AnyByteReceiveStream, AnyByteSendStream, TaskGroup

from amplifier_kit.rpc.frames import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    RpcError,
    write_frame,
)
from amplifier_kit.rpc.lines import LineSplitter, RequestId, TooLong
from amplifier_kit.rpc.received import RefusedFrame, RpcLimits, error_frame, read_line
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "ConnectionClosedError",
    "Explain",
    "NotificationHandler",
    "Reply",
    "RequestHandler",
    "RpcPeer",
]

_VERSION: Final = "2.0"
_CLOSED: Final = -32000


@attrs.frozen(kw_only=True)
class Reply:
    """An answer, and what happens once it is sent.

    Args:
        result: the answer.
        then: called behind it, for notifications that the other side can only place when it has the answer.
    """

    result: JSONValue = None
    then: Callable[[], Awaitable[None]] | None = None


RequestHandler: TypeAlias = Callable[[JSONObject], Awaitable[Reply]]
"""Answers a request, by its parameters; each runs in a task of its own."""

NotificationHandler: TypeAlias = Callable[[JSONObject], None]
"""Takes a notification, in the order in which they came; it must not block."""

Explain: TypeAlias = Callable[[Exception], RpcError]
"""Makes the error with which a failed request is answered."""


class ConnectionClosedError(RpcError):
    """The connection ended before the other side answered."""

    def __init__(self) -> None:
        super().__init__(_CLOSED, "the connection is closed")


@attrs.define(eq=False)
class _Pending:
    """A request to the other side that waits for its answer."""

    settled: anyio.Event = attrs.field(factory=anyio.Event)
    result: JSONValue = None
    error: RpcError | None = None


@attrs.define(eq=False, kw_only=True)
class RpcPeer:
    """One side of a connection; `serve` is its life.

    Whatever the other side sends, it gets an answer or an error of the protocol, and nothing else ends.

    Args:
        incoming: gives what the other side sends; who opened it closes it.
        outgoing: takes what it is sent; likewise.
        explain: makes the error with which a failed request is answered.
        limits: what it may do.
        requests: what it can ask, by the names of methods.
        notifications: what it can report.
    """

    incoming: AnyByteReceiveStream
    outgoing: AnyByteSendStream
    explain: Explain
    limits: RpcLimits = attrs.field(factory=RpcLimits)
    requests: Mapping[str, RequestHandler] = attrs.field(factory=dict)
    notifications: Mapping[str, NotificationHandler] = attrs.field(factory=dict)
    _pending: dict[RequestId, _Pending] = attrs.field(factory=dict, init=False)
    _ids: count[int] = attrs.field(factory=lambda: count(1), init=False)
    _sending: anyio.Lock = attrs.field(factory=anyio.Lock, init=False)
    _group: TaskGroup | None = attrs.field(default=None, init=False)
    _running: int = attrs.field(default=0, init=False)

    @property
    def group(self) -> TaskGroup:
        """The tasks of the connection, which end with it.

        Raises:
            ConnectionClosedError: it is not served.
        """
        if self._group is None:
            raise ConnectionClosedError
        return self._group

    async def serve(self) -> None:
        """Answer until the other side is gone; what runs then is cancelled."""
        lines = LineSplitter(self.limits.max_bytes)
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                async for data in self.incoming:
                    for line in lines.feed(data):
                        await self._take(line)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass  # the other side was killed
            finally:
                self._group = None
                for pending in self._pending.values():
                    pending.error = ConnectionClosedError()
                    pending.settled.set()
                self._pending.clear()
                group.cancel_scope.cancel()

    async def request(self, method: str, params: JSONObject) -> JSONValue:
        """Ask the other side.

        Raises:
            ConnectionClosedError: it is gone.
            RpcError: it answered with an error.
        """
        if self._group is None:
            raise ConnectionClosedError
        number, pending = next(self._ids), _Pending()
        self._pending[number] = pending
        try:
            await self._send({"id": number, "method": method, "params": params})
            await pending.settled.wait()
        finally:
            self._pending.pop(number, None)
        if pending.error is not None:
            raise pending.error
        return pending.result

    async def notify(self, method: str, params: JSONObject) -> None:
        """Report something to the other side; one that is gone hears nothing."""
        await self._send({"method": method, "params": params})

    async def _take(self, line: bytes | TooLong) -> None:
        if isinstance(line, bytes) and not line.strip():
            return
        message = read_line(line, self.limits)
        if isinstance(message, RefusedFrame):
            await self._refuse(message.id, message.error)
            return
        await self._dispatch(message)

    async def _dispatch(self, message: JSONObject) -> None:
        method, number = message.get("method"), message.get("id")
        if "method" not in message and ("result" in message or "error" in message):
            self._settle(message)
            return
        if "id" in message and not _is_id(number):
            problem = "id: expected a text or an integer"
            await self._refuse(None, RpcError(INVALID_REQUEST, problem))
            return
        params = message.get("params", {})
        if params is None:
            params = {}
        known = number if isinstance(number, (int, str)) else None
        if not isinstance(method, str) or not isinstance(params, dict):
            problem = "expected an object with a method, and an object of params"
            await self._refuse(known, RpcError(INVALID_REQUEST, problem))
            return
        if known is None:
            self._hear(method, params)
            return
        handler = self.requests.get(method)
        if handler is None:
            problem = f"there is no method {method[:100]!r}"
            await self._refuse(known, RpcError(METHOD_NOT_FOUND, problem))
        elif self._running >= self.limits.max_requests:
            problem = f"{self._running} requests run already"
            await self._refuse(known, RpcError(INVALID_REQUEST, problem))
        else:
            self._running += 1
            self.group.start_soon(self._answer, known, handler, params)

    def _hear(self, method: str, params: JSONObject) -> None:
        handler = self.notifications.get(method)
        if handler is None:
            return
        try:
            handler(params)
        except RpcError:
            return  # nobody waits for an answer to a notification

    async def _answer(
        self, number: RequestId, handler: RequestHandler, params: JSONObject
    ) -> None:
        try:
            reply = await handler(params)
            await self._send({"id": number, "result": reply.result})
            if reply.then is not None:
                await reply.then()
        except RpcError as error:
            await self._refuse(number, error)
        except Exception as error:  # handlers run foreign code
            await self._refuse(number, self.explain(error))
        finally:
            self._running -= 1

    def _settle(self, message: JSONObject) -> None:
        number = message.get("id")
        # In Python `True == 1`: it would answer the first question.
        if not isinstance(number, (int, str)) or not _is_id(number):
            return
        pending = self._pending.pop(number, None)
        if pending is None:
            return  # nobody waits for it any more
        if "error" in message:
            pending.error = _error_of(message["error"])
        else:
            pending.result = message.get("result")
        pending.settled.set()

    async def _refuse(self, number: RequestId | None, error: RpcError) -> None:
        await self._send(error_frame(number, error))

    async def _send(self, message: JSONObject) -> None:
        data = write_frame({"jsonrpc": _VERSION, **message})
        async with self._sending:
            try:
                await self.outgoing.send(data)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                # Nobody reads any more: what was asked for is of no use to anybody.
                if self._group is not None:
                    self._group.cancel_scope.cancel()


def _is_id(value: JSONValue) -> bool:
    return isinstance(value, (int, str)) and not isinstance(value, bool)


def _error_of(value: JSONValue) -> RpcError:
    if isinstance(value, dict):
        code, message = value.get("code"), value.get("message")
        if isinstance(code, int) and isinstance(message, str):
            return RpcError(code, message)
    return RpcError(INTERNAL_ERROR, "the other side answered with an error")
