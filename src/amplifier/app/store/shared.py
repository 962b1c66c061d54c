"""The sessions of a store of several machines, used as those of a project's files are.

A session that is opened is leased there and copied here. Its journal is written to both, before each effect; what it
says at the end of a turn is brought back. The copy is one process's own and goes with it: the store has the session.
"""

from __future__ import annotations

import shutil
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import ClassVar, Final, TypeVar

import anyio
import attrs
from anyio import to_thread

from amplifier.app.store.leases import LeaseState
from amplifier.app.store.log_files import read_entries, replace_entries
from amplifier.app.store.records import SessionRecord, record_bytes
from amplifier.app.store.replica import SessionReplica, fetch
from amplifier.app.store.selection import find_session
from amplifier.app.store.store import Cleanup, ProjectSessions
from amplifier.app.store.stored import StoredSession
from amplifier.app.store.writer import METADATA, SessionWriter
from amplifier.kernel.groups import open_group
from amplifier.kernel.reports import report
from amplifier_kit.files.appendlog import Durability
from amplifier_kit.files.atomic import write_private
from amplifier_kit.files.names import folder_name
from amplifier_kit.files.private_append import make_folders
from amplifier_sdk.errors import AmplifierError, LeaseHeldError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import Lease, LogEntry, SessionLog, SessionStore

__all__ = ["LeasedSessions", "SharedSessions", "is_copy", "local_folder"]

T = TypeVar("T")

_PERIOD: Final = 30.0
"""Seconds after which another machine may take a session over whose process died."""

_PREFIX: Final = "amplifier-sessions-"
_CLOSING: Final = 15.0
_RETRY: Final = 0.25
_ALL: Final = 1_000_000
_OWNER: Final = "amplifier"
_LEFT_OUT: Final = SessionLog(entries=(LogEntry(kind="left_out", data={}, at=0.0),))
"""Stands in the copy of a session's record in place of its transcript, which lists do not need."""


