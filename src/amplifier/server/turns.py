"""What runs the turns that a server takes, and running them in the server's own process."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

import attrs
from anyio.abc import TaskGroup

from amplifier.app.questions.stored_approvals import is_waited_for
from amplifier.app.questions.stored_prompts import prompt_from_json, prompt_to_json
from amplifier.kernel.reports import report
from amplifier.server.leases import release_lease
from amplifier.server.records import (
    is_open_approval,
    running_turn,
    times_left,
    waiting_turn,
    with_turn_left,
    with_turn_waiting,
    without_waiting,
)
from amplifier.server.retries import UNAVAILABLE, Retries, problem_of
from amplifier.server.served_turns import AcceptedTurn, ServedTurn, TurnSetup
from amplifier.server.stores import Tenant
from amplifier.serving.errors import RequestError
from amplifier_kit.quotas import Refusal, Reservation
from amplifier_kit.trace_context import TraceParent, caller_of_turn
from amplifier_sdk.errors import AmplifierError, LeaseHeldError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.media import Prompt
from amplifier_sdk.stores import Lease, SessionStore

__all__ = [
    "LocalTurns",
    "TurnEngine",
    "read_stored_caller",
    "read_stored_minutes",
    "read_stored_prompt",
    "resumed_turn",
    "store_prompt",
    "turn_under",
]

_PROMPT: Final = "turn.json"
"""The document of a session that has the prompt of its last turn, for whoever continues it."""

_PERIOD: Final = 15.0
_RETRY: Final = 1.0
_MAX_KILLS: Final = 3
"""How often the process of a turn may be killed: it is perhaps the turn that ends it."""


class TurnEngine(Protocol):
    """What runs the turns that a server takes."""

    async def admit(self, tenant: str) -> Reservation | None:
        """Reserve room for a turn of a tenant, where it runs at once and the tenant has a limit; `start` takes it over.

        Raises:
            RequestError: there is none.
            StoreError: the store does not answer.
        """

    async def dismiss(self, room: Reservation | None) -> None:
        """Give back the room of a turn that is not started."""

    async def start(self, turn: AcceptedTurn) -> None:
        """Have a turn run; it is stored, and what becomes of it is read from the store."""

    async def wake(self, tenant: Tenant, session_id: str) -> None:
        """Have the turn of a session continue that waited for a person, if nothing keeps it waiting."""

    async def is_left(self, tenant: Tenant, session_id: str, turn_id: str) -> bool:
        """Return whether nobody will run a turn any more whose lease has ended."""

    async def forget(self, turn_id: str) -> None:
        """Drop a turn that was ended before anybody ran it further."""

    def running(self, tenant: str) -> int:
        """Return how many turns of a tenant run in this process."""


@attrs.frozen(eq=False)
class LocalTurns:
    """Runs turns in this process.

    Args:
        group: where they run; what still runs at its end is left.
        setup: what they have in common.
    """

    group: TaskGroup
    setup: TurnSetup
    _running: Counter[str] = attrs.field(factory=Counter)
    _here: Counter[str] = attrs.field(factory=Counter)

    async def admit(self, tenant: str) -> Reservation | None:
        """Reserve room for a turn of a tenant, among the turns of all processes."""
        made = await self.setup.room_for_turn(tenant)
        if isinstance(made, Refusal):
            message = f"{made.claim.limit} turns of the tenant run, in all processes"
            raise RequestError(429, "too_many_turns", message, {"Retry-After": "1"})
        return made

    async def dismiss(self, room: Reservation | None) -> None:
        """Give back the room of a turn that is not started."""
        await self.setup.give_back(room)

    async def start(self, turn: AcceptedTurn) -> None:
        """Have a turn run in a task of its own."""
        # counted before its task runs: others may come meanwhile
        self._running[turn.tenant.name] += 1
        self.group.start_soon(self._run, turn, False)  # noqa: FBT003  # likewise

    async def wake(self, tenant: Tenant, session_id: str) -> None:
        """Have the turn of a session continue here."""
        if await _resumable(tenant.store, session_id) is None:
            return
        room = await self.setup.room_for_turn(tenant.name)
        if isinstance(room, Refusal):
            return  # a reaper wakes it again
        turn = None
        try:
            turn = await resumed_turn(tenant, session_id)
        finally:
            if turn is None:
                await self.setup.give_back(room)
        if turn is not None:
            self._running[tenant.name] += 1
            turn = attrs.evolve(turn, room=room)
            self.group.start_soon(self._run, turn, True)  # noqa: FBT003  # no keywords there

    async def is_left(self, tenant: Tenant, session_id: str, turn_id: str) -> bool:
        """Return whether the process of a turn was killed too often; else the turn is continued from its journal."""
        # of one that lost its lease while the store was away nobody was killed
        is_killed = not self._here[turn_id]
        return not await _let_wait(
            tenant.store, session_id, turn_id, is_killed=is_killed
        )

    async def forget(self, turn_id: str) -> None:
        """Do nothing: there is no queue."""

    def running(self, tenant: str) -> int:
        """Return how many turns of a tenant run here."""
        return self._running[tenant]

    async def _run(self, turn: AcceptedTurn, is_resumed: bool) -> None:
        # where it began it can be continued, though perhaps not here
        served = ServedTurn(
            self.setup, turn, turn.tenant.files, leaves_refused=is_resumed
        )
        turn_id, session_id = turn.turn_id, turn.lease.session_id
        self._here[turn_id] += 1
        try:
            has_ended = await self._serve(served, turn)
            if served.is_lost:
                await self._leave(turn)
        finally:
            self._here[turn_id] -= 1
            if not self._here[turn_id]:
                del self._here[turn_id]
        if not has_ended:
            await self._continue(served, session_id)

    async def _serve(self, served: ServedTurn, turn: AcceptedTurn) -> bool:
        """Run a turn, and return whether it is over; what fails ends neither the others nor the server."""
        try:
            return await served.run()
        except Exception as error:  # else it would end all others, and the server
            report("server.turn_left", error, session=turn.lease.session_id)
            return True
        finally:
            self._running[turn.tenant.name] -= 1
            await self.setup.give_back(turn.room)

    async def _leave(self, turn: AcceptedTurn) -> None:
        """Store that a turn is left to be continued whose lease ended, as soon as the store answers."""
        store, session_id = turn.tenant.store, turn.lease.session_id
        retries = Retries("server.turn_left", _RETRY, _RETRY)
        while True:
            try:
                await _let_wait(store, session_id, turn.turn_id, is_killed=False)
            except UNAVAILABLE as error:
                await retries.wait(error, session=session_id)
            except AmplifierError as error:  # a reaper leaves it then
                report(
                    "server.turn_left", problem=problem_of(error), session=session_id
                )
                return
            else:
                return

    async def _continue(self, served: ServedTurn, session_id: str) -> None:
        """Have a turn continue that was left, unless that is for a reaper, or for another process."""
        left_for: Exception | None = served.refused or served.unreached
        if left_for is None:
            try:
                # the answer may have come before the session was free
                await self.wake(served.turn.tenant, session_id)
            except (AmplifierError, OSError) as error:
                left_for = error
        if left_for is not None:
            problem = problem_of(left_for)
            report("server.turn_left", problem=problem, session=session_id)


async def resumed_turn(tenant: Tenant, session_id: str) -> AcceptedTurn | None:
    """Take the lease for the turn of a session that waited, if nothing keeps it waiting and nobody runs it."""
    store = tenant.store
    turn_id = await _resumable(store, session_id)
    if turn_id is None:
        return None
    try:
        lease = await store.acquire(session_id, owner="server", period=_PERIOD)
    except LeaseHeldError:
        return None
    turn = await turn_under(tenant, lease, turn_id, state=waiting_turn)
    record = None if turn is None else await store.read_record(session_id)
    if record is not None:
        # whoever finds it running and unheld knows that this process was killed
        await store.write_record(lease, without_waiting(record))
    return turn


async def _resumable(store: SessionStore, session_id: str) -> str | None:
    """Return the turn of a session that waited and waits for nothing any more."""
    record = await store.read_record(session_id)
    turn_id = None if record is None else waiting_turn(record)
    if turn_id is None or await _is_asked(store, session_id, turn_id):
        return None
    return turn_id


async def turn_under(
    tenant: Tenant,
    lease: Lease,
    turn_id: str,
    *,
    state: Callable[[JSONObject], str | None],
) -> AcceptedTurn | None:
    """Return a turn for whoever has the lease on its session; `None`, and the lease is released, where it is over.

    Args:
        tenant: whose session it is.
        lease: on the session.
        turn_id: the turn.
        state: which turn of a record is meant, the one that runs or the one that waits.
    """
    store, session_id = tenant.store, lease.session_id
    turn = None
    try:
        # only now: it may have ended before the lease was taken
        record = await store.read_record(session_id)
        prompt = await read_stored_prompt(store, session_id)
        if record is not None and state(record) == turn_id and prompt is not None:
            caller = await read_stored_caller(store, session_id)
            turn = AcceptedTurn(
                tenant=tenant,
                turn_id=turn_id,
                prompt=prompt,
                lease=lease,
                caller=caller,
            )
    finally:
        if turn is None:
            await release_lease(store, lease)
    return turn


async def _let_wait(
    store: SessionStore, session_id: str, turn_id: str, *, is_killed: bool
) -> bool:
    """Store that a turn is left to be continued, unless somebody runs it; return whether it may be."""
    known = await store.read_record(session_id)
    if known is not None and waiting_turn(known) == turn_id:
        return True  # many may wait, and none of them takes a lease
    try:
        lease = await store.acquire(session_id, owner="server", period=_PERIOD)
    except LeaseHeldError:
        return True
    try:
        record = await store.read_record(session_id)
        # whoever ran it may have stored just now that it waits
        if record is None or waiting_turn(record) or running_turn(record) != turn_id:
            return True
        prompt = await read_stored_prompt(store, session_id)
        if prompt is None:
            return False
        if not is_killed:
            await store.write_record(lease, with_turn_waiting(record, turn_id))
            return True
        if times_left(record, turn_id) >= _MAX_KILLS:
            return False
        await store.write_record(lease, with_turn_left(record, turn_id))
    finally:
        await release_lease(store, lease)
    return True


async def _is_asked(store: SessionStore, session_id: str, turn_id: str) -> bool:
    """Whether a question of a turn waits for its answer."""
    return any(
        is_open_approval(each) and is_waited_for(each, turn_id)
        for each in await store.questions(session_id)
    )


async def store_prompt(
    store: SessionStore, lease: Lease, prompt: Prompt, minutes: int = 0
) -> None:
    """Store the prompt of a turn, without secrets, and what else whoever queues or continues it needs.

    Args:
        store: where the session is.
        lease: on the session.
        prompt: what was asked.
        minutes: how far behind others the turn is in a queue.
    """
    caller = caller_of_turn()
    written = {
        "prompt": prompt_to_json(prompt),
        "traceparent": "" if caller is None else str(caller),
        "minutes": minutes,
    }
    await store.write_document(lease, _PROMPT, json.dumps(written).encode())


async def read_stored_prompt(store: SessionStore, session_id: str) -> Prompt | None:
    """Return the prompt of the last turn of a session."""
    data = (await store.read_documents(session_id)).get(_PROMPT)
    if data is None:
        return None
    return prompt_from_json(json.loads(data)["prompt"])


async def read_stored_caller(
    store: SessionStore, session_id: str
) -> TraceParent | None:
    """Return the span that asked for the last turn of a session: whichever machine runs it, its trace is one."""
    data = (await store.read_documents(session_id)).get(_PROMPT, b"{}")
    return TraceParent.parse(str(json.loads(data).get("traceparent", "")))


async def read_stored_minutes(store: SessionStore, session_id: str) -> int:
    """Return how far behind others the last turn of a session is in a queue."""
    data = (await store.read_documents(session_id)).get(_PROMPT, b"{}")
    return int(json.loads(data).get("minutes", 0))
