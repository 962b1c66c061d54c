"""The server itself: whether it runs, what it did, what can be asked of it."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from amplifier.serving.errors import RequestError
from amplifier.serving.json_answers import JSONAnswer
from amplifier.serving.metrics import METRICS_TYPE
from amplifier.serving.operations import Operation
from amplifier.serving.schema import EVENT_SCHEMA
from amplifier.serving.sessions import SessionTable
from amplifier.serving.tokens import Client
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["ServerRoutes"]


@attrs.frozen(eq=False)
class ServerRoutes:
    """The endpoints that are about the server.

    Args:
        sessions: those of the server.
        document: what can be asked of it; the program fills it in.
    """

    sessions: SessionTable
    document: JSONObject = attrs.field(factory=dict)

    def operations(self) -> Iterator[Operation]:
        """Describe those that need a token."""
        yield Operation(
            "GET",
            "/metrics",
            self.show_metrics,
            {200: {"type": "string"}},
            media_type="text/plain",
            errors=(403,),
        )

    def public_routes(self) -> list[Route]:
        """Return those that anybody may ask for: they say nothing of sessions."""
        return [
            Route("/health", self.show_health, methods=["GET"]),
            Route("/schema/events.json", _schema, methods=["GET"]),
            Route("/openapi.json", self.show_document, methods=["GET"]),
        ]

    async def show_metrics(self, _request: Request, client: Client) -> Response:
        """Show the metrics as Prometheus reads them."""
        if not client.token.may_read_metrics:
            raise RequestError(403, "forbidden", "The token may not read metrics")
        return Response(self.sessions.metrics.to_text(), media_type=METRICS_TYPE)

    async def show_health(self, _request: Request) -> Response:
        """Show whether the server runs."""
        if not self.sessions.is_running:
            raise RequestError(503, "not_running", "The server is not running")
        return JSONAnswer({"status": "ok"})

    async def show_document(self, _request: Request) -> Response:
        """Show the OpenAPI document."""
        return JSONAnswer(self.document)


async def _schema(_request: Request) -> Response:
    return JSONAnswer(EVENT_SCHEMA, media_type="application/schema+json")
