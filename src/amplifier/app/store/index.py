"""An index of the sessions of a store: what a list of them is sorted and chosen by, without reading each record.

The files count, and never the index: a row is valid only for the very file that it was made of, and whatever is
wrong with the index costs time alone.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import attrs

if TYPE_CHECKING:
    import sqlite3

__all__ = [
    "INDEX",
    "MIN_SESSIONS",
    "IndexRow",
    "SessionIndex",
    "make_private",
    "signature_of",
]

INDEX: Final = "sessions.index"
"""The file's name, beside the folder of the sessions."""

# SQLite takes 5 ms to load and open, as long as reading dozens of records.
MIN_SESSIONS: Final = 200
"""How many sessions a store has before an index is made."""

_VERSION: Final = 1
# A list of 100,000 sessions writes the index anew within this time.
_TIMEOUT: Final = 1.0
# FAT counts in steps of 2 s, and no file system in longer ones: within a step, a second change
# of a file that keeps its size is not seen.
_SETTLED: Final = 2_000_000_000

_TABLE: Final = """
CREATE TABLE IF NOT EXISTS sessions (
    name TEXT PRIMARY KEY, signature TEXT, latest REAL, is_child INTEGER,
    has_turns INTEGER, tags TEXT, content INTEGER, checksum INTEGER
) WITHOUT ROWID
"""
_SELECT: Final = """
SELECT name, signature, latest, is_child, has_turns, tags, content, checksum
FROM sessions
"""


class IndexRow(NamedTuple):
    """What the index knows of a session; nothing that its record does not say.

    Args:
        name: that of its folder.
        signature: which state of its record's file the row was made of.
        latest: when something happened in it last.
        is_child: whether another session made it.
        has_turns: whether turns of it have ended, so that there is a transcript.
        tags: its tags as JSON.
        content: the CRC-32 of its record's file.
        checksum: of all this; SQLite itself does not notice a flipped bit.
    """

    name: str
    signature: str
    latest: float
    is_child: int
    has_turns: int
    tags: str
    content: int = 0
    checksum: int = 0

    def sealed(self) -> IndexRow:
        """Return the row with its checksum."""
        return self._replace(checksum=_checksum(self))


@attrs.frozen
class SessionIndex:
    """The index in a file. No method raises where the file is missing, damaged, locked, or may not be written.

    Args:
        path: the file.
    """

    path: Path

    def rows(self) -> dict[str, IndexRow]:
        """Return the rows by the names of the folders; none where the index cannot be used."""
        rows: dict[str, IndexRow] = {}
        with self._connected() as connection:
            if connection is not None and _version_of(connection) == _VERSION:
                make = IndexRow._make
                found = connection.execute(_SELECT)
                rows = {row[0]: make(row) for row in found if row[7] == _checksum(row)}
        return rows

    def update(self, rows: Iterable[IndexRow], gone: Iterable[str]) -> None:
        """Store rows and remove those of folders that are gone: all of it, or nothing."""
        with suppress(OSError):
            make_private(self.path)
        with self._connected() as connection:
            # a newer version knows better what its index holds
            if connection is None or _version_of(connection) not in (0, _VERSION):
                return
            with _transaction(connection):
                connection.execute(f"PRAGMA user_version = {_VERSION}")
                connection.executemany(
                    "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (row.sealed() for row in rows),
                )
                _delete(connection, gone)

    def forget(self, names: Collection[str]) -> None:
        """Remove the rows of sessions that are deleted or moved: what they were tagged goes with them."""
        is_foreign = False
        with self._connected() as connection:
            if connection is None:
                return
            is_foreign = _version_of(connection) not in (0, _VERSION)
            if not is_foreign:
                with _transaction(connection):
                    _delete(connection, names)
        # Nobody knows which rows of another version are these. Those of an index that is locked
        # now are removed by the next list: it finds no folders for them.
        if is_foreign:
            self._discard()

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection | None]:
        """Yield a connection; `None` where there can be none. What goes wrong with it ends the block."""
        try:
            # not every Python is built with it
            import sqlite3
        except ImportError:
            yield None
            return
        if not _is_plain(self.path):
            yield None
            return
        try:
            with closing(sqlite3.connect(self.path, timeout=_TIMEOUT)) as connection:
                # what is removed is not left in free pages
                connection.execute("PRAGMA secure_delete = ON")
                yield connection
        except sqlite3.Error as error:
            # whoever holds the lock of a sound index goes on to use it
            if "locked" not in str(error) and "readonly" not in str(error):
                self._discard()

    def _discard(self) -> None:
        # The journal first: beside a new index it would be taken for that one's.
        for file in (self.path.with_name(f"{self.path.name}-journal"), self.path):
            with suppress(OSError):
                file.unlink(missing_ok=True)


def signature_of(status: os.stat_result, now: int) -> str | None:
    """Return what identifies a state of a file; `None` while the next change could look the same.

    The time of the last change of the inode cannot be set, as that of the content can: a copy with old times, and a
    file that another one was moved over, differ.

    Args:
        status: of the file, from before it is read.
        now: nanoseconds since the epoch.
    """
    if status.st_ctime_ns > now - _SETTLED:
        return None
    return f"{status.st_ctime_ns}:{status.st_ino}:{status.st_size}"


def _checksum(row: tuple[object, ...]) -> int:
    # surrogates: a damaged row may hold any text
    return zlib.crc32(repr(row[:7]).encode("utf-8", "surrogatepass"))


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Write to the table, which is made where there is none: all that the block does, or nothing."""
    # what a power failure damages is made anew
    connection.execute("PRAGMA synchronous = OFF")
    with connection:
        connection.execute(_TABLE)
        yield


def _version_of(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _delete(connection: sqlite3.Connection, names: Iterable[str]) -> None:
    connection.executemany(
        "DELETE FROM sessions WHERE name = ?", ((name,) for name in names)
    )


def _is_plain(path: Path) -> bool:
    """Tell whether a file is there and has no other name, under which others might change it."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1


def make_private(path: Path) -> None:
    """Make an empty file for this user alone; SQLite would make one as the umask says."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
