"""The sessions that a server has open: each lives in a task of the server's, which runs its turns one by one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Never, TypeAlias
from uuid import uuid4

import anyio
import attrs
from anyio.abc import TaskGroup, TaskStatus

from amplifier.kernel.groups import open_group
from amplifier.kernel.reports import report
from amplifier.serving.approvals import ServedApprovals
from amplifier.serving.errors import RequestError, error_of_turn
from amplifier.serving.event_log import Encode, EventLog
from amplifier.serving.limits import ServerLimits
from amplifier.serving.metrics import Metrics
from amplifier.serving.tokens import Client
from amplifier.serving.turns import OnDisconnect, RequestedTurn
from amplifier_kit.event_json import event_to_json, json_or_text
from amplifier_kit.trace_context import called_by
from amplifier_sdk.errors import TurnCancelled
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.media import Prompt
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.streaming import StreamEvent, TurnFinished

if TYPE_CHECKING:
    from amplifier.agent.agent import Agent
    from amplifier.agent.session import AgentSession

__all__ = ["Prepare", "ServedSession", "SessionTable"]

_BURST: Final = 64
"""How many events a turn may have before its readers run."""

Prepare: TypeAlias = "Callable[[AgentSession[Any, Any], str], object]"  # type: ignore[explicit-any]  # whatever its agent's
"""Gets each session before it is opened, and the name of the token for which it is."""


@attrs.define(eq=False)
class ServedSession:
    """A session that a client began.

    Args:
        client: who began it; nobody else finds it.
        table: the server's sessions.
        agent_session: the session itself.
        approvals: what it asks a person.
        history: what was said before it was opened.
        is_single: whether it ends with its first turn.
    """

    client: Client
    table: SessionTable
    agent_session: AgentSession[Never, object]
    approvals: ServedApprovals
    history: Sequence[MessageDict] = ()
    is_single: bool = False
    turns: dict[str, RequestedTurn] = attrs.field(factory=dict)
    closed: anyio.Event = attrs.field(factory=anyio.Event)
    _waiting: list[RequestedTurn] = attrs.field(factory=list)
    _running: RequestedTurn | None = None
    is_closing: bool = attrs.field(default=False, init=False)
    _asked: anyio.Event = attrs.field(factory=anyio.Event)
    _scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)

    @property
    def id(self) -> str:
        """Its id, which nobody can guess."""
        return self.agent_session.session.session_id

    def to_json(self) -> JSONObject:
        """Describe it."""
        return {
            "session_id": self.id,
            "state": "idle" if self._running is None else "running",
            "turns": [turn.to_json() for turn in self.turns.values()],
            "approvals": self.approvals.to_json(),
        }

    def turn(self, turn_id: str) -> RequestedTurn:
        """Return one of its turns.

        Raises:
            RequestError: it has no such turn, or has it no more.
        """
        found = self.turns.get(turn_id)
        if found is None:
            raise RequestError(404, "not_found", "There is no such turn")
        return found

    def add_turn(
        self,
        prompt: Prompt,
        *,
        on_disconnect: OnDisconnect,
        may_wait: bool,
        encode: Encode | None = None,
    ) -> RequestedTurn:
        """Have a prompt answered.

        Raises:
            RequestError: a turn runs and the caller does not want to wait, or too many wait already.
        """
        if self.is_closing:
            raise RequestError(404, "not_found", "The session is closed")
        is_busy = self._running is not None or bool(self._waiting)
        if is_busy and not may_wait:
            raise RequestError(
                409,
                "session_busy",
                'The session runs a turn; `"when_busy": "queue"` waits',
            )
        if is_busy and len(self._waiting) >= self.table.limits.max_queued_turns:
            raise RequestError(429, "queue_full", "Too many turns wait in this session")
        self.client.check_room("turns", self.client.turns, self.client.token.max_turns)
        limits = self.table.limits
        log = EventLog(limits.max_events, limits.max_event_bytes)
        if encode is not None:
            log.encode = encode
        turn = RequestedTurn(prompt, on_disconnect, log)
        self._forget_ended_turns()
        self.turns[turn.id] = turn
        self.client.turns += 1
        self._waiting.append(turn)
        self._asked.set()
        return turn

    def close(self) -> None:
        """Cancel whatever runs and close it; `closed` says when that is done."""
        self.is_closing = True
        self._scope.cancel()

    # -- in a task of its own

    async def serve(self, *, task_status: TaskStatus[None]) -> None:
        """Open the session, answer prompts until it is idle for too long or is closed, and release everything."""
        is_open = False
        try:
            with self._scope:
                async with self.agent_session:
                    context = self.agent_session.session.coordinator.context
                    for message in self.history:
                        await context.add_message(message)
                    is_open = True
                    task_status.started()
                    await self._take_turns()
                    # what it releases may take a while
                    self.is_closing = True
        except Exception as error:  # modules fail as they like, and the server stays
            report("serving.session_failed", error, session=self.id)
            if not is_open:
                raise
        finally:
            self._running = None
            for turn in self._waiting:
                self._end_turn(turn)
            self.closed.set()

    async def _take_turns(self) -> None:
        while True:
            with anyio.move_on_after(self.table.limits.idle_timeout):
                await self._asked.wait()
            if not self._waiting:
                return
            while self._waiting:
                self._running = self._waiting.pop(0)
                try:
                    if not self._running.is_ended:
                        await self._answer(self._running)
                finally:
                    self._end_turn(self._running)
                    self._running = None
            if self.is_single:
                return
            self._asked = anyio.Event()

    async def _answer(self, turn: RequestedTurn) -> None:
        """Run a turn, and cancel it when somebody asks for that."""
        turn.begin(self.id)
        metrics, begun = self.table.metrics, anyio.current_time()
        metrics.turns_running += 1
        self.approvals.log = turn.log
        try:
            async with open_group() as group:
                group.start_soon(self._cancel_when_asked, turn)
                with called_by(turn.caller):
                    await self._run(turn)
                group.cancel_scope.cancel()
        except TurnCancelled as cancelled:
            turn.end("cancelled", text=cancelled.partial_text)
        except Exception as error:  # providers and tools fail as they like
            report("serving.turn_failed", error, session=self.id, turn=turn.id)
            turn.end("failed", error=error_of_turn(error))
        finally:
            turn.end("cancelled")  # by the session's end, if by nothing else
            self.approvals.log = None
            metrics.turns_running -= 1
            finished = self.agent_session.session.last_turn
            usage = None if finished is None else finished.usage
            metrics.count_turn(turn.state, anyio.current_time() - begun, usage)

    async def _run(self, turn: RequestedTurn) -> None:
        def note(event: StreamEvent) -> Awaitable[None] | None:
            line = event_to_json(event)
            if isinstance(event, TurnFinished):
                turn.finished = event
                line["session_id"] = self.id
            turn.log.append(line)
            # a model whose text is all there would leave readers no time before the first events are dropped
            return None if turn.log.last % _BURST else anyio.lowlevel.checkpoint()

        result = await self.agent_session.run(turn.prompt, sink=note)
        turn.end("finished", output=json_or_text(result.output))

    async def _cancel_when_asked(self, turn: RequestedTurn) -> None:
        while True:
            immediate = await turn.cancellation()
            await self.agent_session.session.cancel(immediate=immediate)

    def _end_turn(self, turn: RequestedTurn) -> None:
        self.client.turns -= 1
        # one that the session's end broke off
        turn.end("cancelled")

    def _forget_ended_turns(self) -> None:
        ended = [turn.id for turn in self.turns.values() if turn.is_ended]
        for turn_id in ended[: len(ended) - self.table.limits.max_ended_turns + 1]:
            del self.turns[turn_id]


@attrs.define(eq=False)
class SessionTable:
    """All sessions of a server.

    Args:
        agent: whom they are with.
        limits: the server's.
        prepare: gets each before it is opened.
        metrics: what they do.
    """

    agent: Agent[Never, object]
    limits: ServerLimits
    prepare: Prepare | None = None
    metrics: Metrics = attrs.field(factory=Metrics)
    _group: TaskGroup | None = None

    @property
    def is_running(self) -> bool:
        """Whether sessions can be opened."""
        return self._group is not None

    @contextmanager
    def inside(self, group: TaskGroup) -> Iterator[None]:
        """Let sessions live in a task group; those that are open at the end are closed with it."""
        if self._group is not None:
            raise RuntimeError("The server runs already")
        self._group = group
        try:
            yield
        finally:
            self._group = None
            group.cancel_scope.cancel()

    async def begin(
        self,
        client: Client,
        history: Sequence[MessageDict] = (),
        *,
        is_single: bool = False,
    ) -> ServedSession:
        """Open a session, with what was said before; a single one ends with its first turn.

        Raises:
            RequestError: there are too many, the server does not run, or a module refuses to be mounted.
        """
        if self._group is None:
            raise RequestError(503, "not_running", "The server is not running")
        client.check_room("sessions", len(client.sessions), client.token.max_sessions)
        if self.metrics.sessions_open >= self.limits.max_sessions:
            raise RequestError(503, "server_full", "Too many sessions are open")
        session: ServedSession | None = None
        try:
            session = self._made(client)
            session.history, session.is_single = history, is_single
            # counted before it is open: others may come meanwhile
            client.sessions[session.id] = session
            self.metrics.sessions_open += 1
            await self._group.start(self._serve, session)
        except Exception as error:  # a module may refuse to be mounted
            if session is not None and session.is_closing:
                message = "The session was closed while it opened"
                raise RequestError(409, "session_closed", message) from None
            report("serving.session_not_opened", error)
            raise RequestError(
                500, "session_failed", "The session cannot be opened; the log says why"
            ) from None
        self.metrics.sessions += 1
        return session

    def _made(self, client: Client) -> ServedSession:
        approvals = ServedApprovals()
        asked = approvals if client.token.may_approve else None
        agent_session = self.agent.session(
            session_id=str(uuid4()), approval_system=asked
        )
        if self.prepare is not None:
            self.prepare(agent_session, client.token.name)
        return ServedSession(client, self, agent_session, approvals)

    async def _serve(
        self, session: ServedSession, *, task_status: TaskStatus[None]
    ) -> None:
        try:
            await session.serve(task_status=task_status)
        finally:
            self.metrics.sessions_open -= 1
            del session.client.sessions[session.id]
