"""The sessions of a project, or of all: opened one at a time, listed, found, deleted with their children."""

from __future__ import annotations

import errno
import shutil
import stat
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import (
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from pathlib import Path
from typing import Final
from uuid import uuid4

import attrs
from anyio import CancelScope, to_thread

from amplifier.app.directories import AppDirs
from amplifier.app.store.families import Branch, family_of, grow
from amplifier.app.store.index import INDEX, SessionIndex
from amplifier.app.store.journal import FileJournal
from amplifier.app.store.leases import require_unleased
from amplifier.app.store.recorded import COMPOSITION
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.selection import find_session, outlines_in
from amplifier.app.store.stored import (
    SessionListing,
    StoredSession,
    has_history,
    read_record,
    read_sessions,
)
from amplifier.app.store.transcript import Transcript
from amplifier.app.store.writer import (
    JOURNAL,
    MADE_OF,
    METADATA,
    TRANSCRIPT,
    SessionWriter,
    write_record,
)
from amplifier_kit.files.appendlog import Durability
from amplifier_kit.files.names import folder_name
from amplifier_kit.files.private_append import make_folders
from amplifier_sdk.errors import (
    AmplifierError,
    ConfigError,
    LeaseHeldError,
)
from amplifier_sdk.stores import Lease

__all__ = ["Cleanup", "ProjectSessions"]

_DELETED: Final = "deleted"
_OWN: Final = frozenset({METADATA, MADE_OF, COMPOSITION})
"""What a session's folder holds before anything was said."""
_NOT_OURS: Final = frozenset(
    {errno.EACCES, errno.EEXIST, errno.ENOTDIR, errno.EPERM, errno.EROFS}
)
"""How the system says that a folder cannot be made here, now and later."""
_LEFT_BEHIND: Final = 60.0
"""Seconds after which a temporary file is nobody's any more."""


@attrs.frozen(kw_only=True)
class Cleanup:
    """What was deleted because it was old, and what was not because it is open: ids."""

    deleted: tuple[str, ...] = ()
    open: tuple[str, ...] = ()


@attrs.frozen
class ProjectSessions:
    """The sessions of a project, below a folder.

    Args:
        root: the folder of a project's state; sessions stand in `sessions/` below it.
    """

    root: Path

    @classmethod
    def of(cls, dirs: AppDirs) -> ProjectSessions:
        """Return the store of a project."""
        return cls(dirs.state)

    @classmethod
    def every(cls, dirs: AppDirs) -> list[ProjectSessions]:
        """Return the stores of all projects of the person."""
        projects = dirs.home / "projects"
        if projects.is_dir():
            return [cls(folder) for folder in sorted(projects.iterdir())]
        return []

    @property
    def sessions(self) -> Path:
        """The folder of the sessions."""
        return self.root / "sessions"

    def folder(self, session_id: str) -> Path:
        """Return where a session is stored; no id leads elsewhere."""
        return self.sessions / folder_name(session_id)

    @asynccontextmanager
    async def open(
        self, record: SessionRecord, *, durability: Durability = "written"
    ) -> AsyncIterator[SessionWriter]:
        """Open a session for writing; one that is not there is made, with who it is before anything else.

        A process that holds a session and ends lets go of it, however it ends: the system holds the lock.

        Args:
            record: who it is; of one that is there the stored record counts.
            durability: `written` outlives the process, `sync` also a power failure.

        Raises:
            LockedError: another process has it open; names it.
            LeaseHeldError: somebody writes it under a lease.
            ConfigError: its record is damaged or a newer version's.
            OSError: the system refuses.
        """
        folder = self.folder(record.session_id)
        await to_thread.run_sync(_prepare, folder, record)
        async with AsyncExitStack() as stack:
            journal = await FileJournal.open(folder / JOURNAL, durability)
            stack.push_async_callback(_close, journal)
            # Nobody takes the lease from here on: that needs the journal's lock.
            await to_thread.run_sync(require_unleased, folder, record.session_id)
            # The journal's lock is held: whoever had it open until now may have made or changed the record.
            stored = await to_thread.run_sync(_begin, folder, record)
            transcript = await Transcript.open(folder / TRANSCRIPT, durability)
            stack.push_async_callback(_close, transcript)
            if transcript.damage:  # perhaps nothing of it is left
                await to_thread.run_sync(_read_own, folder, record)
            yield SessionWriter(folder, stored, transcript, journal)

    def listing(self) -> SessionListing:
        """Read who the sessions are: all of them, those that another session made as well."""
        try:
            return read_sessions(sorted(self.sessions.iterdir()))
        except (FileNotFoundError, NotADirectoryError):
            return SessionListing()
        except OSError as error:
            problem = f"it cannot be read: {error.strerror or error}"
            return SessionListing(damaged=((self.sessions, problem),))

    def all(self, *, children: bool = False) -> list[StoredSession]:
        """Return the sessions, the latest first; one whose record cannot be read is left out.

        Args:
            children: those that another session made as well.
        """
        return [
            session
            for session in self.listing().sessions
            if children or session.record.parent_id is None
        ]

    def damaged(self) -> list[tuple[Path, str]]:
        """Return the folders whose records cannot be read, with what is wrong."""
        return [*self.listing().damaged]

    def session(self, session_id: str) -> StoredSession | None:
        """Return the session of a whole id; no other is read. `None` where there is none whose record can be read."""
        folder = self.folder(session_id)
        try:
            record = read_record(folder)
        except ConfigError:
            return None
        if record is None or record.session_id != session_id:
            return None
        return StoredSession(folder=folder, record=record)

    def find(self, name: str) -> StoredSession:
        """Return the session of an id, of its beginning, or of a name.

        Raises:
            ConfigError: there is none, or several, which it names; or it is damaged.
        """
        return find_session([self.sessions], name)

    def apart(self) -> ProjectSessions:
        """Return the same sessions for whoever looks for another one while one is open."""
        return self

    def latest(self) -> StoredSession | None:
        """Return the session in which something happened last, if any."""
        # Sessions of one tool call are no conversation that a person means by "the latest".
        every = (session for session in self.all() if session.record.command is None)
        return next(every, None)

    def families(self, session_ids: Sequence[str]) -> list[list[StoredSession]]:
        """Return each of some sessions with all that came of it, children before their parents.

        All records are read once, but for those of other families only in outline.
        """
        outlines = list(outlines_in([self.sessions]))
        known = set(session_ids)
        size = 0
        while size < len(known):  # once for each generation
            size = len(known)
            known |= {each.session_id for each in outlines if each.parent_id in known}
        folders = [each.folder for each in outlines if each.session_id in known]
        related = read_sessions(folders).sessions
        return [family_of(session_id, related) for session_id in session_ids]

    def delete(self, session_id: str, leases: Sequence[Lease] = ()) -> list[str]:
        """Delete a session and all that came of it, children first; return their ids.

        Args:
            session_id: the session.
            leases: those that the caller has on them.

        Raises:
            LockedError: one of them is open; nothing is deleted.
            LeaseHeldError: somebody else has the lease of one; likewise.
            OSError: the system refuses.
        """
        (doomed,) = self.families([session_id])
        return self.delete_family(doomed, leases)

    def delete_family(
        self, family: Sequence[StoredSession], leases: Sequence[Lease] = ()
    ) -> list[str]:
        """Delete the sessions of a family, as `families` returned them; return their ids.

        Raises:
            LockedError: one of them is open; nothing is deleted.
            OSError: the system refuses.
        """
        with _held(family, leases):
            self._remove(family)
        return [session.record.session_id for session in family]

    def forget_unused(self, session_id: str) -> None:
        """Delete a session in which nothing was said and of which nothing came, unless somebody named it.

        What modules wrote into its folder keeps it.

        Raises:
            LockedError: it is open.
            ConfigError: its record is damaged or a newer version's.
            OSError: the system refuses.
        """
        folder = self.folder(session_id)
        record = read_record(folder)
        if (
            record is None
            or not record.is_unused
            or not {file.name for file in folder.iterdir()} <= _OWN
        ):
            return
        (family,) = self.families([session_id])
        if len(family) == 1:
            with _held(family):
                if _are_as_listed(family):
                    self._remove(family)

    def older(self, before: float) -> list[StoredSession]:
        """Return the sessions in which, and in all that came of them, nothing has happened since; none has a name.

        Args:
            before: seconds since the epoch.
        """
        return [tree.session for tree in self._old(before)]

    def left_behind(self, before: float) -> list[Path]:
        """Return the folders of unstored sessions in which modules left something and nothing changed since.

        A folder in which something was said is a session's, also where its record is missing.

        Args:
            before: seconds since the epoch.
        """
        try:
            folders = sorted(self.sessions.iterdir())
        except OSError:
            return []
        return [
            folder
            for folder in folders
            if _is_left_behind(folder) and _latest_change(folder) < before
        ]

    def cleanup(self, before: float) -> Cleanup:
        """Delete the sessions of `older`, with all that came of them; those that are open stay, or were meanwhile.

        So are the folders of `left_behind`.

        Args:
            before: seconds since the epoch.

        Raises:
            OSError: the system refuses.
        """
        from amplifier_kit.files.locks import LockedError

        deleted: list[str] = []
        stayed: list[str] = []
        for tree in self._old(before):
            doomed = [*tree.sessions()][::-1]
            try:
                with _held(doomed):
                    if not _are_as_listed(doomed):
                        continue
                    self._remove(doomed)
            except (LockedError, LeaseHeldError):
                stayed.append(tree.session.record.session_id)
            else:
                deleted += [session.record.session_id for session in doomed]
        for folder in self.left_behind(before):
            _remove(folder, self.root / _DELETED)
            deleted.append(folder.name)
        shutil.rmtree(self.root / _DELETED, ignore_errors=True)
        return Cleanup(deleted=tuple(deleted), open=tuple(stayed))

    def _old(self, before: float) -> list[Branch]:
        def stays(session: StoredSession) -> bool:
            return session.record.latest >= before or bool(session.record.name)

        trees = grow(self.listing().sessions)
        return [tree for tree in trees if not any(map(stays, tree.sessions()))]

    def _remove(self, doomed: Iterable[StoredSession]) -> None:
        """Delete sessions that are held, each with everything in its folder."""
        folders = [session.folder for session in doomed]
        # First from the index: a process that ends in between leaves sessions that are
        # listed without it, and no row of one that is gone.
        SessionIndex(self.root / INDEX).forget([folder.name for folder in folders])
        for folder in folders:
            _remove(folder, self.root / _DELETED)


def _is_left_behind(folder: Path) -> bool:
    """Tell whether a folder has neither a session's record nor anything that was said in it."""
    is_session = (folder / METADATA).exists() or has_history(folder)
    return folder.is_dir() and not is_session


def _latest_change(folder: Path) -> float:
    """Return when anything in a folder changed last; one that cannot be read has changed just now."""
    try:
        return max(path.lstat().st_mtime for path in (folder, *folder.rglob("*")))
    except OSError:
        return time.time()


async def _close(file: FileJournal | Transcript) -> None:
    """Let go of a file, also when the caller is cancelled: a process that lives on would keep others from it."""
    with CancelScope(shield=True):
        await file.aclose()


@contextmanager
def _held(
    sessions: Sequence[StoredSession], leases: Sequence[Lease] = ()
) -> Iterator[None]:
    """Keep everybody else from sessions.

    Raises:
        LockedError: somebody has one of them open.
        LeaseHeldError: somebody has the lease of one.
    """
    from amplifier_kit.files.locks import WriterLock

    with ExitStack() as locks:
        for session in sessions:
            for name in (JOURNAL, TRANSCRIPT):
                locks.enter_context(WriterLock.take(session.folder / name))
        for session in sessions:
            require_unleased(session.folder, session.record.session_id, leases)
        yield


def _are_as_listed(sessions: Iterable[StoredSession]) -> bool:
    """Tell whether nobody had sessions open since they were listed; call it while they are held."""
    return all(read_record(session.folder) == session.record for session in sessions)


def _remove(folder: Path, limbo: Path) -> None:
    """Delete a folder: it is gone from the list at once, also when the process ends before all of it is gone."""
    limbo.mkdir(mode=0o700, exist_ok=True)
    moved = limbo / f"{folder.name}.{uuid4().hex[:8]}"
    folder.rename(moved)
    shutil.rmtree(moved)
    with suppress(OSError):  # others are being deleted
        limbo.rmdir()


def _prepare(folder: Path, record: SessionRecord) -> None:
    """Make the folder of a session, for this user alone; that of another one, or a newer version's, is not touched."""
    _read_own(folder, record)
    try:
        make_folders(folder)
    except OSError as error:
        if error.errno not in _NOT_OURS:
            raise
        remedy = (
            "set AMPLIFIER_HOME to a folder of your own, or keep nothing with --no-keep"
        )
        raise ConfigError.of(
            str(folder), f"{error.strerror}; {remedy}", subject="store of sessions"
        ) from error
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        folder.chmod(0o700)


def _read_own(folder: Path, record: SessionRecord) -> SessionRecord | None:
    """Return the record of a session as it is stored; `None` where it is not."""
    stored = read_record(folder)
    if stored is not None and stored.session_id != record.session_id:
        raise AmplifierError(
            f"The folder {str(folder)!r} is that of session {stored.session_id!r}"
        )
    return stored


def _begin(folder: Path, record: SessionRecord) -> SessionRecord:
    """Return the record of a session that nobody else writes; one that is not there is made.

    What writers that were killed left behind is removed.
    """
    for left in folder.glob(".amplifier-*.tmp"):
        with suppress(OSError):
            if time.time() - left.lstat().st_mtime > _LEFT_BEHIND:
                left.unlink()
    stored = _read_own(folder, record)
    if stored is None:
        write_record(folder, record)
    return stored or record
