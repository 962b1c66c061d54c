"""What is stored of a session's children: by the application, else in memory while the session lives."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import attrs

from amplifier.kernel.reports import report
from amplifier_sdk.delegation import (
    ChildRecord,
    ChildStore,
    JournaledChildStore,
    ResumableChildStore,
)
from amplifier_sdk.journal import RecordedTurn

if TYPE_CHECKING:
    from amplifier.kernel.sessions.session import AmplifierSession

__all__ = ["ChildRecords"]


@attrs.define(eq=False)
class ChildRecords:
    """The records of one session's children, by id; in the capability `session.children` where there is one."""

    session: AmplifierSession
    _records: dict[str, ChildRecord] = attrs.field(factory=dict)

    async def find(self, session_id: str) -> ChildRecord | None:
        """Return what is stored of a child, or `None`."""
        store = self._store
        if store is None:
            return self._records.get(session_id)
        return await store.load(session_id)

    async def unfinished(
        self, session_id: str
    ) -> tuple[ChildRecord, RecordedTurn] | None:
        """Return a child whose turn was left in the middle, and what is recorded of that."""
        store = self._store
        if isinstance(store, ResumableChildStore):
            return await store.unfinished(session_id)
        return None

    @asynccontextmanager
    async def turn(
        self, child: AmplifierSession, record: ChildRecord
    ) -> AsyncIterator[None]:
        """Keep what a child remembers of the turn that runs in the block, also when that is cancelled.

        Where the store journals, who the child is and what the turn does are stored before it does it.

        Args:
            child: the open child.
            record: who it is, with the count of its turns before this one.
        """
        store = self._store
        async with AsyncExitStack() as stack:
            if isinstance(store, JournaledChildStore):
                # before the turn: of a process that is killed in it the child must be
                # found again
                journal = await stack.enter_async_context(store.open(record))
                child.coordinator.register_capability("session.journal", journal)
            try:
                yield
            finally:
                # a turn that is suspended is continued from its journal
                if not child.coordinator.decisions.suspension.is_done:
                    await self._keep(
                        child, attrs.evolve(record, turn_count=record.turn_count + 1)
                    )

    async def _keep(self, child: AmplifierSession, record: ChildRecord) -> None:
        """Keep a child's history; what fails here does not undo the turn."""
        limit = child.plan.session.limits.cleanup_timeout
        with anyio.CancelScope(shield=True), anyio.move_on_after(limit) as scope:
            try:
                # a copy: the context may change the list that it returned later
                messages = list(await child.coordinator.context.get_messages())
                await self._save(
                    attrs.evolve(
                        record, messages=messages, spending=child.spending.to_dict()
                    )
                )
            except Exception as error:  # foreign code
                report("child.not_kept", error, session_id=child.session_id)
        if scope.cancelled_caught:
            report("child.not_kept", session_id=child.session_id, seconds=limit)

    async def _save(self, record: ChildRecord) -> None:
        store = self._store
        if store is None:
            self._records[record.session_id] = record
        else:
            await store.save(record)

    @property
    def _store(self) -> ChildStore | None:
        """Where the application keeps children, if it does."""
        store = self.session.coordinator.get_capability("session.children")
        if store is not None and not isinstance(store, ChildStore):
            problem = f"The capability 'session.children' is a ChildStore, with 'save' and 'load'; got {store!r:.200}"
            raise TypeError(problem)
        return store
