"""What a server can be asked: each operation with what it takes and answers, for its router and its document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final, Protocol, TypeAlias

import attrs
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from amplifier.serving.tokens import Client
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["EVENT_STREAM", "Endpoint", "Identifies", "Operation", "routes_of"]

Endpoint: TypeAlias = Callable[[Request, Client], Awaitable[Response]]
"""Answers a request of a client that is known."""

EVENT_STREAM: Final = "text/event-stream"


@attrs.frozen
class Operation:
    """One thing that a client may ask for.

    Args:
        method: the HTTP method.
        path: the address, with its parameters in braces.
        endpoint: answers it; its docstring says what it does.
        answers: the JSON Schema of each answer by its status; `None` is an answer without a body.
        body: the JSON Schema of the request's body; `None` where there is none.
        media_type: of the answers.
        streamed: the JSON Schema of one server-sent event, where the answer may be a stream of them.
        errors: the statuses of the errors that are its own.
        headers: the request's own headers, each with its schema.
        parameters: those of its query, likewise.
    """

    method: str
    path: str
    endpoint: Endpoint
    answers: Mapping[int, JSONObject | None]
    body: JSONObject | None = attrs.field(default=None, kw_only=True)
    media_type: str = attrs.field(default="application/json", kw_only=True)
    streamed: JSONObject | None = attrs.field(default=None, kw_only=True)
    errors: Sequence[int] = attrs.field(default=(), kw_only=True)
    headers: Mapping[str, JSONObject] = attrs.field(factory=dict, kw_only=True)
    parameters: Mapping[str, JSONObject] = attrs.field(factory=dict, kw_only=True)


class Identifies(Protocol):
    """Knows who may call."""

    def identify(self, headers: Headers) -> Client:
        """Return who sends a request, or raise a `RequestError`."""


def routes_of(operations: Iterable[Operation], clients: Identifies) -> list[Route]:
    """Make a route of each path, which lets nobody in who is not known."""
    ordered = sorted(operations, key=lambda operation: operation.path)
    return [
        _route(path, {one.method: one.endpoint for one in same}, clients)
        for path, same in groupby(ordered, key=lambda operation: operation.path)
    ]


def _route(path: str, endpoints: Mapping[str, Endpoint], clients: Identifies) -> Route:
    allowed = {"Allow": ", ".join(endpoints)}

    async def guarded(request: Request) -> Response:
        client = clients.identify(request.headers)
        client.count_request()
        endpoint = endpoints.get(request.method)
        if endpoint is None:
            raise HTTPException(405, headers=allowed)
        return await endpoint(request, client)

    # every method: the router would name those of one operation alone
    return Route(path, guarded, methods=_METHODS)


_METHODS: Final = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE")
