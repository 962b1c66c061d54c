"""What each address of the server does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal, TypeAlias

import attrs
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from amplifier.kernel.reports import report
from amplifier.serving.bodies import read_body
from amplifier.serving.errors import RequestError
from amplifier.serving.event_stream import EventStreamResponse
from amplifier.serving.schema import EVENT_SCHEMA
from amplifier.serving.sessions import ServedSession, SessionTable
from amplifier.serving.tokens import Client, Clients
from amplifier.serving.turns import OnDisconnect, ServedTurn

__all__ = ["CancelRequest", "Routes", "SessionRequest", "TurnRequest"]

_Endpoint: TypeAlias = Callable[[Request, Client], Awaitable[Response]]

_EVENT_STREAM: Final = "text/event-stream"
_MAX_DIGITS: Final = 18


@attrs.frozen(kw_only=True)
class SessionRequest:
    """What begins a session."""


@attrs.frozen(kw_only=True)
class TurnRequest:
    """What begins a turn.

    Args:
        prompt: what is asked.
        when_busy: whether a turn waits for the one that runs, or is refused.
        on_disconnect: whether the turn continues when nobody reads its events any more.
    """

    prompt: str
    when_busy: Literal["reject", "queue"] = "reject"
    on_disconnect: OnDisconnect = "continue"


@attrs.frozen(kw_only=True)
class CancelRequest:
    """What cancels a turn: at once, or when the step that runs has ended."""

    immediate: bool = True


@attrs.frozen(eq=False)
class Routes:
    """The endpoints.

    Args:
        sessions: those of the server.
        clients: who may call.
        origins: the origins of pages that may call.
    """

    sessions: SessionTable
    clients: Clients
    origins: Sequence[str] = ()

    def all(self) -> list[Route]:
        """Return them with their addresses."""
        session, turn = (
            "/sessions/{session_id}",
            "/sessions/{session_id}/turns/{turn_id}",
        )
        return [
            Route("/health", _health, methods=["GET"]),
            Route("/schema/events.json", _schema, methods=["GET"]),
            self._route("GET", "/sessions", self.list_sessions),
            self._route("POST", "/sessions", self.begin_session),
            self._route("GET", session, self.show_session),
            self._route("DELETE", session, self.close_session),
            self._route("POST", f"{session}/turns", self.begin_turn),
            self._route("GET", turn, self.show_turn),
            self._route("GET", f"{turn}/events", self.read_events),
            self._route("POST", f"{turn}/cancel", self.cancel_turn),
        ]

    def _route(self, method: str, path: str, endpoint: _Endpoint) -> Route:
        """Let nobody in who is not known."""

        async def guarded(request: Request) -> Response:
            client = self.clients.identify(request.headers, self.origins)
            client.count_request()
            return await endpoint(request, client)

        return Route(path, guarded, methods=[method])

    # -- sessions

    async def list_sessions(self, _request: Request, client: Client) -> Response:
        """List the client's sessions."""
        listed = [session.to_json() for session in client.sessions.values()]
        return JSONResponse({"sessions": listed})

    async def begin_session(self, request: Request, client: Client) -> Response:
        """Open a session."""
        await read_body(request, SessionRequest, self.sessions.limits)
        try:
            session = await self.sessions.begin(client)
        except RequestError:
            raise
        except Exception as error:  # a module may refuse to be mounted
            report("serving.session_not_opened", error)
            raise RequestError(
                500, "session_failed", "The session cannot be opened; the log says why"
            ) from None
        return JSONResponse(session.to_json(), 201)

    async def show_session(self, request: Request, client: Client) -> Response:
        """Describe a session."""
        return JSONResponse(_session(request, client).to_json())

    async def close_session(self, request: Request, client: Client) -> Response:
        """Close a session, and wait until it is."""
        session = _session(request, client)
        session.close()
        await session.closed.wait()
        return Response(status_code=204)

    # -- turns

    async def begin_turn(self, request: Request, client: Client) -> Response:
        """Begin a turn; where the caller accepts events, they are the answer."""
        session = _session(request, client)
        wanted = await read_body(request, TurnRequest, self.sessions.limits)
        is_streamed = _EVENT_STREAM in request.headers.get("accept", "")
        if is_streamed:
            client.check_room("streams", client.streams, client.token.max_streams)
        turn = session.add_turn(
            wanted.prompt,
            on_disconnect=wanted.on_disconnect,
            may_wait=wanted.when_busy == "queue",
        )
        if is_streamed:
            return self._events(turn, client, 0)
        return JSONResponse(turn.to_json(), 202)

    async def show_turn(self, request: Request, client: Client) -> Response:
        """Describe a turn."""
        return JSONResponse(_turn(request, client).to_json())

    async def read_events(self, request: Request, client: Client) -> Response:
        """Stream a turn's events, those after `Last-Event-ID` alone."""
        turn = _turn(request, client)
        after = _last_event(request, turn)
        if turn.is_ended and after == turn.log.last:
            # a browser that reconnects after the end stops only for this status
            return Response(status_code=204)
        client.check_room("streams", client.streams, client.token.max_streams)
        return self._events(turn, client, after)

    async def cancel_turn(self, request: Request, client: Client) -> Response:
        """Cancel a turn, unless it has ended."""
        turn = _turn(request, client)
        wanted = await read_body(request, CancelRequest, self.sessions.limits)
        turn.cancel(immediate=wanted.immediate)
        return JSONResponse(turn.to_json(), 202)

    def _events(self, turn: ServedTurn, client: Client, after: int) -> Response:
        keep_alive = self.sessions.limits.keep_alive
        return EventStreamResponse(turn, client, after, keep_alive)


async def _health(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _schema(_request: Request) -> Response:
    return JSONResponse(EVENT_SCHEMA, media_type="application/schema+json")


def _session(request: Request, client: Client) -> ServedSession:
    """Return the client's session that a request names; another client's is not there."""
    session = client.sessions.get(request.path_params["session_id"])
    if session is None:
        raise RequestError(404, "not_found", "There is no such session")
    return session


def _turn(request: Request, client: Client) -> ServedTurn:
    return _session(request, client).turn(request.path_params["turn_id"])


def _last_event(request: Request, turn: ServedTurn) -> int:
    """Return the number of the last event that the reader has."""
    text = request.headers.get("last-event-id", "0")
    if text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS:
        number = int(text)
        if number <= turn.log.last:
            return number
    raise RequestError(
        400, "unknown_event", f"Last-Event-ID is a number up to {turn.log.last}"
    )