@attrs.frozen(eq=False)
class SharedSessions(ProjectSessions):
    """Sessions that stand in a store of several machines.

    Args:
        root: the folder of this process's copies; see `of_store`.
        opener: opens the store.
        local: the folder of what modules store of sessions on this machine, such as backups of its files.
    """

    opener: Callable[[], Awaitable[SessionStore]]
    local: Path
    waits: ClassVar[bool] = False
    """Whether a turn waits for a store that does not answer; at a terminal the turn fails."""

    @classmethod
    def of_store(
        cls, opener: Callable[[], Awaitable[SessionStore]], local: Path
    ) -> SharedSessions:
        """Return the sessions of a store; the copies are removed with the object, or at the end of the process."""
        made = cls(Path(mkdtemp(prefix=_PREFIX)), opener, local)
        weakref.finalize(made, shutil.rmtree, made.root, ignore_errors=True)
        return made

    @asynccontextmanager
    async def open(
        self, record: SessionRecord, *, durability: Durability = "written"
    ) -> AsyncIterator[SessionWriter]:
        """Open a session for writing, here and in the store; see `SessionStore.open`.

        Raises:
            LeaseHeldError: somebody else writes it.
            LeaseLostError: another machine took it over meanwhile.
            StoreUnavailableError: the store does not answer.
        """
        session_id = record.session_id
        async with self._store() as store, self._leased(store, session_id) as lease:
            await self._copy(store, session_id)
            async with super().open(record, durability=durability) as writer:
                replica = SessionReplica(store, lease, writer.folder, self.waits)
                writer.journal.replica = replica
                async with open_group() as group:
                    group.start_soon(replica.renew)
                    async with _brought_back(replica):
                        yield writer
                    group.cancel_scope.cancel()

    def apart(self) -> SharedSessions:
        """Return the same sessions with copies of their own: what is open here is not copied again."""
        return type(self).of_store(self.opener, self.local)

    def find(self, name: str) -> StoredSession:
        """Return the session of an id, of its beginning, or of a name, with its history."""
        self.read_records()
        found = find_session([self.sessions], name)
        self._ask(partial(self._read_family, found.record))
        return found

    def latest(self) -> StoredSession | None:
        """Return the session in which something happened last, with its history."""
        found = super().latest()
        if found is not None:
            self._ask(partial(self._read_family, found.record))
        return found

    def all(self, *, children: bool = False) -> list[StoredSession]:
        """Return the sessions, the latest first, without what was said in them."""
        self.read_records()
        return super().all(children=children)

    def read_records(self) -> None:
        """Copy who the sessions are, and whether somebody has them open; nothing of what was said in them."""
        self._ask(self._read_records)

    def read_matches(self, text: str, limit: int) -> None:
        """Copy the sessions in which a text stands."""

        async def read(store: SessionStore) -> None:
            for session_id in await store.search(text, limit=limit):
                await fetch(store, session_id, self.folder(session_id))

        self._ask(read)

    def delete_family(
        self, family: Sequence[StoredSession], leases: Sequence[Lease] = ()
    ) -> list[str]:
        """Delete the sessions of a family, as `families` returned them; return their ids.

        Raises:
            LeaseHeldError: somebody writes one of them; nothing is deleted.
        """
        session_id = family[-1].record.session_id
        deleted = self._ask(lambda store: store.delete(session_id, leases=leases))
        self._forget(deleted)
        return [*deleted]

    def cleanup(self, before: float) -> Cleanup:
        """Delete the sessions in which nothing has happened since; those that somebody writes stay."""
        deleted = self._ask(lambda store: store.cleanup(before))
        self._forget(deleted)
        return Cleanup(deleted=deleted)

    def _forget(self, session_ids: Iterable[str]) -> None:
        for session_id in session_ids:
            shutil.rmtree(self.folder(session_id), ignore_errors=True)
            local = local_folder(self.local, session_id)
            if local is not None:
                shutil.rmtree(local, ignore_errors=True)

    def _ask(self, question: Callable[[SessionStore], Awaitable[T]]) -> T:
        """Ask the store something, for callers that block."""

        async def ask() -> T:
            async with self._store() as store:
                return await question(store)

        return anyio.run(ask)

    @asynccontextmanager
    async def _store(self) -> AsyncIterator[SessionStore]:
        store = await self.opener()
        try:
            yield store
        finally:
            with anyio.CancelScope(shield=True):
                await store.aclose()

    @asynccontextmanager
    async def _leased(
        self, store: SessionStore, session_id: str
    ) -> AsyncIterator[Lease]:
        lease = await store.acquire(session_id, owner=_OWNER, period=_PERIOD)
        async with _released(store, lease):
            yield lease

    async def _copy(self, store: SessionStore, session_id: str) -> None:
        await self._fetch(store, [session_id])

    async def _fetch(self, store: SessionStore, session_ids: list[str]) -> None:
        """Copy sessions and all that came of them."""
        for session_id in session_ids:  # which grows
            await fetch(store, session_id, self.folder(session_id))
            session_ids += await store.children(session_id)

    async def _read_family(self, record: SessionRecord, store: SessionStore) -> None:
        """Copy a session with all that came of it, and those that it came of: they say what it is made of."""
        await self._fetch(store, [record.session_id])
        parent: object = record.parent_id
        while isinstance(parent, str):
            await fetch(store, parent, self.folder(parent))
            parent = (await store.read_record(parent) or {}).get("parent_id")
        folder = self.folder(record.session_id)
        holder = await store.holder(record.session_id)
        await to_thread.run_sync(_note_holder, folder, holder)

    async def _read_records(self, store: SessionStore) -> None:
        for record in await store.list_sessions(limit=_ALL, children=True):
            session_id = str(record["session_id"])
            holder = await store.holder(session_id)
            folder = self.folder(session_id)
            await to_thread.run_sync(_write_record, folder, record, holder)


