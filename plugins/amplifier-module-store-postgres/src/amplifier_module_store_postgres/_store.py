"""The store: each method is one transaction, run in a worker thread."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import anyio
import attrs
from anyio import to_thread

from amplifier_module_store_postgres import _families, _logs, _questions, _rows, _search
from amplifier_module_store_postgres._database import Database
from amplifier_module_store_postgres._followers import StoreFollowers
from amplifier_module_store_postgres._quotas import PostgresQuotas
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import Lease, LogEntry, LogName, SessionLog, StoredQuestion

__all__ = ["PostgresSessionStore", "open_store"]

_RECHECK: Final = 5.0
"""Seconds after which a session that somebody waits for is read again, also where no change was announced."""


async def open_store(url: str, *, namespace: str = "") -> PostgresSessionStore:
    """Open the store of a database; its tables are made or brought up to date. Close it with `aclose`.

    Args:
        url: where the server is, as libpq takes it, such as `postgresql://user@host/database`. A password stands
            better in the variable `PGPASSWORD` or the file `~/.pgpass`.
        namespace: whose sessions they are, such as a tenant or a project; nothing of another one is seen.

    Raises:
        StoreUnavailableError: the server does not answer, or refuses.
        StoreVersionError: another version made the tables.
        StoreError: the URL is none.
    """
    return PostgresSessionStore(
        await Database.open(url), namespace, StoreFollowers(url)
    )


@attrs.frozen(eq=False)
class PostgresSessionStore:
    """Sessions in PostgreSQL as `amplifier_sdk.SessionStore`; `open_store` makes one.

    Args:
        database: the connections.
        namespace: whose sessions they are.
        followers: those who wait for changes.
        is_owner: whether the connections end with it.
    """

    database: Database
    namespace: str
    followers: StoreFollowers
    is_owner: bool = True

    def in_namespace(self, namespace: str) -> PostgresSessionStore:
        """Return the sessions of another namespace over the same connections, which end with this store."""
        return attrs.evolve(self, namespace=namespace, is_owner=False)

    @property
    def quotas(self) -> PostgresQuotas:
        """The accounts of the namespace, as `amplifier_sdk.MeteredStore` has them."""
        return PostgresQuotas(self.database, self.namespace)

    async def acquire(self, session_id: str, *, owner: str, period: float) -> Lease:
        """Take the lease on a session; see the protocol, as of all methods."""
        run, name = self.database.run, self.namespace
        return await run(_rows.acquire, name, session_id, owner, period)

    async def renew(self, lease: Lease) -> None:
        """Have a lease end a whole period from now."""
        await self.database.run(_rows.renew, self.namespace, lease)

    async def release(self, lease: Lease) -> None:
        """End a lease; one that has ended is left as it is."""
        await self.database.run(_rows.release, self.namespace, lease)

    async def holder(self, session_id: str) -> str | None:
        """Return who may write a session at the moment; `None` for nobody."""
        return await self.database.run(_rows.holder, self.namespace, session_id)

    async def write_record(self, lease: Lease, record: JSONObject) -> None:
        """Write who a session is."""
        await self.database.run(_rows.write_record, self.namespace, lease, record)

    async def append(
        self, lease: Lease, log: LogName, entries: Sequence[LogEntry]
    ) -> None:
        """Add entries to the end of a log, all of them or none."""
        await self.database.run_alone(_logs.append, self.namespace, lease, log, entries)

    async def replace(self, lease: Lease, log: LogName, content: SessionLog) -> None:
        """Put other entries in the place of all that a log has, at once."""
        await self.database.run(_logs.replace, self.namespace, lease, log, content)

    async def write_document(self, lease: Lease, name: str, content: bytes) -> None:
        """Write a file of a session's own, all at once."""
        run = self.database.run
        await run(_logs.write_document, self.namespace, lease, name, content)

    async def ask(self, lease: Lease, question: StoredQuestion) -> None:
        """Store a question; the same one again changes nothing."""
        await self.database.run(_questions.ask, self.namespace, lease, question)

    async def void_questions(self, lease: Lease) -> None:
        """Let the questions of a session that nobody answered take no answer any more."""
        await self.database.run(_questions.void_questions, self.namespace, lease)

    async def forget_questions(
        self, lease: Lease, question_ids: Collection[str]
    ) -> None:
        """Delete questions of a session, answered or not; ids of others are passed over."""
        run, name = self.database.run, self.namespace
        await run(_questions.forget_questions, name, lease, question_ids)

    async def answer(self, question_id: str, answer: str, *, by: str) -> StoredQuestion:
        """Answer a question, once; the same answer again is no error and changes nothing."""
        run, name = self.database.run, self.namespace
        return await run(_questions.answer, name, question_id, answer, by)

    async def questions(
        self, session_id: str | None = None
    ) -> tuple[StoredQuestion, ...]:
        """Return the questions of a session, or of all, in the order of their ids."""
        run = self.database.run
        return await run(_questions.read_questions, self.namespace, session_id)

    async def read_record(self, session_id: str) -> JSONObject | None:
        """Return who a session is; `None` where there is none."""
        return await self.database.run(_rows.read_record, self.namespace, session_id)

    async def read_log(
        self, session_id: str, log: LogName, *, after: int = 0
    ) -> SessionLog:
        """Return what a log has behind its first `after` entries."""
        run, name = self.database.run, self.namespace
        return await run(_logs.read_log, name, session_id, log, after)

    async def read_documents(self, session_id: str) -> Mapping[str, bytes]:
        """Return the documents of a session by name."""
        return await self.database.run(_logs.read_documents, self.namespace, session_id)

    async def list_sessions(
        self, *, limit: int, children: bool = False
    ) -> tuple[JSONObject, ...]:
        """Return the records of sessions, those in which something happened last first."""
        run = self.database.run
        return await run(_rows.list_records, self.namespace, limit, children)

    async def children(self, session_id: str) -> tuple[str, ...]:
        """Return the ids of the sessions that a session made, the first one first."""
        return await self.database.run(_rows.read_children, self.namespace, session_id)

    async def search(self, text: str, *, limit: int) -> tuple[str, ...]:
        """Return the ids of the sessions in which a text stands, the latest first."""
        return await self.database.run(_search.search, self.namespace, text, limit)

    async def delete(
        self, session_id: str, *, leases: Sequence[Lease] = ()
    ) -> tuple[str, ...]:
        """Delete a session and all that came of it; return the ids, children before their parents."""
        run = self.database.run
        return await run(_families.delete, self.namespace, session_id, leases)

    async def cleanup(self, before: float) -> tuple[str, ...]:
        """Delete the sessions in which, and in all that came of them, nothing has happened since."""
        run, name = self.database.run, self.namespace
        deleted: list[str] = []
        await run(_families.delete_unwritten, name, before)
        # Each family in a transaction of its own: none waits for all the others.
        for root in await run(_families.old_families, name, before):
            deleted += await run(_families.delete_old, name, root, before)
        return tuple(deleted)

    async def wait_for_change(
        self, session_id: str, seen: str, *, max_wait: float
    ) -> str:
        """Wait until a session is no more as it was, and return a mark of how it is now."""
        run, name = self.database.run, self.namespace
        mark = await run(_rows.change_of, name, session_id)
        if mark != seen or max_wait <= 0:
            return mark
        await to_thread.run_sync(self.followers.start)
        key = _rows.follower_key(name, session_id)
        with anyio.move_on_after(max_wait):
            while mark == seen:
                with self.followers.waiting(key) as event:
                    # Read again: it may have changed before this was listened to.
                    mark = await run(_rows.change_of, name, session_id)
                    if mark == seen:
                        with anyio.move_on_after(_RECHECK):
                            await event.wait()
        return mark

    async def aclose(self) -> None:
        """Close the store; a second call does nothing."""
        if not self.is_owner:
            return
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self.followers.stop)
            await self.database.aclose()
