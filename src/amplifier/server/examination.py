"""Checks of the store that servers share: whether it opens, keeps what is written, and lets anybody in."""

from __future__ import annotations

from contextlib import AsyncExitStack
from time import perf_counter, time
from typing import Final
from uuid import uuid4

from amplifier.app.doctor.findings import DoctorFinding, broken, fine, warning
from amplifier.app.store.records import SessionRecord
from amplifier.server.stores import ServerStores
from amplifier.server.token_store import TokenStore
from amplifier_sdk.errors import AmplifierError, ConfigError, StoreVersionError
from amplifier_sdk.stores import LogEntry, SessionStore

__all__ = ["examine_store"]

_AREA: Final = "store"
_PERIOD: Final = 30.0
_SLOW: Final = 0.25


async def examine_store(stores: ServerStores) -> list[DoctorFinding]:
    """Open the store of servers, write something and delete it again, and look at its tokens; close it."""
    found: list[DoctorFinding] = []
    async with AsyncExitStack() as stack:
        stack.push_async_callback(stores.aclose)
        try:
            store = await stores.server()
        except (AmplifierError, OSError) as error:
            return [broken(_AREA, f"it does not open: {error}", _remedy(error))]
        found.append(fine(_AREA, "it opens, and its schema is this version's"))
        try:
            found.append(await _written(store))
            found.append(await _tokens(TokenStore(store)))
        except (AmplifierError, OSError) as error:
            message = f"it does not take what is written: {error}"
            found.append(
                broken(_AREA, message, "look for a full disk, or missing rights")
            )
    return found


def _remedy(error: Exception) -> str:
    match error:
        case StoreVersionError():
            return "update amplifier-module-store-postgres on the older machine"
        case ConfigError():
            return "correct the name of the store"
        case _:
            return "is the database running, and is the password in PGPASSWORD or ~/.pgpass?"


async def _written(store: SessionStore) -> DoctorFinding:
    """Write a session as a turn does and delete it."""
    session_id, begun = f"doctor-{uuid4()}", perf_counter()
    lease = await store.acquire(session_id, owner="doctor", period=_PERIOD)
    try:
        record = SessionRecord(session_id=session_id, name="doctor")
        await store.write_record(lease, record.to_dict())
        entry = LogEntry(kind="doctor", data={"is": "here"}, at=time())
        await store.append(lease, "events", [entry])
        log = await store.read_log(session_id, "events")
    finally:
        await store.delete(session_id, leases=[lease])
    seconds = perf_counter() - begun
    if [each.data for each in log.entries] != [entry.data]:
        message = "it returns other than what was written"
        return broken(_AREA, message, "restore it from a backup")
    message = f"a session was written, read and deleted in {seconds * 1000:.0f} ms"
    if seconds > _SLOW:
        return warning(_AREA, message, "bring the store nearer, or look at its disk")
    return fine(_AREA, message)


async def _tokens(tokens: TokenStore) -> DoctorFinding:
    known = await tokens.load()
    ended = [one.name for one in known if one.expires and one.expires <= time()]
    if ended:
        message = f"{len(known)} tokens, ended: {', '.join(sorted(ended))}"
        return warning("token", message, f"amplifier token remove {ended[0]}")
    if not known:
        return warning("token", "nobody may call", "amplifier token add NAME")
    return fine("token", f"{len(known)} tokens")
