"""Requests as whoever runs a server sees them: counted, timed, logged and followed from one process to the next."""

from __future__ import annotations

import re
from typing import Final
from uuid import uuid4

import anyio
import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from amplifier.serving.json_answers import with_private_headers
from amplifier.serving.metrics import Metrics
from amplifier_kit.trace_context import TraceParent, called_by

__all__ = ["REQUEST_ID", "answer_observed", "direct_send"]

REQUEST_ID: Final = "x-request-id"
"""The header that names a request in the server's log; a caller or a proxy may choose it."""

_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MAX_PATH: Final = 300
_SEND: Final = "amplifier.send"
"""Where the scope of a request has the server's own way to send."""


async def answer_observed(
    app: ASGIApp, metrics: Metrics, scope: Scope, receive: Receive, send: Send
) -> None:
    """Have an application answer; what it reports meanwhile has the request's id.

    Args:
        app: answers.
        metrics: count and time the request.
        scope: what is asked.
        receive: brings the rest of it.
        send: takes the answer.
    """
    if scope["type"] != "http":
        await app(scope, receive, send)
        return
    headers, begun = Headers(scope=scope), anyio.current_time()
    given = headers.get(REQUEST_ID, "")
    # any other text would be the caller's in the log
    request_id = given if _ID.fullmatch(given) else uuid4().hex

    async def observed(message: Message) -> None:
        if message["type"] == "http.response.start":
            # a stream is as fast as its first byte
            seconds = anyio.current_time() - begun
            status: int = message["status"]
            metrics.count_request(status, seconds)
            named = (REQUEST_ID.encode(), request_id.encode())
            private = [*with_private_headers(message), named]
            message = {**message, "headers": private}
            _log(scope, status, seconds)
        await send(message)

    scope[_SEND] = send
    caller = TraceParent.parse(headers.get("traceparent", ""))
    with bound_contextvars(request=request_id), called_by(caller):
        await app(scope, receive, observed)


def direct_send(scope: Scope, send: Send) -> Send:
    """Return what sends the body of an answer that has begun: all that lies between cares for its start alone.

    Args:
        scope: of the request.
        send: what an endpoint is given, where nobody observes the request.
    """
    found: Send = scope.get(_SEND, send)
    return found


def _log(scope: Scope, status: int, seconds: float) -> None:
    # without a configuration structlog writes to standard output, which is the application's
    if structlog.is_configured():
        structlog.get_logger("amplifier").info(
            "server.request",
            method=scope["method"],
            path=scope["path"][:_MAX_PATH],
            status=status,
            seconds=round(seconds, 6),
        )
