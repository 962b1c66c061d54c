"""A session on disk, as it is listed: its folder and its record."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import Path

import attrs

from amplifier.app.store.records import SessionRecord
from amplifier.app.store.writer import JOURNAL, METADATA, TRANSCRIPT
from amplifier_kit.files.documents import read_document
from amplifier_sdk.errors import ConfigError, Problem

__all__ = [
    "Listing",
    "StoredSession",
    "has_history",
    "pick",
    "read_record",
    "read_sessions",
]


@attrs.frozen(kw_only=True)
class StoredSession:
    """A session on disk: its folder and its record."""

    folder: Path
    record: SessionRecord


@attrs.frozen(kw_only=True)
class Listing:
    """The sessions that folders hold.

    Args:
        sessions: those whose records can be read, the latest first.
        damaged: the folders of the others, with what is wrong.
    """

    sessions: tuple[StoredSession, ...] = ()
    damaged: tuple[tuple[Path, str], ...] = ()


def read_sessions(folders: Iterable[Path]) -> Listing:
    """Read who the sessions of folders are; a folder of none is left out."""
    sessions: list[StoredSession] = []
    damaged: list[tuple[Path, str]] = []
    for folder in folders:
        try:
            record = read_record(folder)
        except ConfigError as error:
            damaged.append((folder, str(error)))
            continue
        if record is not None:
            sessions.append(StoredSession(folder=folder, record=record))
    sessions.sort(key=lambda session: session.record.latest, reverse=True)
    return Listing(sessions=tuple(sessions), damaged=tuple(damaged))


def pick(sessions: Iterable[StoredSession], name: str) -> StoredSession:
    """Return the session of an id, of a name, or of the beginning of an id.

    Raises:
        ConfigError: there is none, or several; names them.
    """
    every = sorted(sessions, key=lambda session: session.record.latest, reverse=True)
    exact = [session for session in every if session.record.session_id == name]
    named = [session for session in every if session.record.name == name]
    begun = [
        session
        for session in every
        if name and session.record.session_id.startswith(name)
    ]
    for found in (exact, named, begun):
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(session.record.session_id for session in found[:10])
            raise ConfigError(
                [Problem(name, f"ambiguous; the sessions are {ids}")],
                subject="choice of a session",
            )
    problem = Problem(name, "no such session; 'amplifier session list' shows them")
    raise ConfigError([problem], subject="choice of a session")


def read_record(folder: Path) -> SessionRecord | None:
    """Return who the session of a folder is; `None` where the folder is none of a session.

    Raises:
        ConfigError: its record is damaged or a newer version's, or it is missing beside what was said.
    """
    subject = f"session {str(folder)!r}"
    try:
        written = read_document(folder / METADATA)
    except ConfigError as error:
        if not isinstance(error.__cause__, (FileNotFoundError, NotADirectoryError)):
            raise
        if not has_history(folder):
            return None
        remedy = (
            f"the file is missing; 'amplifier session repair {folder.name}' renews it"
        )
        raise ConfigError([Problem(METADATA, remedy)], subject=subject) from error
    return SessionRecord.from_dict(written, subject=subject)


def has_history(folder: Path) -> bool:
    """Tell whether the transcript or the journal of a folder holds more than its header.

    One that cannot be read may hold something.
    """
    return any(_has_records(folder / name) for name in (TRANSCRIPT, JOURNAL))


def _has_records(file: Path) -> bool:
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            return False
        with file.open("rb") as stream:
            stream.readline()
            return bool(stream.read(1))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
