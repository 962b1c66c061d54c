"""A session on disk, as it is listed: its folder and its record."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.store.records import (
    CHECKSUM,
    NewerRecordError,
    SessionRecord,
    is_intact,
)
from amplifier.app.store.writer import JOURNAL, METADATA, TRANSCRIPT
from amplifier_kit.files.documents import MAX_BYTES, read_document
from amplifier_kit.files.names import folder_name
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject

__all__ = [
    "MAX_HEADER",
    "SessionListing",
    "StoredSession",
    "has_history",
    "read_bytes",
    "read_metadata",
    "read_outline",
    "read_record",
    "read_sessions",
]

MAX_HEADER: Final = 250
"""How many bytes a log's header has at most."""


@attrs.frozen(kw_only=True)
class StoredSession:
    """A session on disk: its folder and its record."""

    folder: Path
    record: SessionRecord


@attrs.frozen(kw_only=True)
class SessionListing:
    """The sessions that folders hold.

    Args:
        sessions: those whose records can be read, the latest first.
        damaged: the folders of the others, with what is wrong.
    """

    sessions: tuple[StoredSession, ...] = ()
    damaged: tuple[tuple[Path, str], ...] = ()


def read_sessions(folders: Iterable[Path]) -> SessionListing:
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
    return SessionListing(sessions=tuple(sessions), damaged=tuple(damaged))


def read_record(folder: Path) -> SessionRecord | None:
    """Return who the session of a folder is; `None` where the folder is none of a session.

    Raises:
        ConfigError: as `read_metadata`, or what was said in its turns is gone.
    """
    record = read_metadata(folder)
    if record is None or not record.turn_count:
        return record
    if _has_records(folder / TRANSCRIPT, are_others_counted=True):
        return record
    # Resumed as if nothing had been said, it would overwrite what may yet be found.
    lost = f"the file is missing or empty; turns that were stored: {record.turn_count}"
    remedy = (
        f"put it back, or 'amplifier session repair {folder.name}' empties the session"
    )
    raise ConfigError.of(TRANSCRIPT, f"{lost}; {remedy}", subject=_subject(folder))


def read_metadata(folder: Path) -> SessionRecord | None:
    """Return what the record of a folder says, whatever became of the other files.

    Raises:
        ConfigError: its record is damaged or a newer version's, or it is missing beside what was said.
    """
    try:
        written = read_document(folder / METADATA)
    except ConfigError as error:
        if isinstance(error.__cause__, (FileNotFoundError, NotADirectoryError)):
            if not has_history(folder):
                return None
            raise _unreadable(folder, "the file is missing") from error
        raise _unreadable(folder, error.in_one_line) from error
    try:
        record = SessionRecord.from_dict(written, subject=_subject(folder))
    except NewerRecordError:
        raise
    except ConfigError as error:
        raise _unreadable(folder, error.in_one_line) from error
    # After the version: how a newer one computes its checksum is not known here.
    if not is_intact(written):
        edited = "if you edited it, delete that key and the comma before it"
        raise _unreadable(folder, f"its {CHECKSUM!r} does not fit; {edited}")
    if folder_name(record.session_id) != folder.name:
        raise _unreadable(folder, f"it is that of session {record.session_id!r:.200}")
    return record


def read_outline(folder: Path) -> JSONObject:
    """Return the record of a folder as it is written, unchecked; nothing where it cannot be read.

    It takes a tenth of the time that `read_record` does.
    """
    data = read_bytes(f"{folder}/{METADATA}", MAX_BYTES)
    try:
        written: object = json.loads(data or b"")
    except (ValueError, RecursionError):
        return {}
    return written if isinstance(written, dict) else {}


def read_bytes(file: str, max_bytes: int) -> bytes | None:
    """Return what a file holds; `None` where it cannot be read, or has more bytes.

    It is for what is done to every session of a store: it takes a third of the time of a stream on a path object.
    """
    try:
        # A pipe without a writer would keep `open` for ever.
        opened = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            status = os.fstat(opened)
            if not stat.S_ISREG(status.st_mode) or status.st_size > max_bytes:
                return None
            return os.read(opened, status.st_size)
        finally:
            os.close(opened)
    except (OSError, ValueError):
        return None


def has_history(folder: Path) -> bool:
    """Tell whether the transcript or the journal of a folder holds more than its header.

    One that cannot be read may hold something.
    """
    return any(_has_records(folder / name) for name in (TRANSCRIPT, JOURNAL))


def _unreadable(folder: Path, problem: str) -> ConfigError:
    remedy = f"'amplifier session repair {folder.name}' renews it"
    return ConfigError.of(METADATA, f"{problem}; {remedy}", subject=_subject(folder))


def _subject(folder: Path) -> str:
    return f"session {str(folder)!r}"


def _has_records(file: Path, *, are_others_counted: bool = False) -> bool:
    """Tell whether a log holds more than its header, or something else where that counts."""
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            return False
        if status.st_size > MAX_HEADER:
            return True
        with file.open("rb") as stream:
            head = stream.readline()
            is_other = are_others_counted and head[:1] not in (b"", b"{")
            return bool(stream.read(1)) or is_other
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
