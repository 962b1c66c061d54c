"""The logs of a session as a store's entries: read, added to and replaced without opening the session.

An addition costs the same however long the log is: only where its end is torn is the file read and mended.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from amplifier.app.store.journal import EXPECTED as JOURNAL_LOG
from amplifier.app.store.journal import REMEDY
from amplifier.app.store.transcript import EXPECTED as TRANSCRIPT_LOG
from amplifier.app.store.writer import EVENTS, JOURNAL, TRANSCRIPT
from amplifier_kit.files.appendlog import (
    AppendError,
    Expected,
    LogFormatError,
    decode_line,
    encode_line,
    header_line,
    read_log,
)
from amplifier_kit.files.atomic import write_private
from amplifier_kit.files.handles import closing_handle
from amplifier_kit.files.private_append import open_private, write_whole
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.stores import LogEntry, LogName, SessionLog

__all__ = ["append_entries", "read_entries", "replace_entries"]

_LOGS: Final[Mapping[LogName, tuple[str, Expected]]] = {
    "journal": (JOURNAL, JOURNAL_LOG),
    "transcript": (TRANSCRIPT, TRANSCRIPT_LOG),
    "events": (EVENTS, Expected(holds="events", remedy=REMEDY)),
}


def read_entries(folder: Path, log: LogName, after: int = 0) -> SessionLog:
    """Return what a log of the session of a folder has behind its first entries.

    Raises:
        ConfigError: it is damaged, or no log.
        OSError: it cannot be read.
    """
    name, expected = _LOGS[log]
    file = folder / name
    if log == "events" and after:
        return _read_end(file, after)
    try:
        content = read_log(file, expected)
    except LogFormatError as error:
        raise ConfigError.of(name, str(error), subject=str(folder)) from error
    for piece in content.damage:
        if not piece.is_tail:  # which may be a line that is being written
            remedy = f"'amplifier session repair {folder.name}' moves it aside"
            problem = f"line {piece.line}: {piece.reason}; {remedy}"
            raise ConfigError.of(name, problem, subject=str(folder))
    return SessionLog(entries=content.records[after:], began=_began(file))


def _read_end(file: Path, after: int) -> SessionLog:
    """Return what a log of events has behind its first entries, and decode no others: it is followed while it grows.

    Raises:
        ConfigError: a line of the end is damaged.
        OSError: it cannot be read.
    """
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return SessionLog()
    # the first line is the header, and the last one may be in the middle of being written
    lines = data.split(b"\n", after + 1)[after + 1 :]
    *ended, _ = (lines or [b""])[0].split(b"\n")
    try:
        entries = tuple(map(decode_line, ended))
    except ValueError as error:
        raise ConfigError.of(file.name, str(error), subject=str(file)) from error
    return SessionLog(entries=entries, began=_began(file))


def append_entries(folder: Path, log: LogName, entries: Sequence[LogEntry]) -> None:
    """Add entries to a log; call it while the session is held.

    Raises:
        ValueError: the data of one has no JSON form.
        OSError: they were not stored.
    """
    name, expected = _LOGS[log]
    file = folder / name
    payload = _lines(entries)
    with closing_handle(open_private(file)) as handle:
        end = os.fstat(handle).st_size
        if end and os.pread(handle, 1, end - 1) != b"\n":
            end = _mend(file, handle)
        if not end:
            payload = _header(expected, time.time()) + payload
        try:
            write_whole(handle, payload)
        except OSError as error:
            os.ftruncate(handle, end)  # all of them or none
            raise AppendError(error, file, len(payload)) from error


def replace_entries(folder: Path, log: LogName, content: SessionLog) -> None:
    """Put other entries in the place of all that a log has; call it while the session is held.

    Raises:
        ValueError: the data of one has no JSON form.
        OSError: they were not stored; the old ones stay.
    """
    name, expected = _LOGS[log]
    began = time.time() if content.began is None else content.began
    write_private(folder / name, _header(expected, began) + _lines(content.entries))


def _mend(file: Path, handle: int) -> int:
    """End the last line, or cut it off where its writer ended in the middle of it; return the new length."""
    data = file.read_bytes()
    begin = data.rfind(b"\n") + 1
    try:
        decode_line(data[begin:])
    except ValueError:
        os.ftruncate(handle, begin)
        return begin
    write_whole(handle, b"\n")
    return len(data) + 1


def _began(file: Path) -> float | None:
    """Return when a log was begun; `None` where it is not there, or does not say."""
    try:
        with file.open("rb") as stream:
            return decode_line(stream.readline().removesuffix(b"\n")).at
    except (FileNotFoundError, ValueError):
        return None


def _header(expected: Expected, began: float) -> bytes:
    return header_line(expected.holds, expected.version, began) + b"\n"


def _lines(entries: Sequence[LogEntry]) -> bytes:
    return b"".join(encode_line(entry) + b"\n" for entry in entries)
