"""Which logs there are: those of a project's sessions, and where a name leads."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.directories import AppDirs
from amplifier.app.store.stored import read_outline
from amplifier_kit.files.names import folder_name
from amplifier_kit.logs.records import LOG_FILE, LogRecord, decode_record
from amplifier_sdk.errors import ConfigError

__all__ = ["LogLibrary", "SessionLogFiles"]

_HEAD: Final = 65_536
"""Bytes of a log's beginning in which its session is looked for, where the session has no record."""


_TICK: Final = 2.0
"""Seconds that no clock of a file system is coarser than."""


@attrs.frozen(kw_only=True)
class SessionLogFiles:
    """The log of one session, whose earlier files stand beside it.

    Args:
        path: its file.
        session_id: the session.
        parent_id: the session that made it.
        name: what the person calls it.
    """

    path: Path
    session_id: str
    parent_id: str | None = None
    name: str | None = None

    @classmethod
    def of_file(cls, path: Path) -> SessionLogFiles:
        """Take a file for a log, wherever it stands.

        Raises:
            ConfigError: there is no such file.
        """
        if not path.is_file():
            raise ConfigError.of(str(path), "no such file", subject="choice of a log")
        first = _first_record(path)
        return cls(
            path=path,
            session_id=path.parent.name if first is None else first.session_id,
            parent_id=None if first is None else first.parent_id,
        )


@attrs.define(eq=False)
class LogLibrary:
    """The logs of a project; those of the person's other projects are found by name alone."""

    dirs: AppDirs
    _folders: dict[Path, _SessionsFolder] = attrs.field(factory=dict)

    def newest(self) -> SessionLogFiles:
        """Return the log of the project that was written last, children apart.

        Raises:
            ConfigError: there is none.
        """
        sessions = self.dirs.state / "sessions"
        folders = [sessions / name for name in _names_in(sessions)]
        written = [(_written(folder / LOG_FILE), folder) for folder in folders]
        # The latest are read first, and mostly no others.
        for _, folder in sorted((one for one in written if one[0]), reverse=True):
            log = _read(folder)
            if log is not None and log.parent_id is None:
                return log
        raise ConfigError.of(
            str(self.dirs.root),
            "no session of this project has a log; the module hooks-logging writes them",
            subject="choice of a log",
        )

    def find(self, name: str) -> SessionLogFiles:
        """Return the log of a session by its id, or by the beginning of one or its name.

        This project's come first. Of an id, no other session is read.

        Raises:
            ConfigError: there is none, or several; names them.
        """
        dirs = ([self.dirs.state], self._other_roots())
        for roots in dirs:
            # Of an id the folder's name follows: one look for each project, whatever
            # the number of sessions.
            exact = [_read(root / "sessions" / folder_name(name)) for root in roots]
            found = [log for log in exact if log is not None and log.path.is_file()]
            if found:
                return _the_only(name, found)
        for roots in dirs:
            if found := _meant(name, self._logs(roots)):
                return _the_only(name, found)
        raise ConfigError.of(
            name, "no session of this id or name has a log", subject="choice of a log"
        )

    def family(self, log: SessionLogFiles) -> list[SessionLogFiles]:
        """Return a log and those of the sessions that its session made, and so on down."""
        if log.path.name != LOG_FILE:
            return [log]
        sessions = self._sessions(log.path.parent.parent)
        # By path, so that records that name each other as parents end the walk.
        family = {log.path: log}
        waiting = [log]
        while waiting:
            made = sessions.made_by(waiting.pop(0).session_id)
            new = [each for each in made if each.path not in family]
            family.update((each.path, each) for each in new)
            waiting += new
        # A session without a log may have made one that has: it is passed through above.
        return [log, *(each for each in [*family.values()][1:] if each.path.is_file())]

    def _other_roots(self) -> Sequence[Path]:
        """Return where else sessions stand: other projects, and programs that name no folder for them."""
        projects = self.dirs.home / "projects"
        others = [projects / name for name in _names_in(projects)]
        elsewhere = [root for root in others if root != self.dirs.state]
        return [*elsewhere, self.dirs.home]

    def _logs(self, roots: Iterable[Path]) -> list[SessionLogFiles]:
        folders = (self._sessions(root / "sessions") for root in roots)
        return [log for each in folders for log in each.all() if log.path.is_file()]

    def _sessions(self, folder: Path) -> _SessionsFolder:
        sessions = self._folders.setdefault(folder, _SessionsFolder(folder))
        sessions.refresh()
        return sessions


