"""Sessions and turns: what each address does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import attrs
from starlette.requests import Request
from starlette.responses import Response

from amplifier.serving.bodies import read_body
from amplifier.serving.errors import RequestError
from amplifier.serving.event_stream import EventStreamResponse, last_event, require_room
from amplifier.serving.json_answers import JSONAnswer
from amplifier.serving.operations import EVENT_STREAM, Operation
from amplifier.serving.prompts import PromptParts, read_prompt
from amplifier.serving.schema import SESSION_SCHEMA, TURN_SCHEMA
from amplifier.serving.sessions import ServedSession, SessionTable
from amplifier.serving.tokens import Client
from amplifier.serving.turns import OnDisconnect, RequestedTurn
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.output_schema import OutputSchema

__all__ = [
    "EVENT_FRAME",
    "LAST_EVENT",
    "ApprovalAnswer",
    "CancelRequest",
    "SessionRequest",
    "SessionRoutes",
    "TurnRequest",
]

EVENT_FRAME: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": {"$ref": "#/components/schemas/Event"},
        },
    },
    "required": ["data"],
}
"""One of the server-sent events of a turn."""

LAST_EVENT: Final[dict[str, JSONObject]] = {
    "Last-Event-ID": {"type": "string", "pattern": "^[0-9]{1,18}$"}
}
"""The header by which a reader says which of them it has."""


@attrs.frozen(kw_only=True)
class SessionRequest:
    """What begins a session."""


@attrs.frozen(kw_only=True)
class TurnRequest:
    """What begins a turn.

    Args:
        prompt: what is asked: a text, or texts and media in order.
        when_busy: whether the turn waits for the one that runs, or is refused.
        on_disconnect: whether it continues when nobody reads its events any more.
    """

    prompt: str | PromptParts
    when_busy: Literal["reject", "queue"] = "reject"
    on_disconnect: OnDisconnect = "continue"


@attrs.frozen(kw_only=True)
class CancelRequest:
    """What cancels a turn: at once, or when the step that runs has ended."""

    immediate: bool = True


@attrs.frozen(kw_only=True)
class ApprovalAnswer:
    """What answers a question: one of its options."""

    option: str


@attrs.frozen(eq=False)
class SessionRoutes:
    """The endpoints of sessions and turns.

    Args:
        sessions: those of the server.
    """

    sessions: SessionTable

    def operations(self) -> Iterator[Operation]:
        """Describe them all."""
        one, turn = "/sessions/{session_id}", "/sessions/{session_id}/turns/{turn_id}"
        listed: JSONObject = {"type": "array", "items": SESSION_SCHEMA}
        table: JSONObject = {
            "type": "object",
            "properties": {"sessions": listed},
            "required": ["sessions"],
        }
        yield Operation("GET", "/sessions", self.list_sessions, {200: table})
        yield Operation(
            "POST",
            "/sessions",
            self.begin_session,
            {201: SESSION_SCHEMA},
            body=_schema(SessionRequest),
            errors=(409, 503),
        )
        yield Operation("GET", one, self.show_session, {200: SESSION_SCHEMA})
        yield Operation("DELETE", one, self.close_session, {204: None})
        yield Operation(
            "POST",
            f"{one}/turns",
            self.begin_turn,
            {202: TURN_SCHEMA},
            body=_schema(TurnRequest),
            streamed=EVENT_FRAME,
            errors=(409, 503),
        )
        yield Operation("GET", turn, self.show_turn, {200: TURN_SCHEMA})
        yield Operation(
            "GET",
            f"{turn}/events",
            self.read_events,
            {204: None},
            streamed=EVENT_FRAME,
            errors=(503,),
            headers=LAST_EVENT,
        )
        cancel, approval = f"{turn}/cancel", f"{one}/approvals/{{approval_id}}"
        yield Operation(
            "POST",
            cancel,
            self.cancel_turn,
            {202: TURN_SCHEMA},
            body=_schema(CancelRequest),
        )
        yield Operation(
            "POST",
            approval,
            self.answer_approval,
            {204: None},
            body=_schema(ApprovalAnswer),
        )

    # -- sessions

    async def list_sessions(self, _request: Request, client: Client) -> Response:
        """List the sessions of the token."""
        listed = [session.to_json() for session in client.sessions.values()]
        return JSONAnswer({"sessions": listed})

    async def begin_session(self, request: Request, client: Client) -> Response:
        """Open a session."""
        await read_body(request, SessionRequest, self.sessions.limits)
        session = await self.sessions.begin(client)
        return JSONAnswer(session.to_json(), 201)

    async def show_session(self, request: Request, client: Client) -> Response:
        """Show a session with its last turns and open questions."""
        return JSONAnswer(_session(request, client).to_json())

    async def close_session(self, request: Request, client: Client) -> Response:
        """Cancel what runs in a session and close it."""
        session = _session(request, client)
        session.close()
        await session.closed.wait()
        return Response(status_code=204)

    # -- turns

    async def begin_turn(self, request: Request, client: Client) -> Response:
        """Begin a turn; where the caller accepts events, they are the answer."""
        session = _session(request, client)
        wanted = await read_body(request, TurnRequest, self.sessions.limits)
        is_streamed = EVENT_STREAM in request.headers.get("accept", "")
        if is_streamed:
            require_room(self.sessions, client)
        turn = session.add_turn(
            read_prompt(wanted.prompt),
            on_disconnect=wanted.on_disconnect,
            may_wait=wanted.when_busy == "queue",
        )
        if is_streamed:
            return EventStreamResponse(self.sessions, client, turn)
        return JSONAnswer(turn.to_json(), 202)

    async def show_turn(self, request: Request, client: Client) -> Response:
        """Show how a turn stands, and its output when it has ended."""
        return JSONAnswer(_turn(request, client).to_json())

    async def read_events(self, request: Request, client: Client) -> Response:
        """Stream a turn's events, those after `Last-Event-ID` alone."""
        turn = _turn(request, client)
        after = _last_event(request, turn)
        if turn.is_ended and after == turn.log.last:
            # a browser that reconnects after the end stops only for this status
            return Response(status_code=204)
        require_room(self.sessions, client)
        return EventStreamResponse(self.sessions, client, turn, after)

    async def cancel_turn(self, request: Request, client: Client) -> Response:
        """Cancel a turn, unless it has ended."""
        turn = _turn(request, client)
        wanted = await read_body(request, CancelRequest, self.sessions.limits)
        turn.cancel(immediate=wanted.immediate)
        return JSONAnswer(turn.to_json(), 202)

    async def answer_approval(self, request: Request, client: Client) -> Response:
        """Answer a question of the turn that runs."""
        session = _session(request, client)
        wanted = await read_body(request, ApprovalAnswer, self.sessions.limits)
        session.approvals.answer(request.path_params["approval_id"], wanted.option)
        return Response(status_code=204)


def _schema(request: type) -> JSONObject:
    return OutputSchema.of(request).schema


def _session(request: Request, client: Client) -> ServedSession:
    """Return the client's session that a request names; another client's is not there."""
    session = client.sessions.get(request.path_params["session_id"])
    if session is None:
        raise RequestError(404, "not_found", "There is no such session")
    return session


def _turn(request: Request, client: Client) -> RequestedTurn:
    return _session(request, client).turn(request.path_params["turn_id"])


def _last_event(request: Request, turn: RequestedTurn) -> int:
    """Return the number of the last event that the reader has."""
    number = last_event(request)
    if number > turn.log.last:
        raise RequestError(
            404, "unknown_event", f"The turn has no event after {turn.log.last} so far"
        )
    return number
