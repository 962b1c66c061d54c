"""Which logs there are: those of a project's sessions, and where a name leads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.directories import Places
from amplifier.app.store.stored import read_record
from amplifier_kit.files.names import folder_name
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.logs import LOG_FILE, LogRecord, decode_record

__all__ = ["LogLibrary", "SessionLog"]

_HEAD: Final = 65_536
"""Bytes of a log's beginning in which its session is looked for, where the session has no record."""


@attrs.frozen(kw_only=True)
class SessionLog:
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
    def of_file(cls, path: Path) -> SessionLog:
        """Take a file for a log, wherever it stands.

        Raises:
            ConfigError: there is no such file.
        """
        if not path.is_file():
            raise ConfigError(
                [Problem(str(path), "no such file")], subject="choice of a log"
            )
        first = _first_record(path)
        return cls(
            path=path,
            session_id=path.parent.name if first is None else first.session_id,
            parent_id=None if first is None else first.parent_id,
        )


@attrs.define(eq=False)
class LogLibrary:
    """The logs of a project; those of the person's other projects are found by name alone."""

    places: Places
    _known: dict[Path, SessionLog] = attrs.field(factory=dict)

    def newest(self) -> SessionLog:
        """Return the log of the project that was written last, children apart.

        Raises:
            ConfigError: there is none.
        """
        logs = [log for log in self._logs(self.places.state) if log.parent_id is None]
        if not logs:
            problem = Problem(
                str(self.places.root),
                "no session of this project has a log; the module hooks-logging writes them",
            )
            raise ConfigError([problem], subject="choice of a log")
        return max(logs, key=lambda log: _written(log.path))

    def find(self, name: str) -> SessionLog:
        """Return the log of a session by its id, the beginning of one, or its name; this project's come first.

        Raises:
            ConfigError: there is none, or several; names them.
        """
        for roots in ([self.places.state], self._other_roots()):
            logs = [log for root in roots for log in self._logs(root)]
            if found := _meant(name, logs):
                return _the_only(name, found)
        raise ConfigError(
            [Problem(name, "no session of this id or name has a log")],
            subject="choice of a log",
        )

    def family(self, log: SessionLog) -> list[SessionLog]:
        """Return a log and those of the sessions that its session made, and so on down."""
        made_by: dict[str | None, list[SessionLog]] = {}
        for other in (
            self._logs(log.path.parent.parent.parent)
            if log.path.name == LOG_FILE
            else ()
        ):
            if other.path != log.path:
                made_by.setdefault(other.parent_id, []).append(other)
        family = [log]
        for member in family:  # grows while it is gone through
            family += made_by.pop(member.session_id, [])
        return family

    def _other_roots(self) -> Sequence[Path]:
        """Return where else sessions stand: other projects, and programs that name no folder for them."""
        projects = self.places.home / "projects"
        if projects.is_dir():
            others = sorted(projects.iterdir())
        else:
            others = []
        return [
            *(root for root in others if root != self.places.state),
            self.places.home,
        ]

    def _logs(self, root: Path) -> Iterator[SessionLog]:
        sessions = root / "sessions"
        for folder in sorted(sessions.iterdir()) if sessions.is_dir() else []:
            path = folder / LOG_FILE
            if path not in self._known and path.is_file():
                self._known[path] = _read(path)
            if path in self._known:
                yield self._known[path]


def _read(path: Path) -> SessionLog:
    try:
        record = read_record(path.parent)
    except ConfigError:  # the log has it as well
        record = None
    if record is None:
        return SessionLog.of_file(path)
    return SessionLog(
        path=path,
        session_id=record.session_id,
        parent_id=record.parent_id,
        name=record.name,
    )


def _first_record(path: Path) -> LogRecord | None:
    with path.open("rb") as file:
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


def _meant(name: str, logs: Sequence[SessionLog]) -> list[SessionLog]:
    folder = folder_name(name)
    return (
        [
            log
            for log in logs
            if log.session_id == name or log.path.parent.name == folder
        ]
        or [log for log in logs if log.name == name]
        or [log for log in logs if name and log.session_id.startswith(name)]
    )


def _the_only(name: str, found: Sequence[SessionLog]) -> SessionLog:
    """Return the one log; of a session and its children, whose ids begin alike, the session."""
    tops = [log for log in found if log.parent_id is None]
    choice = tops if len(tops) == 1 else found
    if len(choice) == 1:
        return choice[0]
    ids = ", ".join(log.session_id for log in choice[:10])
    raise ConfigError(
        [Problem(name, f"ambiguous; the sessions are {ids}")], subject="choice of a log"
    )
