"""Logs and documents of sessions. All functions run within a transaction.

An entry is stored as the line that files have of it, with its checksum: it comes back byte for byte, or is reported.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

from amplifier_kit.files.appendlog import decode_line, encode_line
from amplifier_module_store_postgres._database import Connection
from amplifier_module_store_postgres._rows import announced, changed, require_record
from amplifier_sdk.errors import LeaseLostError, StoreError
from amplifier_sdk.stores import Lease, LogEntry, LogName, SessionLog

__all__ = ["append", "read_documents", "read_log", "replace", "write_document"]

# One statement, and so one way to the server and back: the steps of turns wait for it.
# `FOR UPDATE`: from here to its end nobody takes the lease over.
_APPEND: Final = """
WITH fenced AS (
    SELECT 1 FROM amplifier.sessions
    WHERE namespace = %(namespace)s AND session_id = %(session)s
        AND record IS NOT NULL
        AND lease_token = %(token)s AND lease_expires > clock_timestamp()
    FOR UPDATE
), counted AS (
    INSERT INTO amplifier.logs AS log (namespace, session_id, log, began, count)
    SELECT %(namespace)s::text, %(session)s::text, %(log)s::text, %(began)s,
        cardinality(%(lines)s::text[])
    FROM fenced
    ON CONFLICT (namespace, session_id, log) DO UPDATE
    SET count = log.count + excluded.count RETURNING count
), added AS (
    INSERT INTO amplifier.entries (namespace, session_id, log, number, line)
    SELECT %(namespace)s, %(session)s, %(log)s,
        count - cardinality(%(lines)s::text[]) + place, line
    FROM counted, unnest(%(lines)s::text[]) WITH ORDINALITY AS given (line, place)
)
UPDATE amplifier.sessions SET change = nextval('amplifier.changes')
WHERE namespace = %(namespace)s AND session_id = %(session)s
    AND EXISTS (SELECT FROM counted)
RETURNING pg_notify(%(channel)s, %(key)s)
"""
_READ: Final = """
SELECT number, line FROM amplifier.entries
WHERE namespace = %s AND session_id = %s AND log = %s AND number > %s
ORDER BY number
"""
_WRITE_DOCUMENT: Final = """
INSERT INTO amplifier.documents (namespace, session_id, name, content)
VALUES (%s, %s, %s, %s)
ON CONFLICT (namespace, session_id, name) DO UPDATE SET content = excluded.content
"""


def append(
    connection: Connection,
    namespace: str,
    lease: Lease,
    log: LogName,
    entries: Sequence[LogEntry],
) -> None:
    """Add entries to the end of a log, in one statement, which needs no transaction.

    Raises:
        LeaseLostError: the lease has ended.
        StoreError: there is no record yet.
    """
    if not _add(connection, namespace, lease, log, _lines(entries), time.time()):
        require_record(connection, namespace, lease)
        raise LeaseLostError(lease.session_id)


def replace(
    connection: Connection,
    namespace: str,
    lease: Lease,
    log: LogName,
    content: SessionLog,
) -> None:
    """Put other entries in the place of all that a log has."""
    lines = _lines(content.entries)
    require_record(connection, namespace, lease)
    key = (namespace, lease.session_id, log)
    connection.execute(
        "DELETE FROM amplifier.logs"
        " WHERE namespace = %s AND session_id = %s AND log = %s",
        key,
    )
    began = content.began
    if began is None:
        began = time.time()
    _add(connection, namespace, lease, log, lines, began)


def read_log(
    connection: Connection, namespace: str, session_id: str, log: LogName, after: int
) -> SessionLog:
    """Return what a log has behind its first entries.

    Raises:
        StoreError: a line of it is damaged.
    """
    key = (namespace, session_id, log)
    known = connection.execute(
        "SELECT began FROM amplifier.logs"
        " WHERE namespace = %s AND session_id = %s AND log = %s",
        key,
    ).fetchone()
    if known is None:
        return SessionLog()
    found = connection.execute(_READ, (*key, after))
    entries = tuple(_entry(session_id, log, number, line) for number, line in found)
    return SessionLog(entries=entries, began=known[0])


def write_document(
    connection: Connection, namespace: str, lease: Lease, name: str, content: bytes
) -> None:
    """Write a file of a session's own.

    Raises:
        StoreError: the name is none of a document.
    """
    # Whoever brings it back to files takes it for a name in the session's folder.
    if not name.isprintable() or not name or name.startswith(".") or "/" in name:
        raise StoreError(f"{name!r:.80} is no name of a document")
    require_record(connection, namespace, lease)
    connection.execute(_WRITE_DOCUMENT, (namespace, lease.session_id, name, content))
    changed(connection, namespace, lease.session_id)


def read_documents(
    connection: Connection, namespace: str, session_id: str
) -> Mapping[str, bytes]:
    """Return the documents of a session by name."""
    found = connection.execute(
        "SELECT name, content FROM amplifier.documents"
        " WHERE namespace = %s AND session_id = %s ORDER BY name",
        (namespace, session_id),
    )
    return {name: bytes(content) for name, content in found}


def _add(
    connection: Connection,
    namespace: str,
    lease: Lease,
    log: LogName,
    lines: list[str],
    began: float,
) -> bool:
    """Add lines to a log; return whether the lease holds and the session has a record."""
    values = {
        **announced(namespace, lease.session_id),
        "token": lease.token,
        "log": log,
        "lines": lines,
        "began": began,
    }
    return connection.execute(_APPEND, values).rowcount > 0


def _lines(entries: Sequence[LogEntry]) -> list[str]:
    """Encode all entries, before the first of them is stored."""
    return [encode_line(entry).decode() for entry in entries]


def _entry(session_id: str, log: str, number: int, line: str) -> LogEntry:
    try:
        return decode_line(line.encode())
    except ValueError as error:
        where = f"Entry {number} of the {log} of session {session_id!r}"
        raise StoreError(f"{where} is damaged: {error}") from error
