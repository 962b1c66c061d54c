"""Turns on an engine: servers put them in its queue, and workers of any machine run them.

A turn is a run whose id is the turn's, and so is the same run however often it is started. What the turn did is in the
session's journal, in the store: the engine knows that a turn is to be run, that it waits for a person, or that it is
over, and nothing of its steps. A run that is taken over finds in the journal how far the turn is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import uniform
from time import time
from typing import Final

import anyio
import attrs

from amplifier.app.questions.stored_approvals import is_waited_for
from amplifier.app.store.store import ProjectSessions
from amplifier.kernel.reports import report
from amplifier.server.leases import release_lease
from amplifier.server.records import running_turn
from amplifier.server.retries import UNAVAILABLE, Retries
from amplifier.server.served_turns import AcceptedTurn, ServedTurn, TurnSetup
from amplifier.server.stores import ServerStores, Tenant
from amplifier.server.turns import read_stored_minutes, turn_under
from amplifier_kit.files.private_append import make_folders
from amplifier_kit.quotas import Refusal, Reservation
from amplifier_sdk.engines import (
    ExecutionEngine,
    RunRequest,
    WorkerOptions,
    Workflow,
    WorkflowContext,
)
from amplifier_sdk.errors import ConfigError, EngineError, LeaseHeldError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.stores import Lease, StoredQuestion

__all__ = ["TURN", "QueuedTurns", "TurnWorker"]

TURN: Final = "amplifier.turn"
"""The name of the workflow of a turn."""

_RETRY: Final = 0.25
_LONGEST: Final = 10.0
"""Seconds between two attempts where the store does not answer, at first and at most."""

_FULL: Final = 1.0
"""Seconds after which a turn is retried whose tenant has no room for it."""

_LEFT: Final = 0.2
_LONGER: Final = 1.3
"""How much longer a turn sleeps each time that the worker meets it which left it; short at first, since a sleep that
ends is one chance for each other worker."""

_REMEMBERED: Final = 60.0
"""Seconds for which a worker does not try again what it left."""

_PERIODS: Final = 4
"""How many periods a worker waits for the lease of one that died."""


@attrs.frozen(eq=False)
class QueuedTurns:
    """Has the turns that a server takes run by the workers of an engine.

    Args:
        engine: the engine.
    """

    engine: ExecutionEngine

    async def admit(self, tenant: str) -> Reservation | None:  # noqa: ARG002  # the protocol's
        """Return `None`: workers take turns when there is room."""
        return None

    async def dismiss(self, room: Reservation | None) -> None:
        """Do nothing: no room was reserved."""

    async def start(self, turn: AcceptedTurn) -> None:
        """Put a turn in the queue. Where that fails it is done later: the session says that the turn is to be run."""
        await release_lease(turn.tenant.store, turn.lease)
        with _reported():
            await self._enqueue(
                turn.tenant, turn.lease.session_id, turn.turn_id, turn.minutes
            )

    async def wake(self, tenant: Tenant, session_id: str) -> None:
        """Send what was answered to the run of the turn that waits; where that fails it is done later."""
        record = await tenant.store.read_record(session_id)
        # also one whose worker was killed before it could say that the turn waits
        turn_id = None if record is None else running_turn(record)
        if turn_id is None:
            return
        for question in await _asked(tenant, session_id, turn_id):
            if question.answer is not None:
                with _reported():
                    await self.engine.send(
                        turn_id, question.question_id, question.answer
                    )

    async def is_left(self, tenant: Tenant, session_id: str, turn_id: str) -> bool:
        """Return whether the run of a turn is over; one that was never queued is queued now."""
        run = await self.engine.find(turn_id)
        if run is None:
            minutes = await read_stored_minutes(tenant.store, session_id)
            await self._enqueue(tenant, session_id, turn_id, minutes)
            return False
        return run.is_over

    async def forget(self, turn_id: str) -> None:
        """Cancel the run of a turn."""
        if await self.engine.find(turn_id) is not None:
            await self.engine.cancel(turn_id)

    def running(self, tenant: str) -> int:  # noqa: ARG002  # the protocol's
        """Return 0: nothing runs in this process."""
        return 0

    async def _enqueue(
        self, tenant: Tenant, session_id: str, turn_id: str, minutes: int
    ) -> None:
        argument: JSONValue = {
            "tenant": tenant.name,
            "session_id": session_id,
            "turn_id": turn_id,
        }
        request = RunRequest(
            run_id=turn_id,
            workflow=TURN,
            argument=argument,
            tenant=tenant.name,
            priority=minutes,
        )
        await self.engine.start(request)


@attrs.frozen
class _LeftTurn:
    """A turn that a worker left to others: until when it is theirs, and for how long it sleeps next."""

    until: float
    pause: float


@attrs.frozen(eq=False)
class TurnWorker:
    """Runs queued turns.

    Args:
        stores: where the sessions are.
        setup: what the turns have in common.
        options: how it works.
        folder: where the files of sessions are fetched to.
        max_left: seconds for which a turn is left to others whose session cannot be opened here; then it fails.
    """

    stores: ServerStores
    setup: TurnSetup
    options: WorkerOptions
    folder: Path
    max_left: float = 600.0
    _left: dict[str, _LeftTurn] = attrs.field(factory=dict, init=False)

    @property
    def workflows(self) -> Mapping[str, Workflow]:
        """The workflows that it knows."""
        return {TURN: self.run}

    async def work(self, engine: ExecutionEngine) -> None:
        """Run what is in the queue, until cancelled."""
        await engine.work(self.workflows, self.options)

    async def run(self, context: WorkflowContext, argument: JSONValue) -> JSONValue:
        """Run a turn to its end, or until it waits for a person: a workflow."""
        assert isinstance(argument, dict)
        tenant = await self.stores.tenant(str(argument["tenant"]))
        session_id, turn_id = str(argument["session_id"]), str(argument["turn_id"])
        retries = Retries("worker.store_unavailable", _RETRY, _LONGEST)
        while True:
            try:
                if await self._attempt(context, tenant, session_id, turn_id):
                    return None
            except UNAVAILABLE as error:
                await retries.wait(error, session=session_id)

    async def _attempt(
        self, context: WorkflowContext, tenant: Tenant, session_id: str, turn_id: str
    ) -> bool:
        """Run a turn as far as it goes here; return whether it is over."""
        # in the order in which they were asked, each time: an answered one returns at once
        for question in await _asked(tenant, session_id, turn_id):
            await context.wait_for_event(
                question.question_id, timeout=_time_left(question)
            )
        left = self._left.get(turn_id)
        if left is not None and anyio.current_time() < left.until:
            await self._let_sleep(context, turn_id, left)
            return False
        room = await self.setup.room_for_turn(tenant.name)
        if isinstance(room, Refusal):
            # the room is other turns', perhaps of a server that runs them itself
            await context.sleep(f"full at {time():.0f}", _FULL)
            return False
        try:
            return await self._attempt_in_room(context, tenant, session_id, turn_id)
        finally:
            await self.setup.give_back(room)

    async def _attempt_in_room(
        self, context: WorkflowContext, tenant: Tenant, session_id: str, turn_id: str
    ) -> bool:
        """Run a turn for which there is room as far as it goes here; return whether it is over."""
        turn = await self._taken(tenant, session_id, turn_id)
        if turn is None:
            return True
        refused, is_over = await self._run_here(turn, leaves_refused=True)
        if is_over:
            return True
        if refused is None:
            await anyio.sleep(_RETRY)
            return False
        since = await context.step("first left", _now)
        if isinstance(since, float) and time() - since >= self.max_left:
            turn = await self._taken(tenant, session_id, turn_id)
            if turn is not None:
                _, is_over = await self._run_here(turn, leaves_refused=False)
            return turn is None or is_over
        # another worker may have the modules and versions that this one lacks
        report("worker.left", missing=str(refused), session=session_id)
        rest = self.max_left - (time() - since if isinstance(since, float) else 0.0)
        until = anyio.current_time() + min(_REMEMBERED, rest)
        known = self._left.get(turn_id, _LeftTurn(until, _LEFT))
        await self._let_sleep(context, turn_id, attrs.evolve(known, until=until))
        return False

    async def _let_sleep(
        self, context: WorkflowContext, turn_id: str, left: _LeftTurn
    ) -> None:
        """Suspend a turn that this worker left; in its sleep it is nobody's, and any worker may have it then."""
        now = anyio.current_time()
        for known, each in [*self._left.items()]:
            if each.until + _REMEMBERED < now:  # others had it
                del self._left[known]
        pause = min(left.pause, self.options.period)
        self._left[turn_id] = attrs.evolve(left, pause=_LONGER * pause)
        # of no fixed length: workers look at regular times, and one would always be the first
        spread = uniform(pause / 2, pause)  # noqa: S311  # no secret
        await context.sleep(f"left at {time():.3f}", spread)

    async def _run_here(
        self, turn: AcceptedTurn, *, leaves_refused: bool
    ) -> tuple[ConfigError | None, bool]:
        """Run a turn in a folder that goes with it; return what is missing for it here, and whether it is over."""
        with self._working_folder(turn.tenant) as folder:
            files = ProjectSessions(Path(folder))
            served = ServedTurn(self.setup, turn, files, leaves_refused=leaves_refused)
            is_over = await served.run()
        if served.unreached is not None and not is_over:
            raise served.unreached
        return served.refused, is_over

    async def _taken(
        self, tenant: Tenant, session_id: str, turn_id: str
    ) -> AcceptedTurn | None:
        """Take the lease for a turn; `None` where it is over."""
        lease = await self._acquired(tenant, session_id)
        return await turn_under(tenant, lease, turn_id, state=running_turn)

    async def _acquired(self, tenant: Tenant, session_id: str) -> Lease:
        """Take the lease on a session; that of a worker which died lasts for a while."""
        period, owner = self.options.period, self.options.name
        with anyio.move_on_after(_PERIODS * period):
            while True:
                try:
                    # a lease that is taken is known here, also where this is cancelled now
                    with anyio.CancelScope(shield=True):
                        return await tenant.store.acquire(
                            session_id, owner=owner, period=period
                        )
                except LeaseHeldError:
                    await anyio.sleep(_RETRY)
        raise EngineError(f"Another process holds session {session_id!r}")

    def _working_folder(self, tenant: Tenant) -> tempfile.TemporaryDirectory[str]:
        folder = self.folder / tenant.name
        make_folders(folder)
        return tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True)


async def _now() -> JSONValue:
    return time()


@contextmanager
def _reported() -> Iterator[None]:
    """Report an engine that does not answer: a reaper does later what it was asked for."""
    try:
        yield
    except EngineError as error:
        report("server.engine_failed", error)


async def _asked(tenant: Tenant, session_id: str, turn_id: str) -> list[StoredQuestion]:
    """Return what a turn asked a person, in the order of that."""
    questions = await tenant.store.questions(session_id)
    asked = [each for each in questions if is_waited_for(each, turn_id)]
    return sorted(
        asked, key=lambda each: (str(each.details["asked_at"]), each.question_id)
    )


def _time_left(question: StoredQuestion) -> float | None:
    if question.expires is None:
        return None
    return max(0.0, question.expires - time())