@attrs.frozen(eq=False)
class LeasedSessions(SharedSessions):
    """The sessions of one turn that a server or a worker runs: it has the lease on the first of them, and the store.

    Args:
        root: the folder of the copies; where it is a project's own, files that say more than the store does stay.
        opener: as for `SharedSessions`; not called.
        store: the store.
        lease: on the session; whoever took it releases it.
    """

    store: SessionStore
    lease: Lease
    waits: ClassVar[bool] = True

    @classmethod
    def of_turn(cls, root: Path, store: SessionStore, lease: Lease) -> LeasedSessions:
        """Return the sessions of a turn."""

        async def opened() -> SessionStore:
            return store

        return cls(root, opened, root / "sessions", store, lease)

    async def fetch(self) -> None:
        """Copy the session and all that came of it."""
        session_ids = [self.lease.session_id]
        for session_id in session_ids:  # which grows
            if not await self._is_further(session_id):
                await fetch(self.store, session_id, self.folder(session_id))
            session_ids += await self.store.children(session_id)

    async def _is_further(self, session_id: str) -> bool:
        """Whether the files have more than the store, which gets it with the turn: somebody took a turn of it here."""
        folder = self.folder(session_id)
        entries = await to_thread.run_sync(read_entries, folder, "transcript")
        known = await self.store.read_log(session_id, "transcript")
        here = [each.data for each in entries.entries]
        there = [each.data for each in known.entries]
        return len(here) > len(there) and here[: len(there)] == there

    @asynccontextmanager
    async def _store(self) -> AsyncIterator[SessionStore]:
        yield self.store

    @asynccontextmanager
    async def _leased(
        self, store: SessionStore, session_id: str
    ) -> AsyncIterator[Lease]:
        if session_id == self.lease.session_id:
            yield self.lease
            return
        lease = await self._acquired(store, session_id)
        async with _released(store, lease):
            yield lease

    async def _acquired(self, store: SessionStore, session_id: str) -> Lease:
        """Take the lease on a child; that of a process which died may last for another period."""
        period, owner = self.lease.period, self.lease.owner
        deadline = anyio.current_time() + 2 * period
        while True:
            try:
                return await store.acquire(session_id, owner=owner, period=period)
            except LeaseHeldError:
                if anyio.current_time() >= deadline:
                    raise
                await anyio.sleep(_RETRY)

    async def _copy(self, store: SessionStore, session_id: str) -> None:
        """Do nothing: the session was fetched with all that came of it."""


def is_copy(folder: Path) -> bool:
    """Tell whether a session's folder is a copy of this process, and goes with it."""
    return folder.parent.parent.name.startswith(_PREFIX)


def local_folder(root: Path, session_id: str) -> Path | None:
    """Return the folder of what modules store of a shared session on this machine; `None` where there is nothing.

    Args:
        root: the folder of the project's sessions.
        session_id: the session.
    """
    folder = root / folder_name(session_id)
    # one with metadata is a session of the project's files
    if folder.is_dir() and not (folder / METADATA).exists():
        return folder
    return None


@asynccontextmanager
async def _released(store: SessionStore, lease: Lease) -> AsyncIterator[None]:
    try:
        yield
    finally:
        with anyio.move_on_after(_CLOSING, shield=True):
            try:
                await store.release(lease)
            except (AmplifierError, OSError) as error:
                # it ends by itself
                report("store.lease_not_released", error, session=lease.session_id)


@asynccontextmanager
async def _brought_back(replica: SessionReplica) -> AsyncIterator[None]:
    """Bring what the files say at the end of a block into the store, however it ends."""
    try:
        yield
    except BaseException:
        with anyio.move_on_after(_CLOSING, shield=True):
            try:
                await replica.store_files()
            except (AmplifierError, OSError) as error:
                # what ended the block counts, perhaps the very same
                report("store.not_brought_back", error)
        raise
    await replica.store_files()


def _write_record(folder: Path, record: JSONObject, holder: str | None) -> None:
    make_folders(folder)
    written = record_bytes(record, str(record["session_id"]))
    write_private(folder / METADATA, written)
    # without anything said it would count as damaged
    replace_entries(folder, "transcript", _LEFT_OUT)
    _note_holder(folder, holder)


def _note_holder(folder: Path, holder: str | None) -> None:
    """Say in a copy that somebody has the session open, as its own files would."""
    if holder is not None and folder.exists():
        state = LeaseState(owner=holder, token=1, expires=time.time() + _PERIOD)
        state.write(folder)
