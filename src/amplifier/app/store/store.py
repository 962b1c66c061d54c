"""The sessions of a project, or of all: opened one at a time, listed, found, deleted with their children."""

from __future__ import annotations

import shutil
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

import attrs
from anyio import to_thread

from amplifier.app.places import Places
from amplifier.app.store.families import family_of, grow
from amplifier.app.store.journal import FileJournal
from amplifier.app.store.kept import JOURNAL, TRANSCRIPT, KeptSession, make_folder, write_record
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.stored import StoredSession, pick, read_record
from amplifier.app.store.transcript import Transcript
from amplifier_sdk.errors import AmplifierError, ConfigError
from amplifier_sdk.kit.appendlog import Durability
from amplifier_sdk.kit.names import folder_name

__all__ = ["LOCKED", "Cleanup", "SessionStore"]

LOCKED: Final = (JOURNAL, TRANSCRIPT)
"""The files that whoever has a session open holds the locks of."""

_DELETED: Final = "deleted"
_LEFT_BEHIND: Final = 60.0
"""Seconds after which a temporary file is nobody's any more."""


@attrs.frozen(kw_only=True)
class Cleanup:
    """What was deleted because it was old, and what was not because it is open: ids."""

    deleted: tuple[str, ...] = ()
    open: tuple[str, ...] = ()


@attrs.frozen
class SessionStore:
    """The sessions of a project, below a folder.

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
        await to_thread.run_sync(partial(_begin, folder, record))
        journal = await FileJournal.open(folder / LOCKED[0], durability)
        try:
            transcript = await Transcript.open(folder / LOCKED[1], durability)
        except BaseException:
            await journal.aclose()
            raise
        try:
            # Whoever had it open until now may have changed it.
            stored = await to_thread.run_sync(_settle, folder)
            kept = KeptSession(folder, stored or record, transcript, journal)
            yield kept
        finally:
            try:
                await transcript.aclose()
            finally:
                await journal.aclose()

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
        return pick(self._read_all(), name)

    def children(self, session_id: str) -> list[StoredSession]:
        """Return the sessions that a session made."""
        return [session for session in self._read_all() if session.record.parent_id == session_id]

    def delete(self, session_id: str) -> list[str]:
        """Delete a session and all that came of it, children first; return their ids.

        Raises:
            LockedError: one of them is open; nothing is deleted.
            OSError: the system refuses.
        """
        from amplifier_sdk.kit.locks import WriterLock

        doomed = family_of(session_id, self._read_all())
        with ExitStack() as locks:
            for file in (session.folder / name for session in doomed for name in LOCKED):
                locks.callback(WriterLock.take(file).release)
            for session in doomed:
                _remove(session.folder, self.root / _DELETED)
        return [session.record.session_id for session in doomed]

    def older(self, before: float) -> list[StoredSession]:
        """Return the sessions in which, and in all that came of them, nothing has happened since; none has a name.

        Args:
            before: seconds since the epoch.
        """
        return [
            tree.session
            for tree in grow(self._read_all())
            if not any(session.record.latest >= before or session.record.name for session in tree.sessions())
        ]

    def cleanup(self, before: float) -> Cleanup:
        """Delete the sessions of `older`, with all that came of them; those that are open stay.

        Args:
            before: seconds since the epoch.

        Raises:
            OSError: the system refuses.
        """
        from amplifier_sdk.kit.locks import LockedError

        deleted: list[str] = []
        stayed: list[str] = []
        for session in self.older(before):
            try:
                deleted += self.delete(session.record.session_id)
            except LockedError:
                stayed.append(session.record.session_id)
        shutil.rmtree(self.root / _DELETED, ignore_errors=True)
        return Cleanup(deleted=tuple(deleted), open=tuple(stayed))

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


def _remove(folder: Path, limbo: Path) -> None:
    """Delete a folder: it is gone from the list at once, also when the process ends before all of it is gone."""
    limbo.mkdir(mode=0o700, exist_ok=True)
    moved = limbo / f"{folder.name}.{uuid4().hex[:8]}"
    folder.rename(moved)
    shutil.rmtree(moved)


def _settle(folder: Path) -> SessionRecord | None:
    """Remove what writers that were killed left behind, and read who the session is."""
    for left in folder.glob(".amplifier-*.tmp"):
        with suppress(OSError):
            if time.time() - left.lstat().st_mtime > _LEFT_BEHIND:
                left.unlink()
    return read_record(folder)


def _begin(folder: Path, record: SessionRecord) -> None:
    """Make the folder with who the session is; what is there stays."""
    make_folder(folder)
    stored = read_record(folder)
    if stored is None:
        write_record(folder, record)
    elif stored.session_id != record.session_id:
        raise AmplifierError(f"The folder {str(folder)!r} is that of session {stored.session_id!r}")
