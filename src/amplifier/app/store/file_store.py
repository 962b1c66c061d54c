"""The sessions of a project behind the protocol of stores, written step by step and never open in between."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import anyio
import attrs
from anyio import to_thread

from amplifier.app.store.file_quotas import QUOTAS, FileQuotas
from amplifier.app.store.leases import LEASE, LeaseState, holding, take_lease
from amplifier.app.store.log_files import (
    append_entries,
    read_entries,
    replace_entries,
)
from amplifier.app.store.records import CHECKSUM, SessionRecord, record_bytes
from amplifier.app.store.search import search_sessions
from amplifier.app.store.selection import outlines_in
from amplifier.app.store.states import holder_of
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored import read_metadata
from amplifier.app.store.stored_questions import (
    QUESTIONS,
    changing_questions,
    read_questions,
)
from amplifier.app.store.writer import EVENTS, JOURNAL, METADATA, TRANSCRIPT
from amplifier_kit.files.atomic import write_private
from amplifier_kit.files.documents import read_document
from amplifier_sdk.errors import (
    LeaseHeldError,
    LeaseLostError,
    QuestionClosedError,
    StoreError,
    StoreUnavailableError,
)
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import (
    Lease,
    LogEntry,
    LogName,
    SessionLog,
    StoredQuestion,
)

__all__ = ["FileSessionStore", "is_document", "read_files"]

P = ParamSpec("P")
T = TypeVar("T")

_POLL: Final = 0.05
"""Seconds after which a session that somebody waits for is checked again."""
_OTHERS: Final = frozenset({METADATA, JOURNAL, TRANSCRIPT, EVENTS, LEASE, QUESTIONS})
"""The files of a session that are none of its documents."""


@attrs.frozen
class FileSessionStore:
    """The sessions of a project as `amplifier_sdk.stores.SessionStore`.

    What a process has open with `ProjectSessions.open` it alone writes, and what is leased here no process opens.

    Args:
        files: the sessions.
    """

    files: ProjectSessions

    @property
    def quotas(self) -> FileQuotas:
        """The accounts beside the sessions, as `amplifier_sdk.MeteredStore` has them."""
        return FileQuotas(self.files.root / QUOTAS)

    async def acquire(self, session_id: str, *, owner: str, period: float) -> Lease:
        """Take the lease on a session; see the protocol."""
        folder = self.files.folder(session_id)
        return await _run(take_lease, folder, session_id, owner, period)

    async def renew(self, lease: Lease) -> None:
        """Have a lease end a whole period from now."""
        await self._write(lease, partial(_renew, lease))

    async def release(self, lease: Lease) -> None:
        """End a lease; one that has ended is left as it is."""
        try:
            await self._write(lease, partial(_release, lease))
        except LeaseLostError:
            return

    async def holder(self, session_id: str) -> str | None:
        """Return who may write a session at the moment, or has it open; `None` for nobody."""
        return await _run(holder_of, self.files.folder(session_id))

    async def write_record(self, lease: Lease, record: JSONObject) -> None:
        """Write who a session is."""
        await self._write(lease, partial(_write_record, lease, record))

    async def append(
        self, lease: Lease, log: LogName, entries: Sequence[LogEntry]
    ) -> None:
        """Add entries to the end of a log, all of them or none."""
        await self._change(lease, partial(append_entries, log=log, entries=entries))

    async def replace(self, lease: Lease, log: LogName, content: SessionLog) -> None:
        """Put other entries in the place of all that a log has, at once."""
        await self._change(lease, partial(replace_entries, log=log, content=content))

    async def write_document(self, lease: Lease, name: str, content: bytes) -> None:
        """Write a file of a session's own, all at once."""
        await self._change(lease, partial(_write_document, name, content))

    async def ask(self, lease: Lease, question: StoredQuestion) -> None:
        """Store a question; the same one again changes nothing."""
        if question.session_id != lease.session_id:
            raise StoreError(
                f"Question {question.question_id!r} is of session"
                f" {question.session_id!r}; the lease is on {lease.session_id!r}"
            )
        taken = await _run(self._question_folder, question.question_id)
        if taken not in (None, self.files.folder(lease.session_id)):
            raise _taken(question)
        await self._change(lease, partial(_ask, question))

    async def void_questions(self, lease: Lease) -> None:
        """Let the questions of a session that nobody answered take no answer any more."""
        await self._change(lease, _void)

    async def forget_questions(
        self, lease: Lease, question_ids: Collection[str]
    ) -> None:
        """Delete questions of a session, answered or not; ids of others are passed over."""
        await self._change(lease, partial(_forget, question_ids))

    async def answer(self, question_id: str, answer: str, *, by: str) -> StoredQuestion:
        """Answer a question, once; the same answer again is no error and changes nothing."""
        folder = await _run(self._question_folder, question_id)
        if folder is None:
            raise QuestionClosedError(f"There is no question {question_id!r}")
        return await _run(_answer, folder, question_id, answer, by)

    async def questions(
        self, session_id: str | None = None
    ) -> tuple[StoredQuestion, ...]:
        """Return the questions of a session, or of all, in the order of their ids."""
        return await _run(self._questions, session_id)

    async def read_record(self, session_id: str) -> JSONObject | None:
        """Return who a session is; `None` where there is none."""
        return await _run(_read_record, self.files.folder(session_id))

    async def read_log(
        self, session_id: str, log: LogName, *, after: int = 0
    ) -> SessionLog:
        """Return what a log has behind its first `after` entries."""
        return await _run(read_entries, self.files.folder(session_id), log, after)

    async def read_documents(self, session_id: str) -> Mapping[str, bytes]:
        """Return the documents of a session by name; a folder or a link in its place raises a `StoreError`."""
        return await _run(_read_documents, self.files.folder(session_id))

    async def list_sessions(
        self, *, limit: int, children: bool = False
    ) -> tuple[JSONObject, ...]:
        """Return the records of sessions, those in which something happened last first."""
        return await _run(self._list, limit, children)

    async def children(self, session_id: str) -> tuple[str, ...]:
        """Return the ids of the sessions that a session made, the first one first."""
        return await _run(self._children, session_id)

    async def search(self, text: str, *, limit: int) -> tuple[str, ...]:
        """Return the ids of the sessions in which a text stands, the latest first."""
        return await _run(self._search, text, limit)

    async def delete(
        self, session_id: str, *, leases: Sequence[Lease] = ()
    ) -> tuple[str, ...]:
        """Delete a session and all that came of it; return the ids, children before their parents."""
        return await _run(self._delete, session_id, leases)

    async def cleanup(self, before: float) -> tuple[str, ...]:
        """Delete the sessions in which, and in all that came of them, nothing has happened since."""
        return (await _run(self.files.cleanup, before)).deleted

    async def wait_for_change(
        self, session_id: str, seen: str, *, max_wait: float
    ) -> str:
        """Wait until a session is no more as it was, and return a mark of how it is now."""
        folder = self.files.folder(session_id)
        mark = await _run(_mark, folder)
        with anyio.move_on_after(max_wait):
            # Files report no change in a way that all systems have in common.
            while mark == seen:
                await anyio.sleep(_POLL)
                mark = await _run(_mark, folder)
        return mark

    async def aclose(self) -> None:
        """Close the store; files need nothing of that."""

    def _folders(self) -> list[Path]:
        return [outline.folder for outline in outlines_in([self.files.sessions])]

    def _question_folder(self, question_id: str) -> Path | None:
        """Return the folder of the session that asked; questions are few, and sessions that ask as well."""
        for folder in self._folders():
            if question_id in read_questions(folder):
                return folder
        return None

    def _questions(self, session_id: str | None) -> tuple[StoredQuestion, ...]:
        folders = self._folders()
        if session_id is not None:
            folders = [self.files.folder(session_id)]
        found = [each for folder in folders for each in read_questions(folder).values()]
        return tuple(sorted(found, key=lambda question: question.question_id))

    def _list(self, limit: int, children: bool) -> tuple[JSONObject, ...]:
        found = self.files.all(children=children)[:limit]
        records = (_read_record(session.folder) for session in found)
        return tuple(record for record in records if record is not None)

    def _children(self, session_id: str) -> tuple[str, ...]:
        made = [
            session.record
            for session in self.files.all(children=True)
            if session.record.parent_id == session_id
        ]
        made.sort(key=lambda record: record.created)
        return tuple(record.session_id for record in made)

    def _search(self, text: str, limit: int) -> tuple[str, ...]:
        sessions = self.files.all(children=True)
        found = search_sessions(sessions, text, limit=limit)
        return tuple(hit.session.record.session_id for hit in found.hits)

    def _delete(self, session_id: str, leases: Sequence[Lease]) -> tuple[str, ...]:
        from amplifier_kit.files.locks import LockedError

        try:
            return tuple(self.files.delete(session_id, leases))
        except LockedError as error:
            owner = str(error.owner or "a process")
            raise LeaseHeldError(session_id, owner) from error

    async def _change(self, lease: Lease, function: Callable[[Path], None]) -> None:
        """Write something of a session that has a record, while its lease holds."""

        def change(folder: Path) -> None:
            # What was said without a record is a damaged session.
            if not (folder / METADATA).exists():
                problem = "has no record yet; write that first"
                raise StoreError(f"Session {lease.session_id!r} {problem}")
            function(folder)

        await self._write(lease, change)

    async def _write(self, lease: Lease, function: Callable[[Path], None]) -> None:
        """Write something of a session while its lease holds."""
        folder = self.files.folder(lease.session_id)

        def write() -> None:
            with holding(folder, lease):
                function(folder)

        await _run(write)