@attrs.define(eq=False)
class _SessionsFolder:
    """The sessions of a folder, with a log or without.

    Each is read once: what is taken of it stays as it is.
    """

    path: Path
    _known: dict[str, SessionLogFiles] = attrs.field(factory=dict)
    _unknown: set[str] = attrs.field(factory=set)  # not begun yet, or none
    _made_by: dict[str | None, list[SessionLogFiles]] = attrs.field(factory=dict)
    _changed: float | None = None

    def all(self) -> Collection[SessionLogFiles]:
        """Return the sessions."""
        return self._known.values()

    def made_by(self, session_id: str) -> Sequence[SessionLogFiles]:
        """Return the sessions that another one made."""
        return self._made_by.get(session_id, ())

    def refresh(self) -> None:
        """List the folder again when it changed, and read who came.

        A change within the same tick of the file system's clock shows no other time:
        what changed just now is not relied on.
        """
        changed = _written(self.path)
        before = len(self._known)
        if changed != self._changed:
            names = _names_in(self.path)
            known = self._known
            # Who is known is not read again: at many sessions that is the time of a look.
            self._known = {name: known[name] for name in names if name in known}
            self._unknown = {name for name in names if name not in known}
            # `None` differs from every time, so that the next look lists the folder again.
            self._changed = changed if time.time() - changed > _TICK else None
        found = {name: _read(self.path / name) for name in sorted(self._unknown)}
        new = {name: log for name, log in found.items() if log is not None}
        if new or len(self._known) < before:
            self._known |= new
            self._unknown -= new.keys()
            self._made_by = {}
            for log in self._known.values():
                self._made_by.setdefault(log.parent_id, []).append(log)


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _read(folder: Path) -> SessionLogFiles | None:
    """Read whose log stands in a folder; `None` where nothing says so yet."""
    written = read_outline(folder)
    path, session_id = folder / LOG_FILE, written.get("session_id")
    if not isinstance(session_id, str):  # the log has it as well
        return SessionLogFiles.of_file(path) if path.is_file() else None
    parent_id, name = written.get("parent_id"), written.get("name")
    return SessionLogFiles(
        path=path,
        session_id=session_id,
        parent_id=parent_id if isinstance(parent_id, str) else None,
        name=name if isinstance(name, str) else None,
    )


def _first_record(path: Path) -> LogRecord | None:
    with path.open("rb") as file:
        # The first lines may be torn or damaged; any later record has the session as well.
        for line in file.read(_HEAD).splitlines():
            try:
                return decode_record(line)
            except ValueError:
                continue
    return None


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # it was deleted in between
        return 0.0


def _meant(name: str, logs: Sequence[SessionLogFiles]) -> list[SessionLogFiles]:
    folder = folder_name(name)
    exact = [
        each
        for each in logs
        if name == each.session_id or folder == each.path.parent.name
    ]
    named = [log for log in logs if log.name == name]
    begun = [log for log in logs if name and log.session_id.startswith(name)]
    return exact or named or begun


def _the_only(name: str, found: Sequence[SessionLogFiles]) -> SessionLogFiles:
    """Return the one log; of a session and its children, whose ids begin alike, the session."""
    tops = [log for log in found if log.parent_id is None]
    choice = tops if len(tops) == 1 else found
    if len(choice) == 1:
        return choice[0]
    ids = ", ".join(log.session_id for log in choice[:10])
    raise ConfigError.of(
        name, f"ambiguous; the sessions are {ids}", subject="choice of a log"
    )
