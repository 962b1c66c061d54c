"""`StoredServer`: the ASGI application of `amplifier serve`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from functools import wraps
from typing import Final

import attrs
from anyio.abc import TaskGroup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from amplifier.app.plans.base_plans import PlanOptions
from amplifier.kernel.groups import open_group
from amplifier.kernel.reports import report
from amplifier.server.activity import ActivityLog
from amplifier.server.followers import Followers
from amplifier.server.insights import Insights
from amplifier.server.members import Members, TokenHolder
from amplifier.server.page_routes import page_routes
from amplifier.server.quotas import SharedQuotas, open_quotas
from amplifier.server.readiness import Readiness
from amplifier.server.reaper import Reaper
from amplifier.server.retries import problem_of
from amplifier.server.roles import Role
from amplifier.server.served_turns import TurnSetup
from amplifier.server.sessions import StoredSessions
from amplifier.server.stores import ServerStores
from amplifier.server.token_store import TokenStore
from amplifier.server.turns import LocalTurns, TurnEngine
from amplifier.server.workers import QueuedTurns
from amplifier.serving.document import document_of
from amplifier.serving.errors import (
    RequestError,
    answer_http_exception,
    answer_request_error,
    answer_unexpected,
)
from amplifier.serving.json_answers import JSONAnswer
from amplifier.serving.limits import ServerLimits
from amplifier.serving.metrics import Metrics
from amplifier.serving.observed import answer_observed
from amplifier.serving.operations import Endpoint, Operation, routes_of
from amplifier.serving.schema import EVENT_SCHEMA
from amplifier.serving.tokens import Client
from amplifier_sdk.engines import ExecutionEngine
from amplifier_sdk.errors import StoreError
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["StoredServer"]

_MAX_PATH: Final = 300


@attrs.define(eq=False)
class StoredServer:
    """An ASGI application for the sessions of a store.

    Args:
        stores: where they are.
        options: what new sessions are made of.
        limits: what the server holds at most.
        queue: the engine whose workers run the turns; default this process does. Whoever opened it closes it.
        reap_interval: seconds between two looks for turns whose process died.
    """

    stores: ServerStores
    options: PlanOptions = attrs.field(factory=PlanOptions)
    limits: ServerLimits = attrs.field(factory=ServerLimits)
    metrics: Metrics = attrs.field(factory=Metrics)
    queue: ExecutionEngine | None = None
    reap_interval: float = 5.0
    _app: Starlette | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or run for as long as the server does."""
        app = self._app
        if app is None:
            if scope["type"] == "lifespan":
                app = Starlette(lifespan=self.lifespan)
            else:
                app = Starlette()  # which knows no address yet
        await answer_observed(app, self.metrics, scope, receive, send)

    @asynccontextmanager
    async def lifespan(self, _app: object = None) -> AsyncIterator[None]:
        """Open the stores and serve; turns that run here at the end are left, and continued by whoever serves next.

        Raises:
            StoreError: the store cannot be opened.
            ConfigError: the settings of `server.limits` have problems.
        """
        try:
            store = await self.stores.server()
            members, activity = Members(TokenStore(store)), ActivityLog(store)
            await members.load()
            quotas = await open_quotas(self.stores)
            async with open_group() as group:
                group.start_soon(members.follow)
                if quotas is not None:
                    group.start_soon(quotas.run)
                engine = self._engine(group, activity, quotas)
                reaper = Reaper(self.stores, members, engine, self.reap_interval)
                group.start_soon(reaper.run)
                sessions = StoredSessions(
                    self.stores,
                    engine,
                    Followers(group, self.limits),
                    self.limits,
                    self.metrics,
                    quotas,
                )
                self._app = self._made(sessions, members, activity)
                try:
                    yield
                finally:
                    self._app = None
                    group.cancel_scope.cancel()
        finally:
            await self.stores.aclose()

    def _engine(
        self, group: TaskGroup, activity: ActivityLog, quotas: SharedQuotas | None
    ) -> TurnEngine:
        if self.queue is not None:
            return QueuedTurns(self.queue)
        setup = TurnSetup(self.options, activity, self.metrics, quotas)
        return LocalTurns(group, setup)

    def _made(
        self, sessions: StoredSessions, members: Members, activity: ActivityLog
    ) -> Starlette:
        described = [
            *sessions.operations(),
            *Insights(sessions, activity).operations(),
        ]
        operations = list(_guarded(described, activity))
        app = Starlette(
            routes=[
                *page_routes(),
                *_public_routes(
                    Readiness(self.stores, activity),
                    document_of("amplifier serve", operations),
                ),
                *routes_of(operations, members),
            ],
            exception_handlers={
                RequestError: answer_request_error,
                HTTPException: answer_http_exception,
                StoreError: self._answer_unavailable,
                OSError: self._answer_unavailable,
                Exception: answer_unexpected,
            },
        )
        # a redirect would lead to whatever the request calls its host
        app.router.redirect_slashes = False
        return app

    def _answer_unavailable(self, _request: Request, error: Exception) -> Response:
        self.metrics.store_failures += 1
        # it names hosts, users and folders, which are no caller's business
        report("server.store_failed", problem=problem_of(error))
        message = "The store cannot be used at the moment; the server's log says why"
        data: JSONObject = {"code": "store_unavailable", "message": message}
        return JSONAnswer({"error": data}, 503, {"Retry-After": "1"})


def _public_routes(readiness: Readiness, document: JSONObject) -> Iterator[Route]:
    """Yield what anybody may ask for: it says nothing of sessions."""

    async def show_health(_request: Request) -> Response:
        return JSONAnswer({"status": "ok"})

    async def show_readiness(_request: Request) -> Response:
        await readiness.check()
        return JSONAnswer({"status": "ready"})

    async def show_schema(_request: Request) -> Response:
        return JSONAnswer(EVENT_SCHEMA, media_type="application/schema+json")

    async def show_document(_request: Request) -> Response:
        return JSONAnswer(document)

    for path, endpoint in (
        ("/healthz", show_health),
        ("/readyz", show_readiness),
        ("/schema/events.json", show_schema),
        ("/openapi.json", show_document),
    ):
        yield Route(path, endpoint, methods=["GET"])


def _guarded(
    described: Iterable[tuple[Role, Operation]], activity: ActivityLog
) -> Iterator[Operation]:
    """Let nobody in whose role is not enough, and note who changes something before they do."""
    for role, operation in described:
        yield attrs.evolve(
            operation,
            endpoint=_checked(operation, role, activity),
            errors=(*operation.errors, 503),
        )


def _checked(operation: Operation, role: Role, activity: ActivityLog) -> Endpoint:
    endpoint = operation.endpoint

    @wraps(endpoint)
    async def checked(request: Request, client: Client) -> Response:
        assert isinstance(client, TokenHolder)
        entry: JSONObject = {
            "token": client.token.name,
            "action": endpoint.__name__,
            "path": request.url.path[:_MAX_PATH],
        }
        try:
            client.require(role)
        except RequestError:
            await activity.note("audit", client.tenant, {**entry, "refused": True})
            raise
        if operation.method != "GET":
            # what cannot be noted is not done
            await activity.note("audit", client.tenant, entry)
        return await endpoint(request, client)

    return checked