async def _run(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await to_thread.run_sync(partial(function, *args, **kwargs))


def _renew(lease: Lease, folder: Path) -> None:
    state = LeaseState.read(folder)
    attrs.evolve(state, expires=time.time() + lease.period).write(folder)


def _release(lease: Lease, folder: Path) -> None:
    attrs.evolve(LeaseState.read(folder), owner=lease.owner, expires=0.0).write(folder)


def _write_record(lease: Lease, record: JSONObject, folder: Path) -> None:
    subject = f"record of session {lease.session_id!r}"
    session_id = SessionRecord.from_dict(record, subject=subject).session_id
    if session_id != lease.session_id:
        raise StoreError(f"The {subject} is that of {session_id!r}")
    write_private(folder / METADATA, record_bytes(record, session_id))


def _read_record(folder: Path) -> JSONObject | None:
    if read_metadata(folder) is None:
        return None
    data = read_document(folder / METADATA)
    # as it was written: a record that is read and written again may get further keys
    items = data.items() if isinstance(data, dict) else ()
    return {key: value for key, value in items if key != CHECKSUM}


def _write_document(name: str, content: bytes, folder: Path) -> None:
    if not is_document(name):
        raise StoreError(f"{name!r:.80} is no name of a document")
    write_private(folder / name, content)


def _read_documents(folder: Path) -> Mapping[str, bytes]:
    try:
        files = sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    documents: dict[str, bytes] = {}
    for file in files:
        if file.name in _OTHERS or file.name.startswith(".") or file.suffix == ".lock":
            continue
        # Whoever takes the session elsewhere would leave it behind unasked.
        if not is_document(file.name) or file.is_symlink() or not file.is_file():
            raise StoreError(f"{str(file)!r} is no file that a store takes along")
        documents[file.name] = file.read_bytes()
    return documents


def read_files(folder: Path) -> tuple[JSONObject | None, Mapping[str, bytes]]:
    """Return the record and the documents of a folder; folders and links among them are left out."""
    try:
        names = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return None, {}
    files = [folder / name for name in names if is_document(name)]
    documents = {
        file.name: file.read_bytes()
        for file in files
        if file.is_file() and not file.is_symlink()
    }
    return _read_record(folder), documents


def is_document(name: str) -> bool:
    """Tell whether a name is one of a file that the session has besides its own, and leads nowhere else."""
    if name in _OTHERS or not name or name.startswith("."):
        return False
    return name.isprintable() and not name.endswith(".lock") and "/" not in name


def _taken(question: StoredQuestion) -> StoreError:
    return StoreError(f"Another question has the id {question.question_id!r}")


def _ask(question: StoredQuestion, folder: Path) -> None:
    with changing_questions(folder) as questions:
        known = questions.setdefault(question.question_id, question)
        if known.asked != question.asked:
            raise _taken(question)


def _void(folder: Path) -> None:
    with changing_questions(folder) as questions:
        for key, question in questions.items():
            if question.answer is None:
                questions[key] = attrs.evolve(question, is_void=True)


def _forget(question_ids: Collection[str], folder: Path) -> None:
    with changing_questions(folder) as questions:
        for question_id in question_ids:
            questions.pop(question_id, None)


def _answer(folder: Path, question_id: str, answer: str, by: str) -> StoredQuestion:
    from amplifier_kit.files.locks import LockedError

    try:
        with changing_questions(folder) as questions:
            question, now = questions[question_id], time.time()
            answered = question.with_answer(answer, by=by, now=now)
            questions[question_id] = answered
    except LockedError as error:
        raise StoreUnavailableError(str(error)) from error
    return answered


def _mark(folder: Path) -> str:
    """Return what changes whenever a file of the session does that its writers write."""
    marks: list[str] = []
    for name in (METADATA, JOURNAL, TRANSCRIPT, EVENTS, QUESTIONS):
        try:
            status = (folder / name).stat()
        except (FileNotFoundError, NotADirectoryError):
            marks.append("-")
        else:
            marks.append(f"{status.st_ino}.{status.st_mtime_ns}.{status.st_size}")
    return " ".join(marks)
