"""`AgentServer`: the ASGI application of an agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Never, TypedDict

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.types import Receive, Scope, Send

from amplifier.kernel.groups import open_group
from amplifier.serving.ag_ui_routes import AgUiRoutes
from amplifier.serving.document import document_of
from amplifier.serving.errors import (
    RequestError,
    answer_http_exception,
    answer_request_error,
    answer_unexpected,
)
from amplifier.serving.limits import ServerLimits
from amplifier.serving.metrics import Metrics
from amplifier.serving.observed import answer_observed
from amplifier.serving.openai_routes import OpenAIRoutes
from amplifier.serving.operations import routes_of
from amplifier.serving.routes import SessionRoutes
from amplifier.serving.server_routes import ServerRoutes
from amplifier.serving.sessions import Prepare, SessionTable
from amplifier.serving.tokens import Clients, Token

if TYPE_CHECKING:
    from amplifier.agent.agent import Agent

__all__ = ["AgentServer", "ServerOptions"]


class ServerOptions(TypedDict, total=False):
    """The options of an `AgentServer`, which say what they are there."""

    tokens: Sequence[Token]
    allow_anonymous: bool
    origins: Sequence[str]
    hosts: Sequence[str]
    limits: ServerLimits
    prepare: Prepare


class AgentServer:
    """An ASGI application in which an agent answers.

    A server such as uvicorn or hypercorn runs it. Mounted in another application it needs that one's lifespan:
    `FastAPI(lifespan=server.lifespan)`. Its sessions end with it.

    Args:
        agent: who answers.
        tokens: who may call; each finds its own sessions alone.
        allow_anonymous: let anybody call who sends no token.
        origins: the origins of web pages that may call; default none.
        hosts: the names under which anonymous callers may find the server; default addresses and `localhost`.
        limits: of what the server holds.
        prepare: gets each session before it is opened, and the name of the token for which it is, to register
            capabilities and handlers or to set its `deps`.

    Raises:
        ConfigError: there is no token and anonymous callers are not allowed, or two tokens are alike.
    """

    def __init__(
        self,
        agent: Agent[Never, object],
        *,
        tokens: Sequence[Token] = (),
        allow_anonymous: bool = False,
        origins: Sequence[str] = (),
        hosts: Sequence[str] = (),
        limits: ServerLimits | None = None,
        prepare: Prepare | None = None,
    ) -> None:
        clients = Clients.of(
            tokens, allow_anonymous=allow_anonymous, origins=origins, hosts=hosts
        )
        self._metrics = Metrics()
        self._sessions = SessionTable(
            agent, limits or ServerLimits(), prepare, self._metrics
        )
        server = ServerRoutes(self._sessions)
        operations = [
            *SessionRoutes(self._sessions).operations(),
            *AgUiRoutes(self._sessions).operations(),
            *OpenAIRoutes(self._sessions).operations(),
            *server.operations(),
        ]
        server.document.update(document_of(agent.name, operations))
        cors = Middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Last-Event-ID"],
        )
        self._app = Starlette(
            routes=[
                *server.public_routes(),
                *routes_of(operations, clients),
            ],
            middleware=[cors] if origins else [],
            exception_handlers={
                RequestError: answer_request_error,
                HTTPException: answer_http_exception,
                Exception: answer_unexpected,
            },
            lifespan=self.lifespan,
        )
        # a redirect would lead to whatever the request calls its host
        self._app.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or run for as long as the server does."""
        await answer_observed(self._app, self._metrics, scope, receive, send)

    @asynccontextmanager
    async def lifespan(self, _app: object = None) -> AsyncIterator[None]:
        """Let sessions be opened; at the end turns are cancelled and sessions closed.

        Raises:
            RuntimeError: the server runs already.
        """
        async with open_group() as group:
            with self._sessions.inside(group):
                yield
