"""The sessions of a project, or of all: opened one at a time, listed, found, deleted with their children."""

from __future__ import annotations

import shutil
import stat
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import attrs
from anyio import to_thread

from amplifier.app.places import Places
from amplifier.app.store.journal import FileJournal
from amplifier.app.store.kept import JOURNAL, METADATA, TRANSCRIPT, KeptSession, write_record
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.transcript import Transcript
from amplifier_sdk.errors import AmplifierError, ConfigError, Problem
from amplifier_sdk.kit.appendlog import Durability
from amplifier_sdk.kit.documents import read_document
from amplifier_sdk.kit.names import folder_name

__all__ = ["SessionStore", "StoredSession", "read_record"]

_LOCKED: Final = (JOURNAL, TRANSCRIPT)


@attrs.frozen(kw_only=True)
class StoredSession:
    """A session on disk: its folder and its record."""

    folder: Path
    record: SessionRecord


@attrs.frozen
class SessionStore:
    """The sessions below a folder.

    Args:
        root: the folder of a project's state; sessions stand in `sessions/` below it.
    """

    root: Path

    @classmethod
    def of(cls, places: Places) -> SessionStore:
        """Return the store of a project."""
        return cls(places.state)

    @classmethod
    def every(cls, places: Places) -> list[SessionStore]:
        """Return the stores of all projects of the person."""
        projects = places.home / "projects"
        return [cls(folder) for folder in sorted(projects.iterdir())] if projects.is_dir() else []

    @property
    def sessions(self) -> Path:
        """The folder of the sessions."""
        return self.root / "sessions"

    def folder(self, session_id: str) -> Path:
        """Return where a session is kept; no id leads elsewhere."""
        return self.sessions / folder_name(session_id)

    @asynccontextmanager
    async def open(self, record: SessionRecord, *, durability: Durability = "written") -> AsyncIterator[KeptSession]:
        """Open a session for writing; one that is not there is made, with who it is before anything else.

        A process that holds a session and ends lets go of it, however it ends: the system holds the lock.

        Args:
            record: who it is; of one that is there the stored record counts.
            durability: `written` outlives the process, `sync` also a power failure.

        Raises:
            LockedError: another process has it open; names it.
            ConfigError: its record is damaged or a newer version's.
            OSError: the system refuses.
        """
        folder = self.folder(record.session_id)
        record = await to_thread.run_sync(partial(_begin, folder, record))
        journal = await FileJournal.open(folder / _LOCKED[0], durability)
        try:
            transcript = await Transcript.open(folder / _LOCKED[1], durability)
        except BaseException:
            await journal.aclose()
            raise
        kept = KeptSession(folder, record, transcript, journal)
        try:
            yield kept
        finally:
            await kept.aclose()

    def all(self, *, children: bool = False) -> list[StoredSession]:
        """Return the sessions, the latest first; one whose record cannot be read is left out.

        Args:
            children: those that another session made as well.
        """
        found = [session for session in self._read_all() if children or session.record.parent_id is None]
        return sorted(found, key=lambda session: session.record.latest, reverse=True)

    def damaged(self) -> list[tuple[Path, str]]:
        """Return the folders whose records cannot be read, with what is wrong."""
        found = []
        for folder in self._folders():
            try:
                read_record(folder)
            except ConfigError as error:
                found.append((folder, str(error)))
        return found

    def find(self, name: str) -> StoredSession:
        """Return the session of an id, of its beginning, or of a name.

        Raises:
            ConfigError: there is none, or several; names them.
        """
        every = sorted(self._read_all(), key=lambda session: session.record.latest, reverse=True)
        exact = [session for session in every if session.record.session_id == name]
        named = [session for session in every if session.record.name == name]
        begun = [session for session in every if name and session.record.session_id.startswith(name)]
        for found in (exact, named, begun):
            if len(found) == 1:
                return found[0]
            if found:
                ids = ", ".join(session.record.session_id for session in found[:10])
                raise ConfigError([Problem(name, f"several sessions are meant: {ids}")], subject="choice of a session")
        raise ConfigError(
            [Problem(name, "no such session; 'amplifier session list' shows them")], subject="choice of a session"
        )

    def children(self, session_id: str) -> list[StoredSession]:
        """Return the sessions that a session made."""
        return [session for session in self._read_all() if session.record.parent_id == session_id]

    def delete(self, session_id: str) -> list[str]:
        """Delete a session and those that it made, children first; return their ids.

        Raises:
            LockedError: one of them is open; nothing is deleted.
            OSError: the system refuses.
        """
        from amplifier_sdk.kit.locks import WriterLock

        doomed = self._with_children(session_id)
        with ExitStack() as locks:
            for file in (session.folder / name for session in doomed for name in _LOCKED):
                locks.callback(WriterLock.take(file).release)
            for session in doomed:
                shutil.rmtree(session.folder)
        return [session.record.session_id for session in doomed]

    def _with_children(self, session_id: str) -> list[StoredSession]:
        family = [
            session for child in self.children(session_id) for session in self._with_children(child.record.session_id)
        ]
        return [*family, *(session for session in self._read_all() if session.record.session_id == session_id)]

    def _read_all(self) -> Iterator[StoredSession]:
        for folder in self._folders():
            try:
                record = read_record(folder)
            except ConfigError:
                continue
            if record is not None:
                yield StoredSession(folder=folder, record=record)

    def _folders(self) -> Sequence[Path]:
        return sorted(self.sessions.iterdir()) if self.sessions.is_dir() else []


def read_record(folder: Path) -> SessionRecord | None:
    """Return who the session of a folder is; `None` where the folder is none of a session.

    Raises:
        ConfigError: its record is damaged or a newer version's.
    """
    file = folder / METADATA
    if not file.is_file():
        return None
    return SessionRecord.from_dict(read_document(file), subject=f"session {str(folder)!r}")


def _begin(folder: Path, record: SessionRecord) -> SessionRecord:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        folder.chmod(0o700)
    stored = read_record(folder)
    if stored is None:
        write_record(folder, record)
        return record
    if stored.session_id != record.session_id:
        raise AmplifierError(f"The folder {str(folder)!r} is that of session {stored.session_id!r}")
    return stored
