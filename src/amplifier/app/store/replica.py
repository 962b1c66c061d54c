"""A session's files on this machine, and the same session in a store of several machines."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import anyio
import attrs
from anyio import to_thread

from amplifier.app.store.file_store import is_document, read_files
from amplifier.app.store.log_files import read_entries, replace_entries
from amplifier.app.store.records import SessionRecord, record_bytes
from amplifier.app.store.stored_questions import changing_questions, read_questions
from amplifier.app.store.writer import METADATA
from amplifier.kernel.reports import report
from amplifier_kit.files.atomic import write_private
from amplifier_kit.files.private_append import make_folders
from amplifier_sdk.errors import LeaseLostError, StoreError, StoreUnavailableError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import (
    Lease,
    LogEntry,
    LogName,
    SessionLog,
    SessionStore,
    StoredQuestion,
)

__all__ = ["SessionReplica", "fetch"]

_LOGS: Final[tuple[LogName, ...]] = ("journal", "transcript")
"""What a session has to have to be resumed; what watchers were shown of it stays in the store."""

_RETRY: Final = 0.25
"""Seconds before a store that did not answer is retried; longer each time, up to a tenth of the lease's period."""

_REFUSED: Final = 4
"""How many periods of a lease the store may renew it and take nothing else."""


async def fetch(store: SessionStore, session_id: str, folder: Path) -> bool:
    """Put a session of a store into the files of a folder; return whether there is one.

    What the files say of it so far is gone: the store has the session, and a machine a copy of it.
    """
    record = await store.read_record(session_id)
    if await to_thread.run_sync(folder.exists):
        await to_thread.run_sync(shutil.rmtree, folder)
    if record is None:
        return False
    logs = {log: await store.read_log(session_id, log) for log in _LOGS}
    documents = await store.read_documents(session_id)
    questions = await store.questions(session_id)
    await to_thread.run_sync(_write, folder, record, logs, documents, questions)
    return True


