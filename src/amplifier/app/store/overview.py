"""Which sessions stores hold, without reading each record: in order, with those whose records are damaged."""

from __future__ import annotations

import json
import os
import stat
import time
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

from amplifier.app.store.index import (
    INDEX,
    MIN_SESSIONS,
    IndexRow,
    SessionIndex,
    signature_of,
)
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.stored import (
    MAX_HEADER,
    StoredSession,
    read_bytes,
    read_record,
)
from amplifier.app.store.writer import METADATA, TRANSCRIPT
from amplifier_kit.files.documents import MAX_BYTES
from amplifier_sdk.errors import ConfigError

__all__ = ["LatestSessions", "SessionOverview", "latest_rows", "latest_sessions"]


@attrs.frozen
class SessionOverview:
    """The sessions of a folder, as rows in the order of their folders' names.

    Args:
        root: the folder.
        rows: those whose records can be read.
        damaged: the folders of the others, with what is wrong.
    """

    root: Path
    rows: Sequence[IndexRow] = ()
    damaged: tuple[tuple[Path, str], ...] = ()

    @classmethod
    def of(
        cls, root: Path, *, verify: bool = False, transcripts: bool = True
    ) -> SessionOverview:
        """Look at every session of a folder, and read those that changed since they were last read.

        Args:
            root: the folder.
            verify: compare the bytes of the others as well: those that a disk loses change no time.
            transcripts: notice where the transcript alone is lost; who reads each of them anyway need not.
        """
        try:
            names = sorted(os.listdir(root))
        except (FileNotFoundError, NotADirectoryError):
            return cls(root)
        except OSError as error:
            problem = f"it cannot be read: {error.strerror or error}"
            return cls(root, damaged=((root, problem),))
        index = SessionIndex(root.parent / INDEX)
        known = index.rows()
        # Taken before any file is checked: one that changes meanwhile is newer.
        now = time.time_ns()
        rows: list[IndexRow] = []
        changed: list[IndexRow] = []
        damaged: list[tuple[Path, str]] = []
        for name in names:
            signature = _signature(f"{root}/{name}/{METADATA}", now)
            row = known.pop(name, None)
            # The transcript may be lost while its record is as it was.
            if (
                row is not None
                and row.signature == signature
                and (
                    not transcripts
                    or not row.has_turns
                    or _is_there(f"{root}/{name}/{TRANSCRIPT}")
                )
                and (not verify or _content(f"{root}/{name}/{METADATA}") == row.content)
            ):
                rows.append(row)
                continue
            try:
                record = read_record(root / name)
            except ConfigError as error:
                damaged.append((root / name, str(error)))
                continue
            if record is not None:
                row = _row_of(root / name, signature, record)
                rows.append(row)
                if signature:
                    changed.append(row)
        if (changed or known) and (len(names) >= MIN_SESSIONS or index.path.exists()):
            index.update(changed, known)
        return cls(root, rows, tuple(damaged))


@attrs.frozen(kw_only=True)
class LatestSessions:
    """The first of the sessions that were asked for, the latest first.

    Args:
        sessions: with what their records say.
        count: how many there are, these included.
        damaged: the folders whose records cannot be read, with what is wrong.
    """

    sessions: tuple[StoredSession, ...] = ()
    count: int = 0
    damaged: tuple[tuple[Path, str], ...] = ()


def latest_sessions(
    roots: Sequence[Path],
    limit: int,
    *,
    children: bool = False,
    tag: str | None = None,
) -> LatestSessions:
    """Return the latest sessions of some folders; no other records are read than theirs, and those that changed.

    Args:
        roots: the folders in which the folders of sessions stand.
        limit: how many at most.
        children: those that another session made as well.
        tag: only those with this tag.
    """
    overviews = [SessionOverview.of(root) for root in roots]
    found = [
        (root, row)
        for root, row in latest_rows(overviews)
        if (children or not row.is_child)
        and (tag is None or tag in json.loads(row.tags))
    ]
    damaged = [each for overview in overviews for each in overview.damaged]
    count = len(found)
    sessions: list[StoredSession] = []
    for root, row in found:
        if len(sessions) == limit:
            break
        folder = root / row.name
        try:
            record = read_record(folder)
        except ConfigError as error:
            damaged.append((folder, str(error)))
            record = None
        if record is None:  # deleted, or damaged, since it was checked
            count -= 1
            continue
        sessions.append(StoredSession(folder=folder, record=record))
    return LatestSessions(sessions=tuple(sessions), count=count, damaged=tuple(damaged))


def latest_rows(overviews: Iterable[SessionOverview]) -> list[tuple[Path, IndexRow]]:
    """Return the sessions of some folders, the latest first, each with the folder in which its own stands."""
    found = [(overview.root, row) for overview in overviews for row in overview.rows]
    found.sort(key=lambda each: each[1].latest, reverse=True)
    return found


def _row_of(folder: Path, signature: str | None, record: SessionRecord) -> IndexRow:
    return IndexRow(
        name=folder.name,
        signature=signature or "",
        latest=float(record.latest),
        is_child=int(record.parent_id is not None),
        has_turns=int(record.turn_count > 0),
        tags=json.dumps(record.tags),
        content=_content(f"{folder}/{METADATA}"),
    )


def _signature(file: str, now: int) -> str | None:
    try:
        return signature_of(os.stat(file), now)
    except (OSError, ValueError):
        return None


def _content(file: str) -> int:
    data = read_bytes(file, MAX_BYTES)
    return -1 if data is None else zlib.crc32(data)


def _is_there(file: str) -> bool:
    """Tell whether a transcript surely holds something; where it may not, the session is read anew."""
    try:
        status = os.stat(file)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size > MAX_HEADER
