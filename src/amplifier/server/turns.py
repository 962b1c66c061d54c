"""Running a turn of a stored session: opened as every command opens one, watched through the store alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Final, Protocol

import anyio
import attrs
from anyio import to_thread
from anyio.abc import TaskGroup

from amplifier.app.base_plans import PlanOptions
from amplifier.app.reopened import reopen
from amplifier.app.session_plan import Composition, compose
from amplifier.app.sessions import OpenSession, new_record, open_session
from amplifier.app.store.file_store import FileSessionStore
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.stored import StoredSession
from amplifier.kernel.groups import open_group
from amplifier.kernel.reports import report
from amplifier.kernel.sessions.session import AmplifierSession
from amplifier.server.activity import ActivityLog
from amplifier.server.approvals import StoredApprovals
from amplifier.server.recorder import EventRecorder
from amplifier.server.records import with_turn_ended
from amplifier.server.stores import Tenant
from amplifier.serving.errors import error_of_turn
from amplifier.serving.metrics import Metrics
from amplifier_kit.redaction import redactor_of
from amplifier_sdk.chat import Usage
from amplifier_sdk.errors import ConfigError, LeaseLostError, Problem, TurnCancelled
from amplifier_sdk.event_json import event_to_json
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.media import Prompt
from amplifier_sdk.stores import Lease
from amplifier_sdk.streaming import TurnFinished

__all__ = ["AcceptedTurn", "LocalTurns", "TurnEngine"]

_CLOSING: Final = 10.0
_SCOPES: Final = ["once", "session"]


@attrs.frozen(kw_only=True)
class AcceptedTurn:
    """A turn that somebody asked for and the server took.

    Args:
        tenant: whose session it is.
        turn_id: its id.
        prompt: what was asked.
        lease: on the session; whoever runs the turn renews and releases it.
    """

    tenant: Tenant
    turn_id: str
    prompt: Prompt = attrs.field(repr=False)
    lease: Lease


class TurnEngine(Protocol):
    """What runs the turns that a server takes."""

    def start(self, turn: AcceptedTurn) -> None:
        """Have a turn run; it is stored, and what becomes of it is read from the store."""

    def running(self, tenant: str) -> int:
        """Return how many turns of a tenant run in this process."""


@attrs.frozen(eq=False)
class LocalTurns:
    """Runs turns in this process.

    Args:
        group: where they run; what still runs at its end is cancelled.
        options: what sessions are made of.
        activity: notes what they cost.
        metrics: counts them.
    """

    group: TaskGroup
    options: PlanOptions
    activity: ActivityLog
    metrics: Metrics
    _running: Counter[str] = attrs.field(factory=Counter)

    def start(self, turn: AcceptedTurn) -> None:
        """Have a turn run in a task of its own."""
        # counted before its task runs: others may come meanwhile
        self._running[turn.tenant.name] += 1
        self.group.start_soon(self._run, turn)

    def running(self, tenant: str) -> int:
        """Return how many turns of a tenant run here."""
        return self._running[tenant]

    async def _run(self, turn: AcceptedTurn) -> None:
        try:
            await _LocalTurn(self, turn).run()
        finally:
            self._running[turn.tenant.name] -= 1


@attrs.define(eq=False)
class _LocalTurn:
    """One turn that runs here."""

    turns: LocalTurns
    turn: AcceptedTurn
    recorder: EventRecorder = attrs.field(init=False)
    approvals: StoredApprovals = attrs.field(init=False)
    _session: AmplifierSession | None = None
    _record: SessionRecord | None = None
    _usage: Usage | None = None
    _is_cancelled: bool = False

    def __attrs_post_init__(self) -> None:
        turn = self.turn
        self.recorder = EventRecorder(turn.tenant.store, turn.lease)
        self.approvals = StoredApprovals(
            turn.tenant.store, turn.lease, turn.turn_id, self.recorder
        )

    async def run(self) -> None:
        """Run it, and store how it ended."""
        metrics, begun = self.turns.metrics, anyio.current_time()
        metrics.turns_running += 1
        end: JSONObject = {"type": "turn_cancelled"}  # by the server's end
        try:
            end = await self._ended()
        except LeaseLostError as error:
            # somebody else has the session: whatever is written here would be theirs
            report("server.lease_lost", error, session=self.turn.lease.session_id)
            return
        finally:
            metrics.turns_running -= 1
            state = str(end["type"]).removeprefix("turn_").replace("result", "finished")
            metrics.count_turn(state, anyio.current_time() - begun, self._usage)
            await self._close(end, state)

    async def _ended(self) -> JSONObject:
        """Run it, and return its last event."""
        try:
            async with open_group() as group:
                group.start_soon(self._renew)
                group.start_soon(self.recorder.run)
                cancel = partial(self._cancel, group.cancel_scope)
                group.start_soon(self.approvals.watch, cancel)
                text = await self._answered()
                group.cancel_scope.cancel()
        except TurnCancelled as cancelled:
            return {"type": "turn_cancelled", "text": cancelled.partial_text}
        except LeaseLostError:
            raise
        except ConfigError as error:
            # why it cannot run is no secret of the server's
            told: JSONObject = {"code": "session_refused", "message": str(error)}
            return {"type": "turn_failed", "error": told}
        except Exception as error:  # modules fail as they like
            report("server.turn_failed", error, session=self.turn.lease.session_id)
            return {"type": "turn_failed", "error": error_of_turn(error)}
        if self._is_cancelled:
            return {"type": "turn_cancelled"}
        return {"type": "turn_result", "output": text}

    async def _answered(self) -> str:
        turn, text = self.turn, ""
        said = await turn.tenant.store.read_log(turn.lease.session_id, "transcript")
        composition, record = await to_thread.run_sync(
            self._composed, bool(said.entries)
        )
        opening = open_session(
            composition,
            record=record,
            store=turn.tenant.files,
            approval=self.approvals,
            shown=frozenset({"answers", "children", "tools"}),
        )
        async with opening as opened:
            self._session = opened.session
            self.recorder.redactor = redactor_of(opened.session.coordinator)
            try:
                # nobody at this machine typed the prompt: what it mentions is no file of theirs
                async with opened.stream(turn.prompt, typed="") as events:
                    async for event in events:
                        line = event_to_json(event)
                        if isinstance(event, TurnFinished):
                            line["session_id"] = turn.lease.session_id
                            text = event.text
                        self.recorder.add(line)
            finally:
                self._note(opened)
        return text

    def _composed(self, is_begun: bool) -> tuple[Composition, SessionRecord]:
        """Return what the session is made of: recorded by its first turn, restored for each further one."""
        tenant, session_id = self.turn.tenant, self.turn.lease.session_id
        stored = tenant.files.session(session_id)
        if stored is None and is_begun:
            # begun anew, it would have forgotten all
            told = "its turns ran on another machine, which has its files; ask a server there"
            raise ConfigError([Problem("", told)], subject=f"session {session_id!r}")
        composition, record = self._made(stored)
        return _bounded(composition), attrs.evolve(record, session_id=session_id)

    def _made(self, stored: StoredSession | None) -> tuple[Composition, SessionRecord]:
        tenant = self.turn.tenant
        if stored is not None:
            # what the server was started with is for new sessions
            reopened = reopen(tenant.files, stored.record, PlanOptions(), tenant.places)
            return reopened.composition, stored.record
        composition = compose(self.turns.options, tenant.places)
        return composition, new_record(composition)

    def _note(self, opened: OpenSession) -> None:
        self._usage = opened.spent_since.usage
        if opened.kept is not None:
            self._record = opened.kept.record

    async def _renew(self) -> None:
        lease = self.turn.lease
        while True:
            await anyio.sleep(lease.period / 3)
            await self.turn.tenant.store.renew(lease)

    async def _cancel(self, scope: anyio.CancelScope, immediate: bool) -> None:
        self._is_cancelled = True
        if self._session is None:  # which still opens
            scope.cancel()
        else:
            await self._session.cancel(immediate=immediate)

    async def _publish(self) -> None:
        """Store what was said where every server process finds it."""
        turn, session_id = self.turn, self.turn.lease.session_id
        store, files = turn.tenant.store, FileSessionStore(turn.tenant.files)
        known = len((await store.read_log(session_id, "transcript")).entries)
        said = await files.read_log(session_id, "transcript", after=known)
        if said.entries:
            await store.append(turn.lease, "transcript", said.entries)

    async def _close(self, end: JSONObject, state: str) -> None:
        """Store how the turn ended, and let others have the session; what fails here, a reaper does."""
        turn = self.turn
        store, lease = turn.tenant.store, turn.lease
        with anyio.move_on_after(_CLOSING, shield=True):
            try:
                end = self.recorder.redacted(end)
                # before the event: who reads it finds nothing to answer any more
                await store.void_questions(lease)
                self.recorder.add(end)
                await self.recorder.flush()
                ended = {key: value for key, value in end.items() if key != "type"}
                ended.update(turn_id=turn.turn_id, state=state)
                await self._publish()
                record = await store.read_record(lease.session_id)
                if record is not None:
                    record = with_turn_ended(record, ended, self._record)
                    await store.write_record(lease, record)
                await store.release(lease)
                await self.turns.activity.note_cost(
                    turn.tenant.name, lease.session_id, self._usage
                )
            except Exception as error:  # the store may be gone
                report("server.turn_not_closed", error, session=lease.session_id)


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
