"""The answer that streams a turn's events, for as long as somebody reads it."""

from __future__ import annotations

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from amplifier.kernel.groups import open_group
from amplifier.serving.sessions import SessionTable
from amplifier.serving.tokens import Client
from amplifier.serving.turns import ServedTurn

__all__ = ["EventStreamResponse", "until_disconnected"]


class EventStreamResponse(Response):
    """Server-sent events of a turn; it ends with the turn, or when the reader is gone."""

    def __init__(
        self, sessions: SessionTable, client: Client, turn: ServedTurn, after: int = 0
    ) -> None:
        # proxies would store an answer, or wait for its end
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(headers=headers, media_type="text/event-stream")
        del self.headers["content-length"]
        self._turn = turn
        self._client = client
        self._after = after
        self._keep_alive = sessions.limits.keep_alive
        self._metrics = sessions.metrics

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until there are no more."""
        self._client.streams += 1
        self._metrics.streams_open += 1
        try:
            with self._turn.reader():
                async with open_group() as group:
                    group.start_soon(until_disconnected, receive, group.cancel_scope)
                    group.start_soon(self._turn.log.keep_alive, self._keep_alive)
                    await self._send(send)
                    group.cancel_scope.cancel()
        finally:
            self._client.streams -= 1
            self._metrics.streams_open -= 1

    async def _send(self, send: Send) -> None:
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        after = self._after
        while new := await self._turn.log.read(after):
            after, body = new
            if body:
                message = {"body": body, "more_body": True}
                await send({"type": "http.response.body", **message})
        await send({"type": "http.response.body", "body": b""})


async def until_disconnected(receive: Receive, scope: anyio.CancelScope) -> None:
    """Cancel a scope when the caller has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
