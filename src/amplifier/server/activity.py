"""What happened on a server: who changed what, and what turns cost. Each process writes a log of its own."""

from __future__ import annotations

from collections.abc import Sequence
from time import time
from typing import Final
from uuid import uuid4

import anyio
import attrs

from amplifier.app.store.records import SessionRecord
from amplifier_sdk.chat import Usage
from amplifier_sdk.errors import LeaseLostError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import Lease, LogEntry, SessionStore

__all__ = ["ActivityLog"]

_PERIOD: Final = 60.0
_MAX_LOGS: Final = 10_000
_PREFIX: Final = "server-log-"


@attrs.define(eq=False)
class ActivityLog:
    """The log of this process, and the reader of those of all.

    Args:
        store: the server's own.
    """

    store: SessionStore
    _lease: Lease | None = None
    _writing: anyio.Lock = attrs.field(factory=anyio.Lock)

    async def note(self, kind: str, entry: JSONObject) -> None:
        """Write an entry.

        Raises:
            StoreUnavailableError: it is not written.
        """
        async with self._writing:
            lease = await self._own()
            logged = LogEntry(kind=kind, data=entry, at=time())
            await self.store.append(lease, "events", [logged])

    async def note_cost(
        self, tenant: str, session_id: str, usage: Usage | None
    ) -> None:
        """Write what a turn cost."""
        cost: JSONObject = {"tenant": tenant, "session_id": session_id}
        if usage is not None:
            cost["input_tokens"] = usage.input_tokens
            cost["output_tokens"] = usage.output_tokens
            if usage.cost_usd is not None:
                cost["cost_usd"] = str(usage.cost_usd)
        await self.note("cost", cost)

    async def read(self, kind: str, tenant: str) -> Sequence[LogEntry]:
        """Return the entries of a tenant, of all processes, the first one first."""
        found: list[LogEntry] = []
        for record in await self.store.list_sessions(limit=_MAX_LOGS):
            session_id = str(record["session_id"])
            if session_id.startswith(_PREFIX):
                log = await self.store.read_log(session_id, "events")
                found += [
                    entry
                    for entry in log.entries
                    if entry.kind == kind
                    and isinstance(entry.data, dict)
                    and entry.data.get("tenant") == tenant
                ]
        return sorted(found, key=lambda entry: entry.at)

    async def _own(self) -> Lease:
        """Return the lease on a log of this process; one that ended is followed by another log."""
        if self._lease is not None:
            try:
                await self.store.renew(self._lease)
            except LeaseLostError:
                self._lease = None
        if self._lease is None:
            session_id = f"{_PREFIX}{uuid4()}"
            lease = await self.store.acquire(session_id, owner="server", period=_PERIOD)
            record = SessionRecord(session_id=session_id, name="server log")
            await self.store.write_record(lease, record.to_dict())
            self._lease = lease
        return self._lease
