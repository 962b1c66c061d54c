"""Ending the turns whose process died: whoever follows them learns of it, and the session is free again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from math import inf
from time import time
from typing import Final

import anyio
import attrs

from amplifier.server.leases import release_lease
from amplifier.server.members import Members
from amplifier.server.recorder import TurnRecorder
from amplifier.server.records import running_turn, wishes_to_cancel, with_turn_ended
from amplifier.server.retries import UNAVAILABLE, Retries
from amplifier.server.served_turns import AcceptedTurn, close_journal, end_turn
from amplifier.server.stores import ServerStores, Tenant
from amplifier.server.turns import TurnEngine
from amplifier_sdk.errors import AmplifierError, LeaseHeldError, StoreUnavailableError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import Lease, LogEntry

__all__ = ["Reaper", "end_cancelled_turn", "end_left_turn", "without_left_turn"]

_MAX_SESSIONS: Final = 1000
_PERIOD: Final = 15.0
_LONGEST: Final = 30.0
"""Seconds until the next look where the store does not answer, at most."""

_RETURN: Final = 30.0
"""Seconds for which turns are left to whoever ran them when a store answers again: leases ended meanwhile of processes
that live, and these leave such a turn themselves."""


@attrs.frozen(eq=False)
class Reaper:
    """Looks for turns whose lease has ended.

    Args:
        stores: the server's.
        members: whose tenants are looked after.
        engine: has turns continue that wait no more.
        interval: seconds between two looks.
    """

    stores: ServerStores
    members: Members
    engine: TurnEngine
    interval: float
    _unread: Retries = attrs.field(
        factory=lambda: Retries("server.session_not_reaped", 0, 0), init=False
    )
    # by tenant; for ever while the store is away
    _left_alone: dict[str, float] = attrs.field(factory=dict, init=False)

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        retries = Retries("server.not_reaped", self.interval, _LONGEST)
        while True:
            names = [*self.members.tenants()]
            failed = await self._failures(names)
            error = next(iter(failed.values()), None)
            if error is None:
                retries.succeed()
            elif len(failed) == len(names):
                await retries.wait(error, tenants=[*failed])
                continue
            else:  # the others' turns wait no longer for that
                retries.report(error, tenants=[*failed])
            await anyio.sleep(self.interval)

    async def _failures(self, names: Sequence[str]) -> dict[str, Exception]:
        """Look at the turns of tenants once; return what went wrong by tenant."""
        failed = dict[str, Exception]()
        for name in names:
            try:
                await self.reap(await self.stores.tenant(name))
            except (AmplifierError, OSError) as error:
                failed[name] = error
                if isinstance(error, UNAVAILABLE):
                    self._left_alone[name] = inf
        return failed

    async def reap(self, tenant: Tenant) -> None:
        """End the turns of a tenant that nobody runs any more, and continue those that wait for nothing any more."""
        records = await tenant.store.list_sessions(limit=_MAX_SESSIONS)
        if self._left_alone.get(tenant.name) == inf:
            self._left_alone[tenant.name] = anyio.current_time() + _RETURN
        for record in records:
            session_id, turn_id = str(record["session_id"]), running_turn(record)
            if turn_id is None:
                continue
            try:
                await self._reap(tenant, session_id, turn_id)
            except StoreUnavailableError:
                raise
            except (AmplifierError, OSError) as error:  # the others can be read
                name = tenant.name
                self._unread.report(error, tenant=name, session=session_id)

    async def _reap(self, tenant: Tenant, session_id: str, turn_id: str) -> None:
        # whoever was asked to cancel it may have met somebody who was about to let go of it
        asked = await tenant.store.questions(session_id)
        if any(wishes_to_cancel(asked, turn_id)):
            await end_cancelled_turn(self.engine, tenant, session_id, turn_id)
        # also one that waits: what should continue it may have failed
        elif not self._is_left_alone(tenant) and await self.engine.is_left(
            tenant, session_id, turn_id
        ):
            await end_left_turn(tenant, session_id)
        else:
            await self.engine.wake(tenant, session_id)

    def _is_left_alone(self, tenant: Tenant) -> bool:
        """Whether the store of a tenant was away just now, so that a lease which ended says nothing of its process."""
        until = self._left_alone.get(tenant.name, -inf)
        return anyio.current_time() < until


async def end_left_turn(tenant: Tenant, session_id: str) -> None:
    """End the turn of a session unless somebody runs it."""
    async with _freed(tenant, session_id, "reaper") as (lease, record):
        if lease is not None:
            await without_left_turn(tenant, lease, record)


async def end_cancelled_turn(
    engine: TurnEngine, tenant: Tenant, session_id: str, turn_id: str
) -> None:
    """End a turn that somebody cancelled, unless somebody runs it now, who sees the wish themselves."""
    async with _freed(tenant, session_id, "server") as (lease, record):
        if lease is None or running_turn(record) != turn_id:
            return
        turn = AcceptedTurn(tenant=tenant, turn_id=turn_id, prompt="", lease=lease)
        await close_journal(turn)
        recorder = TurnRecorder(tenant.store, lease)
        await end_turn(turn, recorder, {"type": "turn_cancelled"})
        await engine.forget(turn_id)


@asynccontextmanager
async def _freed(
    tenant: Tenant, session_id: str, owner: str
) -> AsyncIterator[tuple[Lease | None, JSONObject]]:
    """Lease a session that nobody runs, and read its record; there is no lease where somebody does, or it is gone."""
    store = tenant.store
    try:
        lease = await store.acquire(session_id, owner=owner, period=_PERIOD)
    except LeaseHeldError:
        yield None, {}
        return
    try:
        # read again: its turn may have ended before the lease was ours
        record = await store.read_record(session_id)
        yield (None, {}) if record is None else (lease, record)
    finally:
        await release_lease(store, lease)


async def without_left_turn(
    tenant: Tenant, lease: Lease, record: JSONObject
) -> JSONObject:
    """Store that a turn ended whose process did, where there is one; return the session's record."""
    turn_id = running_turn(record)
    if turn_id is None:
        return record
    store = tenant.store
    message = "The process that ran the turn ended; a tool call may have run"
    error: JSONObject = {"code": "interrupted", "message": message}
    event: JSONObject = {"type": "turn_failed", "error": error}
    entry = LogEntry(kind="turn_failed", data=event, at=time())
    # before the event: who reads it finds nothing to answer any more
    await store.void_questions(lease)
    await store.append(lease, "events", [entry])
    ended: JSONObject = {"turn_id": turn_id, "state": "failed", "error": error}
    changed = with_turn_ended(record, ended, None)
    await store.write_record(lease, changed)
    return changed
