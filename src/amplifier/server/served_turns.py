"""One turn of a stored session, run by whichever process has its lease.

The session's files are fetched from the store, and each step of the turn is in the store before it is done. So the turn
may be left at any moment, by a crash or on purpose, and be continued by another process: `run` returns whether the turn
ended. One that asks a person is left until the answer is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import time
from typing import Final

import anyio
import attrs
from anyio import to_thread

from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.questions.books import LeasedQuestions
from amplifier.app.questions.stored_approvals import StoredApprovals
from amplifier.app.sessions.composition import Composition, compose, new_record
from amplifier.app.sessions.opened import OpenSession, open_session
from amplifier.app.sessions.reopened import reopen
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.shared import LeasedSessions
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.writer import write_record
from amplifier.kernel.groups import open_group
from amplifier.kernel.reports import report
from amplifier.kernel.sessions.session import AmplifierSession
from amplifier.server.activity import ActivityLog
from amplifier.server.leases import renew_lease
from amplifier.server.model_gate import ModelGate
from amplifier.server.quotas import SharedQuotas
from amplifier.server.recorder import TurnRecorder
from amplifier.server.records import (
    is_open_approval,
    left_behind,
    wishes_to_cancel,
    with_turn_ended,
    with_turn_waiting,
)
from amplifier.server.retries import UNAVAILABLE, problem_of
from amplifier.server.roles import ANSWERING
from amplifier.server.stored_logs import store_logs
from amplifier.server.stores import Tenant
from amplifier.serving.errors import error_of_turn
from amplifier.serving.metrics import Metrics
from amplifier_kit.event_json import event_to_json
from amplifier_kit.quotas import Refusal, Reservation
from amplifier_kit.redaction import redactor_of
from amplifier_kit.trace_context import TraceParent, called_by, caller_of_turn
from amplifier_sdk.chat import Usage
from amplifier_sdk.content import TextBlock
from amplifier_sdk.errors import (
    BudgetExceededError,
    ConfigError,
    LeaseLostError,
    StoreError,
    StoreUnavailableError,
    TurnCancelled,
    TurnSuspendedError,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.media import Prompt
from amplifier_sdk.messages import Message
from amplifier_sdk.stores import Lease, LogEntry
from amplifier_sdk.streaming import TurnFinished

__all__ = ["AcceptedTurn", "ServedTurn", "TurnSetup", "close_journal", "end_turn"]

_CLOSING: Final = 10.0
_GRACE: Final = 5.0
"""Seconds that running calls have to end when the process lets go of a turn."""

_RETRY: Final = 0.5
_NOTICED: Final = 0.1
"""Seconds in which a wish to cancel a turn is noticed, at most."""

_SCOPES: Final = ["once", "session"]


@attrs.frozen(kw_only=True)
class AcceptedTurn:
    """A turn that somebody asked for and a server took.

    Args:
        tenant: whose session it is.
        turn_id: its id.
        prompt: what was asked.
        lease: on the session; whoever runs the turn renews and releases it.
        caller: the span that asked for it.
        minutes: how far behind others it is in a queue.
        room: what it holds of the tenant's turns at once; whoever runs it gives it back.
    """

    tenant: Tenant
    turn_id: str
    prompt: Prompt = attrs.field(repr=False)
    lease: Lease
    caller: TraceParent | None = attrs.field(factory=caller_of_turn)
    minutes: int = 0
    room: Reservation | None = None

    @property
    def journal_id(self) -> str:
        """Its id as its records call it."""
        return self.turn_id.replace("-", "")


@attrs.frozen(eq=False)
class TurnSetup:
    """What the turns that a process runs have in common.

    Args:
        options: what new sessions are made of.
        activity: notes what turns cost.
        metrics: counts them.
        quotas: what all processes share; `None` where the store has no accounts.
    """

    options: PlanOptions
    activity: ActivityLog
    metrics: Metrics = attrs.field(factory=Metrics)
    quotas: SharedQuotas | None = None

    async def room_for_turn(self, tenant: str) -> Reservation | Refusal | None:
        """Reserve room for a turn of a tenant; `None` where the tenant has no limit.

        Raises:
            StoreError: the store does not answer.
        """
        claims = () if self.quotas is None else self.quotas.turn_claims(tenant)
        if self.quotas is None or not claims:
            return None
        return await self.quotas.reserve(claims)

    async def give_back(self, room: Reservation | None) -> None:
        """Give back the room of a turn, also where this is cancelled."""
        if room is None or self.quotas is None:
            return
        with anyio.CancelScope(shield=True), anyio.move_on_after(_GRACE):
            await self.quotas.settle(room, {})


@attrs.define(eq=False)
class ServedTurn:
    """One turn that this process runs, or a part of it.

    Args:
        setup: what it has in common with others.
        turn: the turn.
        files: where the session's files are, or are fetched to.
        leaves_refused: whether a session that cannot be opened as it was is left to others, who may have what it
            needs; `refused` says then what is missing.
        refused: see there.
        unreached: why the store could not be reached, where the turn was left for that.
        is_lost: whether the lease ended before the store had how the turn was left.
    """

    setup: TurnSetup
    turn: AcceptedTurn
    files: ProjectSessions
    leaves_refused: bool = False
    refused: ConfigError | None = None
    unreached: StoreUnavailableError | None = None
    is_lost: bool = False
    recorder: TurnRecorder = attrs.field(init=False)
    _session: AmplifierSession | None = None
    _approvals: StoredApprovals | None = None
    _record: SessionRecord | None = None
    _usage: Usage | None = None
    _is_cancelled: bool = False
    _is_closed: bool = False
    _end: JSONObject | None = None
    _opening: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)
    _own: anyio.CancelScope = attrs.field(
        factory=lambda: anyio.CancelScope(shield=True)
    )
    _is_over: anyio.Event = attrs.field(factory=anyio.Event)

    def __attrs_post_init__(self) -> None:
        self.recorder = TurnRecorder(self.turn.tenant.store, self.turn.lease)

    async def run(self) -> bool:
        """Run it, and store how it ended or that it waits; return whether it ended.

        Where this is cancelled, calls that run have a few seconds to end, and the turn is left to be continued.
        """
        metrics, begun = self.setup.metrics, anyio.current_time()
        metrics.turns_running += 1
        try:
            await self._hold()
        except (LeaseLostError, ExceptionGroup) as error:
            # several of its parts may find out
            if isinstance(error, ExceptionGroup) and error.split(LeaseLostError)[1]:
                raise
            # somebody else has the session: whatever is written here would be theirs
            report("server.lease_lost", error, session=self.turn.lease.session_id)
            self.is_lost = True
        except StoreError as error:
            self._end = self._refused_end(error)
        finally:
            metrics.turns_running -= 1
            if self._end is not None:
                elapsed = anyio.current_time() - begun
                metrics.count_turn(_state_of(self._end), elapsed, self._usage)
            if not self.is_lost:
                await self._close()
        return self._end is not None and self._is_closed

    async def _hold(self) -> None:
        """Run it while its leases are renewed and somebody may cancel it.

        Raises:
            LeaseLostError: a lease ended.
        """
        async with open_group() as group:
            group.start_soon(self.recorder.run)
            group.start_soon(self._renew)
            group.start_soon(self._watch)
            group.start_soon(self._let_go)
            # what runs has time to end when this is cancelled
            try:
                with self._own, called_by(self.turn.caller):
                    self._end = await self._ended()
            finally:
                self._is_over.set()
            if self._end is None and self._is_cancelled:  # while it was opened
                self._end = {"type": "turn_cancelled"}
            group.cancel_scope.cancel()

    async def _ended(self) -> JSONObject | None:
        """Run it, and return its last event; `None` where it is left, to be continued."""
        try:
            text = await self._answered()
        except TurnSuspendedError:
            return None
        except TurnCancelled as cancelled:
            return {"type": "turn_cancelled", "text": cancelled.partial_text}
        except LeaseLostError:
            raise
        except StoreUnavailableError as error:
            # the journal has what was done: whoever reaches the store continues
            self.unreached = error
            return None
        except ConfigError as error:
            if self.leaves_refused and self._session is None:
                self.refused = error
                return None
            # why it cannot run is no secret of the server's
            data: JSONObject = {"code": "session_refused", "message": str(error)}
            return {"type": "turn_failed", "error": data}
        except BudgetExceededError as error:  # as somebody wanted it
            return {"type": "turn_failed", "error": error_of_turn(error)}
        except Exception as error:  # modules fail as they like
            report("server.turn_failed", error, session=self.turn.lease.session_id)
            return {"type": "turn_failed", "error": error_of_turn(error)}
        if self._is_cancelled:
            return {"type": "turn_cancelled"}
        return {"type": "turn_result", "output": text}

    async def _answered(self) -> str:
        turn = self.turn
        files = LeasedSessions.of_turn(self.files.root, turn.tenant.store, turn.lease)
        await files.fetch()
        composition, record = await to_thread.run_sync(self._composed)
        opening = open_session(
            composition,
            record=record,
            store=files,
            shown=frozenset({"answers", "children", "tools"}),
            turn_id=turn.journal_id,
            asks=self._asks,
        )
        async with opening as opened:
            self._session = opened.session
            self._opening.cancel()
            if self.setup.quotas is not None:
                coordinator = opened.session.coordinator
                ModelGate(self.setup.quotas, turn.tenant.name, coordinator).register()
            self.recorder.redactor = redactor_of(opened.session.coordinator)
            assert self._approvals is not None  # made while it was opened
            await self._approvals.withdraw_left()
            if opened.has_turn:
                return await _last_answer(opened)
            return await self._run(opened)

    async def _run(self, opened: OpenSession) -> str:
        text = ""
        try:
            # nobody at this machine typed the prompt: what it mentions is no file of theirs
            async with opened.stream(self.turn.prompt, typed="") as events:
                # before the turn began there was nothing that it could reach
                if self._is_cancelled:
                    await opened.session.cancel(immediate=True)
                async for event in events:
                    line = event_to_json(event)
                    if isinstance(event, TurnFinished):
                        line["session_id"] = self.turn.lease.session_id
                        text = event.text
                    self.recorder.add(line)
        finally:
            self._usage = opened.spent_since.usage
            if opened.writer is not None:
                self._record = opened.writer.record
        return text

    def _asks(self, opened: OpenSession) -> StoredApprovals:
        turn = self.turn
        self._approvals = StoredApprovals(
            session_id=turn.lease.session_id,
            turn_id=turn.turn_id,
            book=LeasedQuestions(turn.tenant.store, turn.lease),
            coordinator=opened.session.coordinator,
            shows=self.recorder.add,
            roles=ANSWERING,
        )
        return self._approvals

    def _composed(self) -> tuple[Composition, SessionRecord]:
        """Return what the session is made of: recorded by its first turn, restored for each further one."""
        tenant, session_id = self.turn.tenant, self.turn.lease.session_id
        stored = self.files.session(session_id)
        if stored is not None and stored.record.has_composition:
            # what this process was started with is for new sessions
            reopened = reopen(self.files, stored.record, PlanOptions(), tenant.dirs)
            return _bounded(reopened.composition), stored.record
        composition = compose(self.setup.options, tenant.dirs)
        record = attrs.evolve(new_record(composition), session_id=session_id)
        if stored is not None:
            record = attrs.evolve(
                stored.record,
                profile=record.profile,
                provider=record.provider,
                model=record.model,
            )
            write_record(stored.folder, record)
        return _bounded(composition), record

    # -- beside it

    async def _renew(self) -> None:
        """Keep the lease until the session is open, which keeps it from then on."""
        with self._opening:
            await renew_lease(self.turn.tenant.store, self.turn.lease)

    async def _watch(self) -> None:
        """Cancel the turn when somebody asks for that, whichever process they reach."""
        turn, seen, done = self.turn, "", set[str]()
        store, session_id = turn.tenant.store, turn.lease.session_id
        while True:
            try:
                seen = await store.wait_for_change(
                    session_id, seen, max_wait=turn.lease.period
                )
                questions = await store.questions(session_id)
            except UNAVAILABLE:
                await anyio.sleep(_RETRY)
                continue
            for wish in wishes_to_cancel(questions, turn.turn_id):
                if wish.question_id not in done:
                    done.add(wish.question_id)
                    await self._cancel(immediate=wish.answer == "immediate")
            # all that the turn itself writes is a change too
            await anyio.sleep(_NOTICED)

    async def _cancel(self, *, immediate: bool) -> None:
        self._is_cancelled = True
        if self._session is None:  # which still opens
            self._own.cancel()
        else:
            await self._session.cancel(immediate=immediate)

    async def _let_go(self) -> None:
        """Leave the turn when this process shall end, or has the run no more."""
        try:
            await anyio.sleep_forever()
        finally:
            if not self._is_over.is_set():
                with anyio.CancelScope(shield=True):
                    if self._session is not None:
                        self._session.suspend()
                    with anyio.move_on_after(_GRACE):
                        await self._is_over.wait()
                    if self._session is not None:
                        self._session.suspend(immediate=True)
                    self._own.cancel()

    async def _close(self) -> None:
        """Store how the turn ended, or that it waits, and release its lease; what fails here, a reaper does."""
        turn = self.turn
        store, lease = turn.tenant.store, turn.lease
        with anyio.move_on_after(_CLOSING, shield=True):
            try:
                await store_logs(turn.tenant, lease)
                if self._end is None:
                    await self.recorder.flush()
                    record = await store.read_record(lease.session_id)
                    if record is not None:
                        record = with_turn_waiting(record, turn.turn_id)
                        await store.write_record(lease, record)
                    await store.release(lease)
                    return
                await self._store_end(self._end)
                self._is_closed = True
                await self.setup.activity.note_cost(
                    turn.tenant.name, lease.session_id, self._usage
                )
            except UNAVAILABLE as error:
                problem, session_id = problem_of(error), lease.session_id
                report("server.turn_not_closed", problem=problem, session=session_id)
                self.is_lost = True
            except Exception as error:  # a reaper ends the turn then
                report("server.turn_not_closed", error, session=lease.session_id)

    async def _store_end(self, end: JSONObject) -> None:
        """Store how the turn ended; where the store does not take that, that it failed."""
        try:
            await end_turn(self.turn, self.recorder, end, self._record)
        except (LeaseLostError, StoreUnavailableError):
            raise
        except StoreError as error:
            failed = self._refused_end(error)
            await end_turn(self.turn, self.recorder, failed, self._record)

    def _refused_end(self, error: StoreError) -> JSONObject:
        """Return the last event of a turn that wrote what the store does not take: it would do the same again."""
        report("server.turn_failed", error, session=self.turn.lease.session_id)
        return {"type": "turn_failed", "error": error_of_turn(error)}


async def close_journal(turn: AcceptedTurn) -> None:
    """Say in the journal of a turn that is cancelled while nobody runs it that it is over."""
    store, lease, turn_id = turn.tenant.store, turn.lease, turn.journal_id
    journal = await store.read_log(lease.session_id, "journal")
    last = journal.entries[-1:]
    if any(_is_of(entry, turn_id) and entry.kind != "turn_ended" for entry in last):
        ended: JSONObject = {"turn_id": turn_id, "status": "cancelled"}
        entry = LogEntry(kind="turn_ended", data=ended, at=time())
        await store.append(lease, "journal", [entry])


def _is_of(entry: LogEntry, turn_id: str) -> bool:
    return isinstance(entry.data, dict) and entry.data.get("turn_id") == turn_id


async def end_turn(
    turn: AcceptedTurn,
    recorder: TurnRecorder,
    end: JSONObject,
    session: SessionRecord | None = None,
) -> None:
    """Store how a turn ended, and release its lease.

    Args:
        turn: the turn.
        recorder: takes its last event.
        end: that event.
        session: what the session came to, where that is known.
    """
    store, lease = turn.tenant.store, turn.lease
    end = recorder.redacted(end)
    questions = await store.questions(lease.session_id)
    for question in questions:
        if is_open_approval(question):
            id_ = question.question_id
            recorder.add({"type": "approval_withdrawn", "approval_id": id_})
    # before the event: who reads it finds nothing to answer any more
    await store.void_questions(lease)
    recorder.add(end)
    await recorder.flush()
    ended = {key: value for key, value in end.items() if key != "type"}
    ended.update(turn_id=turn.turn_id, state=_state_of(end))
    record = await store.read_record(lease.session_id)
    if record is not None:
        old = left_behind(record, questions)
        if old:
            await store.forget_questions(lease, old)
        await store.write_record(lease, with_turn_ended(record, ended, session))
    await store.release(lease)


def _state_of(end: JSONObject) -> str:
    return str(end["type"]).removeprefix("turn_").replace("result", "finished")


async def _last_answer(opened: OpenSession) -> str:
    """Return the answer of a turn that came to its end before that was stored."""
    for message in reversed(await opened.session.coordinator.context.get_messages()):
        if message.get("role") == "assistant":
            content = Message.from_dict(message).content
            if isinstance(content, str):
                return content
            return "".join(
                block.text for block in content if isinstance(block, TextBlock)
            )
    return ""


def _bounded(composition: Composition) -> Composition:
    """Let no answer of a caller outlast the session: the folder of permissions is the server's, for all tenants."""
    # what is recorded is what was written, and a resumed session is held against it
    return attrs.evolve(
        composition,
        plan=_with_short_answers(composition.plan),
        written=_with_short_answers(composition.written),
    )


def _with_short_answers(plan: Mapping[str, JSONValue]) -> JSONObject:
    hooks = plan.get("hooks")
    if not isinstance(hooks, list):
        return dict(plan)
    return {**plan, "hooks": [_with_short_scopes(hook) for hook in hooks]}


def _with_short_scopes(hook: JSONValue) -> JSONValue:
    if not isinstance(hook, dict) or hook.get("module") != "hooks-approval":
        return hook
    config = hook.get("config")
    known = config if isinstance(config, dict) else {}
    wanted = known.get("scopes")
    scopes = wanted if isinstance(wanted, list) else _SCOPES
    short: JSONValue = [scope for scope in scopes if scope in _SCOPES]
    return {**hook, "config": {**known, "scopes": short}}