@attrs.define(eq=False)
class SessionReplica:
    """Brings what the files of an open session say into a store: records of the journal at once, the rest with turns.

    One that `waits` retries a store that does not answer as long as the lease cannot have ended: nobody else writes
    until then. From then on nothing is written any more, and no further step of a turn begins, since it begins in the
    journal.

    Args:
        store: where the session stands.
        lease: on the session there.
        folder: its files.
        waits: whether a store that does not answer is waited for; else the turn fails.
    """

    store: SessionStore
    lease: Lease
    folder: Path
    waits: bool = False
    _has_turn: bool = False
    _documents: Mapping[str, bytes] = attrs.field(factory=dict)
    _renewed: float = attrs.field(factory=anyio.current_time)
    _is_lost: bool = False
    _count: int | None = None
    _writing: anyio.Lock = attrs.field(factory=anyio.Lock)

    async def renew(self) -> None:
        """Keep the lease, until cancelled.

        Raises:
            LeaseLostError: it ended, or another machine has taken the session over.
        """
        while True:
            await anyio.sleep(self.lease.period / 3)
            asked = anyio.current_time()
            try:
                await self._persist(lambda: self.store.renew(self.lease))
                self._renewed = asked
            except StoreUnavailableError as error:
                # the next record of the journal is refused, where it does not come back
                message, session_id = str(error), self.lease.session_id
                report("store.lease_not_renewed", problem=message, session=session_id)

    async def append(self, records: Sequence[LogEntry]) -> None:
        """Store records of the journal.

        Raises:
            LeaseLostError: another machine has taken the session over, or the store did not answer for as long as the
                lease lasts; they are not stored, or are the last ones that are.
        """
        if not self._has_turn:
            self._has_turn = True
            # who takes the session over after this machine died knows what it is made of
            await self.store_files()
        async with self._writing:
            await self._append(records)

    async def _append(self, entries: Sequence[LogEntry]) -> None:
        """Add to the journal, once, also where the answer of the store was lost."""
        session_id = self.lease.session_id
        if self._count is None:
            await self._persist(self._read_count)
        count, is_first = self._count or 0, True

        async def add() -> None:
            nonlocal is_first
            # the step before may have been carried out, and its answer lost
            if not is_first:
                known = await self.store.read_log(session_id, "journal", after=count)
                if known.entries:
                    return
            is_first = False
            await self.store.append(self.lease, "journal", entries)

        await self._persist(add)
        self._count = count + len(entries)

    async def _read_count(self) -> None:
        known = await self.store.read_log(self.lease.session_id, "journal")
        self._count = len(known.entries)

    async def _persist(self, change: Callable[[], Awaitable[None]]) -> None:
        """Carry out what the store is asked for, again where it does not answer, while the lease lasts.

        Raises:
            LeaseLostError: the lease ended.
            StoreError: the store answers, and does not take this.
        """
        begun, pause = anyio.current_time(), _RETRY
        longest = max(_RETRY, self.lease.period / 10)
        while True:
            if self._is_lost:
                raise LeaseLostError(self.lease.session_id)
            try:
                return await change()
            except LeaseLostError:
                self._is_lost = True
                raise
            except StoreUnavailableError as error:
                if not self.waits:
                    raise
                # by this process's clock alone, from before the last renewal that was answered
                if anyio.current_time() - self._renewed >= self.lease.period:
                    self._is_lost = True
                    raise LeaseLostError(self.lease.session_id) from error
                # it answers, and so it is this that it does not take
                if self._renewed - begun >= _REFUSED * self.lease.period:
                    self.waits = False
                    message = f"The store takes no more of it: {error}"
                    raise StoreError(message) from error
                await anyio.sleep(pause)
                pause = min(2 * pause, longest)

    async def begin_anew(self) -> None:
        """Store how the turn left the session.

        Raises:
            LeaseLostError: as for `append`.
        """
        # in the order in which the files were written: the journal has the turn until the transcript does
        await self.store_files()
        journal = await to_thread.run_sync(read_entries, self.folder, "journal")
        await self._persist(lambda: self.store.replace(self.lease, "journal", journal))
        self._count = len(journal.entries)

    async def store_files(self) -> None:
        """Store what the files say by now, but for the journal.

        Raises:
            LeaseLostError: as for `append`.
        """
        await self._persist(self._store_files)

    async def _store_files(self) -> None:
        session_id = self.lease.session_id
        record, documents = await to_thread.run_sync(read_files, self.folder)
        known = await self.store.read_record(session_id)
        if record is None:
            return
        if known is None:
            said = SessionRecord.from_dict(record, subject="record")
            if said.is_unused and not self._has_turn:
                return  # nothing was said in it, and it is forgotten
            # nothing else is taken of a session that has none; what it is made of is not there yet
            begun: JSONObject = {**record, "has_composition": False}
            await self.store.write_record(self.lease, begun)
        await self._store_transcript()
        for name, content in documents.items():
            if self._documents.get(name) != content:
                await self.store.write_document(self.lease, name, content)
        self._documents = documents
        await self._store_questions()
        # last, as the files are written: whoever is killed in between leaves no record of what is not there
        if record != known:
            await self.store.write_record(self.lease, record)

    async def _store_transcript(self) -> None:
        said = await to_thread.run_sync(read_entries, self.folder, "transcript")
        known = await self.store.read_log(self.lease.session_id, "transcript")
        count = len(known.entries)
        if said.entries[:count] != known.entries or known.began is None:
            await self.store.replace(self.lease, "transcript", said)
        elif said.entries[count:]:
            await self.store.append(self.lease, "transcript", said.entries[count:])

    async def _store_questions(self) -> None:
        asked = await to_thread.run_sync(read_questions, self.folder)
        stored = await self.store.questions(self.lease.session_id)
        known = {each.question_id: each for each in stored}
        for question_id, question in asked.items():
            if question_id not in known:
                await self.store.ask(self.lease, question)
            elif question.is_void and not known[question_id].is_void:
                await self.store.void_questions(self.lease)


def _write(
    folder: Path,
    record: JSONObject,
    logs: Mapping[LogName, SessionLog],
    documents: Mapping[str, bytes],
    questions: Sequence[StoredQuestion],
) -> None:
    subject = "record of a session in the store"
    session_id = SessionRecord.from_dict(record, subject=subject).session_id
    make_folders(folder)
    for log, content in logs.items():
        if content.began is not None:
            replace_entries(folder, log, content)
    for name, document in documents.items():
        if is_document(name):  # no name in a database leads out of the folder
            write_private(folder / name, document)
    if questions:
        with changing_questions(folder) as changed:
            changed.update({each.question_id: each for each in questions})
    write_private(folder / METADATA, record_bytes(record, session_id))
