"""The answer that streams a turn's events, for as long as somebody reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from amplifier.kernel.groups import open_group
from amplifier.serving.errors import RequestError
from amplifier.serving.limits import ServerLimits
from amplifier.serving.metrics import Metrics
from amplifier.serving.observed import direct_send
from amplifier.serving.tokens import Client

__all__ = [
    "EventSource",
    "EventStreamResponse",
    "ReadableLog",
    "StreamHost",
    "last_event",
    "require_room",
    "until_disconnected",
]

_MAX_DIGITS: Final = 18


class ReadableLog(Protocol):
    """Numbered events that readers wait for; `EventLog` is one in memory."""

    @property
    def last(self) -> int:
        """The number of the last event."""

    async def read(self, after: int) -> tuple[int, bytes] | None:
        """Wait for events after a number; see `EventLog.read`."""

    def wake(self) -> None:
        """Let readers send a comment, where they wait for an event."""


class EventSource(Protocol):
    """What has events to read: a turn in this process, or a session in a store."""

    @property
    def log(self) -> ReadableLog:
        """Its events."""

    def reader(self) -> AbstractContextManager[None]:
        """Count a reader for a block."""


class StreamHost(Protocol):
    """Where streams are served."""

    @property
    def limits(self) -> ServerLimits:
        """The server's limits."""

    @property
    def metrics(self) -> Metrics:
        """What the server did."""


class EventStreamResponse(Response):
    """Server-sent events of a turn; it ends with the turn, or when the reader is gone."""

    def __init__(
        self, sessions: StreamHost, client: Client, turn: EventSource, after: int = 0
    ) -> None:
        # proxies would store an answer, or wait for its end
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(headers=headers, media_type="text/event-stream")
        del self.headers["content-length"]
        self._turn = turn
        self._client = client
        self._after = after
        self._keep_alive = sessions.limits.keep_alive
        self._pieces = 0
        self._is_sending = False
        self._host = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until there are no more."""
        stream = anyio.CancelScope()
        with self._turn.reader(), self._counted(stream), stream:
            async with open_group() as group:
                group.start_soon(until_disconnected, receive, group.cancel_scope)
                group.start_soon(self._watch, group.cancel_scope)
                start = {"status": self.status_code, "headers": self.raw_headers}
                await send({"type": "http.response.start", **start})
                await self._send(direct_send(scope, send))
                group.cancel_scope.cancel()

    @contextmanager
    def _counted(self, scope: anyio.CancelScope) -> Iterator[None]:
        """Count the stream; others may have come since the request was let in.

        Raises:
            RequestError: the token has all the streams that it may have, or ended; or the process has all that it may.
        """
        require_room(self._host, self._client)
        metrics = self._host.metrics
        with self._client.streaming(scope):
            metrics.streams_open += 1
            try:
                yield
            finally:
                metrics.streams_open -= 1

    async def _watch(self, scope: anyio.CancelScope) -> None:
        """Have a comment sent where nothing else was, and leave a reader that takes nothing."""
        log = self._turn.log
        # one timer for many events: a deadline around each step costs more than the step
        while True:
            before = self._pieces, log.last
            await anyio.sleep(self._keep_alive)
            if self._is_sending and self._pieces == before[0]:
                scope.cancel()
            elif log.last == before[1]:
                log.wake()

    async def _send(self, send: Send) -> None:
        after = self._after
        while new := await self._turn.log.read(after):
            after, body = new
            if not body:
                continue
            self._is_sending = True
            await send({"type": "http.response.body", "body": body, "more_body": True})
            self._is_sending = False
            self._pieces += 1
        await send({"type": "http.response.body", "body": b""})


def last_event(request: Request) -> int:
    """Return the number of the last event that the reader has.

    Raises:
        RequestError: it is no number.
    """
    text = request.headers.get("last-event-id", "0")
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS):
        raise RequestError(400, "unknown_event", "Last-Event-ID is no number")
    return int(text)


def require_room(host: StreamHost, client: Client) -> None:
    """Refuse a reader where the process or the token has all that it may; call it before anything is done for one.

    Raises:
        RequestError: one of them has.
    """
    if host.metrics.streams_open >= host.limits.max_streams:
        message = "This process has no room for another reader of events"
        raise RequestError(503, "server_full", message, {"Retry-After": "5"})
    client.check_room("streams", client.streams, client.token.max_streams)


async def until_disconnected(receive: Receive, scope: anyio.CancelScope) -> None:
    """Cancel a scope when the caller has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
