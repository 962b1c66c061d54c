"""What happened on a server: who changed what, and what turns cost. Each process writes a log of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from time import time
from typing import Final
from uuid import uuid4

import anyio
import attrs

from amplifier.app.store.records import SessionRecord
from amplifier.server.token_store import TOKENS
from amplifier_sdk.chat import Usage
from amplifier_sdk.errors import LeaseLostError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import Lease, LogEntry, SessionStore

__all__ = ["ActivityLog"]

_PERIOD: Final = 60.0
_MAX_LOGS: Final = 10_000
_LOG: Final = "server-log-"
_END: Final = "_"
"""Ends the name of a tenant, which has no such sign in it: none is the beginning of another."""


@attrs.define(eq=False)
class ActivityLog:
    """The log of this process, and the reader of those of all.

    Args:
        store: the server's own.
    """

    store: SessionStore
    _logs: dict[str, _TenantLog] = attrs.field(factory=dict)

    async def note(self, kind: str, tenant: str, entry: JSONObject) -> None:
        """Write an entry of a tenant.

        Raises:
            StoreUnavailableError: it is not written.
        """
        # each in a log of its own: how long one takes says nothing of the others
        log = self._logs.setdefault(tenant, _TenantLog(self.store, tenant))
        await log.append(LogEntry(kind=kind, data=entry, at=time()))

    async def note_cost(
        self, tenant: str, session_id: str, usage: Usage | None
    ) -> None:
        """Write what a turn cost."""
        cost: JSONObject = {"session_id": session_id}
        if usage is not None:
            cost["input_tokens"] = usage.input_tokens
            cost["output_tokens"] = usage.output_tokens
            if usage.cost_usd is not None:
                cost["cost_usd"] = str(usage.cost_usd)
        await self.note("cost", tenant, cost)

    async def read(self, kind: str, tenant: str) -> Sequence[LogEntry]:
        """Return the entries of a tenant, of all processes, the first one first."""
        found = (await self._read_all(kind, _prefix(tenant))).get(tenant, [])
        if kind == "audit":
            found += await self._changes_of_tokens(tenant)
        return sorted(found, key=lambda entry: entry.at)

    async def read_costs(self, tenant: str | None) -> Mapping[str, Sequence[LogEntry]]:
        """Return what turns cost by tenant, of one or of all."""
        begin = _LOG if tenant is None else _prefix(tenant)
        return await self._read_all("cost", begin)

    async def _read_all(self, kind: str, begin: str) -> dict[str, list[LogEntry]]:
        """Return the entries of the logs whose names begin so, by tenant."""
        found: defaultdict[str, list[LogEntry]] = defaultdict(list)
        for record in await self.store.list_sessions(limit=_MAX_LOGS):
            session_id = str(record["session_id"])
            if session_id.startswith(begin):
                log = await self.store.read_log(session_id, "events")
                tenant = session_id.removeprefix(_LOG).partition(_END)[0]
                found[tenant] += [each for each in log.entries if each.kind == kind]
        return found

    async def check(self) -> None:
        """Write to the store as a request would that changes something.

        Raises:
            StoreError: it cannot be written.
            OSError: likewise.
        """
        log = self._logs.setdefault("", _TenantLog(self.store, ""))
        await log.hold()

    async def _changes_of_tokens(self, tenant: str) -> list[LogEntry]:
        log = await self.store.read_log(TOKENS, "events")
        return [
            entry
            for entry in log.entries
            if isinstance(entry.data, dict) and entry.data.get("tenant") == tenant
        ]


@attrs.define(eq=False)
class _TenantLog:
    """What this process writes of a tenant."""

    store: SessionStore
    tenant: str
    _lease: Lease | None = None
    _writing: anyio.Lock = attrs.field(factory=anyio.Lock)

    async def append(self, entry: LogEntry) -> None:
        async with self._writing:
            await self.store.append(await self._own(), "events", [entry])

    async def hold(self) -> None:
        async with self._writing:
            await self._own()

    async def _own(self) -> Lease:
        """Return the lease on a log of this process; one that ended is followed by another log."""
        if self._lease is not None:
            try:
                await self.store.renew(self._lease)
            except LeaseLostError:
                self._lease = None
        if self._lease is None:
            session_id = f"{_prefix(self.tenant)}{uuid4()}"
            lease = await self.store.acquire(session_id, owner="server", period=_PERIOD)
            record = SessionRecord(session_id=session_id, name="server log")
            await self.store.write_record(lease, record.to_dict())
            self._lease = lease
        return self._lease


def _prefix(tenant: str) -> str:
    return f"{_LOG}{tenant}{_END}"
