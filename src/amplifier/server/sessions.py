"""Stored sessions: what each address of them does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from time import time
from typing import Final
from uuid import uuid4

import anyio
import attrs
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from amplifier.server.budgets import require_budget
from amplifier.server.followers import Followers
from amplifier.server.leases import release_lease, renewed
from amplifier.server.members import TokenHolder
from amplifier.server.quotas import SharedQuotas
from amplifier.server.reaper import end_cancelled_turn, without_left_turn
from amplifier.server.records import (
    CANCEL,
    STORED_SESSION_SCHEMA,
    SUMMARY_SCHEMA,
    described,
    is_open_approval,
    new_record,
    running_turn,
    summary,
    turns_of,
    waiting_turn,
    with_new_turn,
)
from amplifier.server.requests import (
    NewSession,
    NewTurn,
    Priority,
    QuestionAnswer,
    answer_to,
    limit_of,
    no_session,
    search_of,
    session_id_of,
)
from amplifier.server.roles import Role
from amplifier.server.served_turns import AcceptedTurn
from amplifier.server.stores import ServerStores, Tenant
from amplifier.server.turns import TurnEngine, store_prompt
from amplifier.serving.bodies import read_body
from amplifier.serving.errors import RequestError
from amplifier.serving.event_stream import EventStreamResponse, last_event, require_room
from amplifier.serving.json_answers import JSONAnswer
from amplifier.serving.limits import ServerLimits
from amplifier.serving.metrics import Metrics
from amplifier.serving.operations import Operation
from amplifier.serving.prompts import read_prompt
from amplifier.serving.routes import EVENT_FRAME, LAST_EVENT, CancelRequest
from amplifier.serving.schema import TURN_SCHEMA
from amplifier.serving.tokens import Client
from amplifier_kit.redaction import SinkRedactor, StrictRedactor
from amplifier_sdk.errors import LeaseHeldError, QuestionClosedError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.media import prompt_text
from amplifier_sdk.output_schema import OutputSchema
from amplifier_sdk.stores import Lease, LogEntry, StoredQuestion

__all__ = ["StoredSessions"]

_PERIOD: Final = 15.0
"""Seconds after which a session is free whose process died."""

_HANDOVER: Final = 2.0
_RETRY: Final = 0.05
_MINUTES: Final[Mapping[Priority, int]] = {"high": 0, "normal": 10, "low": 20}
"""How far behind others a turn is in a queue."""

_ONE: Final = "/sessions/{session_id}"
_TURN: Final = f"{_ONE}/turns/{{turn_id}}"
_TEXT: Final[JSONObject] = {"type": "string"}
_NEW_TURN: Final = OutputSchema.of(NewTurn).schema
_APPROVAL: Final = OutputSchema.of(QuestionAnswer).schema


@attrs.frozen(eq=False)
class StoredSessions:
    """The endpoints of stored sessions.

    Args:
        stores: where they are.
        engine: runs their turns.
        followers: read their events.
        limits: the server's.
        metrics: what it did.
        quotas: what all processes share; `None` where the store has no accounts.
    """

    stores: ServerStores
    engine: TurnEngine
    followers: Followers
    limits: ServerLimits
    metrics: Metrics
    quotas: SharedQuotas | None = None
    _beginning: Counter[str] = attrs.field(factory=Counter)

    def operations(self) -> Iterator[tuple[Role, Operation]]:
        """Describe them all, each with the role that it needs."""
        for each in self._read_operations():
            yield "reader", each
        for each in self._operations_of_operators():
            yield "operator", each
        delete = Operation(
            "DELETE", _ONE, self.delete_session, {204: None}, errors=(409,)
        )
        yield "owner", delete

    def _read_operations(self) -> Iterator[Operation]:
        numbers: JSONObject = {"type": "integer", "minimum": 1, "maximum": 200}
        yield Operation(
            "GET",
            "/sessions",
            self.list_sessions,
            {200: _list_of("sessions", SUMMARY_SCHEMA)},
            parameters={"search": {**_TEXT, "maxLength": 200}, "limit": numbers},
            errors=(422,),
        )
        yield Operation("GET", _ONE, self.show_session, {200: STORED_SESSION_SCHEMA})
        yield Operation("GET", _TURN, self.show_turn, {200: TURN_SCHEMA})
        yield Operation(
            "GET",
            f"{_ONE}/events",
            self.read_events,
            {},
            streamed=EVENT_FRAME,
            headers=LAST_EVENT,
        )

    def _operations_of_operators(self) -> Iterator[Operation]:
        yield Operation(
            "POST",
            "/sessions",
            self.begin_session,
            {201: STORED_SESSION_SCHEMA},
            body=OutputSchema.of(NewSession).schema,
        )
        yield Operation(
            "POST",
            f"{_ONE}/turns",
            self.begin_turn,
            {202: TURN_SCHEMA},
            body=_NEW_TURN,
            errors=(409,),
        )
        yield Operation(
            "POST",
            f"{_TURN}/cancel",
            self.cancel_turn,
            {202: TURN_SCHEMA},
            body=OutputSchema.of(CancelRequest).schema,
        )
        yield Operation(
            "POST",
            f"{_ONE}/approvals/{{approval_id}}",
            self.answer_approval,
            {204: None},
            body=_APPROVAL,
            errors=(409,),
        )

    # -- sessions

    async def list_sessions(self, request: Request, client: Client) -> Response:
        """List the tenant's sessions, the latest first, or those in which a text stands."""
        store = (await self.tenant(client)).store
        text, limit = search_of(request), limit_of(request)
        if text is None:
            records = await store.list_sessions(limit=limit)
        else:
            found = [
                await store.read_record(session_id)
                for session_id in await store.search(text, limit=limit)
            ]
            records = tuple(record for record in found if record is not None)
        listed: list[JSONValue] = [summary(record) for record in records]
        return JSONAnswer({"sessions": listed})

    async def begin_session(self, request: Request, client: Client) -> Response:
        """Begin a session; it is stored, and opened for each turn."""
        wanted = await read_body(request, NewSession, self.limits)
        tenant = await self.tenant(client)
        session_id = str(uuid4())
        name = None if wanted.name is None else _redacted(wanted.name)
        record = new_record(session_id, str(tenant.dirs.working_dir), name)
        lease = await tenant.store.acquire(session_id, owner="server", period=_PERIOD)
        try:
            await tenant.store.write_record(lease, record)
        finally:
            await release_lease(tenant.store, lease)
        return JSONAnswer(described(record, ()), 201)

    async def show_session(self, request: Request, client: Client) -> Response:
        """Show a session with its last turns and open questions."""
        tenant, record = await self.session(request, client)
        questions = await tenant.store.questions(str(record["session_id"]))
        return JSONAnswer(described(record, list(filter(is_open_approval, questions))))

    async def delete_session(self, request: Request, client: Client) -> Response:
        """Delete a session with all that came of it, unless a turn of it runs."""
        tenant, record = await self.session(request, client)
        session_id = str(record["session_id"])
        lease = await _acquired(tenant, session_id, client.token.name)
        left = running_turn(record)
        try:
            if left is not None and not await self.engine.is_left(
                tenant, session_id, left
            ):
                raise _busy()
            # the session itself first: what is left of a failure here is still listed
            if await to_thread.run_sync(tenant.files.session, session_id) is not None:
                await to_thread.run_sync(tenant.files.delete, session_id)
            await tenant.store.delete(session_id, leases=[lease])
        except BaseException:
            await release_lease(tenant.store, lease)
            raise
        return Response(status_code=204)

    # -- turns

    async def begin_turn(self, request: Request, client: Client) -> Response:
        """Begin a turn; its events are those of the session."""
        tenant, record = await self.session(request, client)
        wanted = await read_body(request, NewTurn, self.limits)
        prompt = read_prompt(wanted.prompt)
        session_id, turn_id = str(record["session_id"]), str(uuid4())
        with self._room(tenant, client):
            if self.quotas is not None:
                await require_budget(self.quotas, tenant.name)
            room = await self.engine.admit(tenant.name)
            try:
                lease = await _acquired(tenant, session_id, client.token.name)
                turn = AcceptedTurn(
                    tenant=tenant,
                    turn_id=turn_id,
                    prompt=prompt,
                    lease=lease,
                    minutes=_MINUTES[wanted.priority],
                    room=room,
                )
                try:
                    async with renewed(tenant.store, lease):
                        await self._accept(turn)
                except BaseException:
                    await release_lease(tenant.store, lease)
                    raise
            except BaseException:
                await self.engine.dismiss(room)
                raise
            await self.engine.start(turn)
        return JSONAnswer({"turn_id": turn_id, "state": "running"}, 202)

    async def show_turn(self, request: Request, client: Client) -> Response:
        """Show how a turn stands, and its output when it has ended."""
        _, record = await self.session(request, client)
        return JSONAnswer(_turn(request, record))

    async def cancel_turn(self, request: Request, client: Client) -> Response:
        """Cancel a turn, whichever process runs it, unless it has ended."""
        tenant, record = await self.session(request, client)
        turn = _turn(request, record)
        wanted = await read_body(request, CancelRequest, self.limits)
        mode = "immediate" if wanted.immediate else "graceful"
        turn_id = str(turn["turn_id"])
        with suppress(QuestionClosedError):
            # else it ended meanwhile, and so did its questions
            await tenant.store.answer(f"{turn_id}-{mode}", mode, by=client.token.name)
            session_id = str(record["session_id"])
            await end_cancelled_turn(self.engine, tenant, session_id, turn_id)
        _, record = await self.session(request, client)
        return JSONAnswer(_turn(request, record), 202)

    async def read_events(self, request: Request, client: Client) -> Response:
        """Stream a session's events, those after `Last-Event-ID` alone, and then those that come."""
        # first: a crowd that is refused costs the store nothing
        require_room(self, client)
        tenant, record = await self.session(request, client)
        after = last_event(request)
        session_id = str(record["session_id"])
        followed = await self.followers.follow(tenant.name, tenant.store, session_id)
        if after > followed.log.last:
            # another process may have been faster than this one's reader
            log = await tenant.store.read_log(session_id, "events", after=after - 1)
            if not log.entries:
                with followed.reader():
                    raise RequestError(404, "unknown_event", "There is no such event")
        return EventStreamResponse(self, client, followed, after)

    # -- questions

    async def answer_approval(self, request: Request, client: Client) -> Response:
        """Answer a question of the turn that runs; the same answer again changes nothing."""
        tenant, record = await self.session(request, client)
        wanted = await read_body(request, QuestionAnswer, self.limits)
        wanted_id = request.path_params["approval_id"]
        questions = await tenant.store.questions(str(record["session_id"]))
        found = [
            each
            for each in questions
            if each.question_id == wanted_id and each.details.get("kind") != CANCEL
        ]
        if not found:
            raise RequestError(404, "not_found", "There is no such question")
        roles = found[0].details.get("roles")
        assert isinstance(client, TokenHolder)
        if isinstance(roles, list) and client.role not in roles:
            raise RequestError(403, "forbidden", "Others may answer this question")
        answer = await to_thread.run_sync(answer_to, found[0], wanted)
        try:
            await tenant.store.answer(wanted_id, answer, by=client.token.name)
        except QuestionClosedError as error:
            raise RequestError(409, "question_closed", str(error)) from None
        await self.engine.wake(tenant, str(record["session_id"]))
        return Response(status_code=204)

    # -- what they share

    async def tenant(self, client: Client) -> Tenant:
        """Return the tenant of a caller."""
        assert isinstance(client, TokenHolder)
        return await self.stores.tenant(client.tenant)

    async def session(
        self, request: Request, client: Client
    ) -> tuple[Tenant, JSONObject]:
        """Return the tenant's session that a request names; another tenant's is not there."""
        session_id = session_id_of(request)
        tenant = await self.tenant(client)
        record = await tenant.store.read_record(session_id)
        if record is None or record.get("parent_id") is not None:
            raise no_session()
        return tenant, record

    @contextmanager
    def _room(self, tenant: Tenant, client: Client) -> Iterator[None]:
        """Keep room for a turn while it begins.

        Raises:
            RequestError: the tenant has all that the token allows, or the process is full.
        """
        # of the tenant alone: what the others do neither shows nor takes their room
        running = self.engine.running(tenant.name) + self._beginning[tenant.name]
        client.check_room("turns", running, client.token.max_turns)
        begun = self.metrics.turns_running + self._beginning.total()
        if begun >= self.limits.max_sessions:
            raise RequestError(503, "server_full", "Too many turns run in this process")
        self._beginning[tenant.name] += 1
        try:
            yield
        finally:
            self._beginning[tenant.name] -= 1

    async def _accept(self, turn: AcceptedTurn) -> None:
        """Store that a turn runs, and what takes the wish to cancel it."""
        store, lease = turn.tenant.store, turn.lease
        record = await store.read_record(lease.session_id)
        if record is None:  # deleted meanwhile
            raise no_session()
        left = running_turn(record)
        if left is not None and (
            waiting_turn(record) is not None
            or not await self.engine.is_left(turn.tenant, lease.session_id, left)
        ):
            raise _busy()
        record = await without_left_turn(turn.tenant, lease, record)
        prompt = _redacted(prompt_text(turn.prompt))
        await store_prompt(store, lease, turn.prompt, turn.minutes)
        await store.write_record(lease, with_new_turn(record, turn.turn_id, prompt))
        event: JSONObject = {
            "type": "turn_started",
            "session_id": lease.session_id,
            "turn_id": turn.turn_id,
            "prompt": prompt,
        }
        entry = LogEntry(kind="turn_started", data=event, at=time())
        await store.append(lease, "events", [entry])
        for mode in ("immediate", "graceful"):
            question = StoredQuestion(
                question_id=f"{turn.turn_id}-{mode}",
                session_id=lease.session_id,
                prompt="Cancel the turn",
                options=(mode,),
                details={"kind": CANCEL, "turn_id": turn.turn_id},
            )
            await store.ask(lease, question)


async def _acquired(tenant: Tenant, session_id: str, owner: str) -> Lease:
    """Take the lease on a session.

    Raises:
        RequestError: a turn of it runs.
    """
    # whoever read a turn's last event is faster than the process that ran it lets go
    with anyio.move_on_after(_HANDOVER):
        while True:
            try:
                # a lease that is taken is known here, also where this is cancelled now
                with anyio.CancelScope(shield=True):
                    return await tenant.store.acquire(
                        session_id, owner=owner, period=_PERIOD
                    )
            except LeaseHeldError:
                await anyio.sleep(_RETRY)
    raise _busy()


def _turn(request: Request, record: JSONObject) -> JSONObject:
    for turn in turns_of(record):
        if turn["turn_id"] == request.path_params["turn_id"]:
            return turn
    raise RequestError(404, "not_found", "There is no such turn")


def _busy() -> RequestError:
    return RequestError(409, "session_busy", "The session runs a turn")


def _redacted(text: str) -> str:
    return SinkRedactor(StrictRedactor()).redact_text(text)


def _list_of(name: str, schema: JSONObject) -> JSONObject:
    listed: JSONObject = {"type": "array", "items": schema}
    return {"type": "object", "properties": {name: listed}, "required": [name]}
