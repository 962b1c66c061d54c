"""Rows of sessions: leases, records and families. All functions run within a transaction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Final

from amplifier_module_store_postgres._database import Connection
from amplifier_sdk.errors import LeaseHeldError, LeaseLostError, StoreError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.stores import Lease

__all__ = [
    "CHANNEL",
    "acquire",
    "announced",
    "change_of",
    "changed",
    "fence",
    "follower_key",
    "holder",
    "list_records",
    "read_children",
    "read_record",
    "release",
    "renew",
    "require_record",
    "write_record",
]

CHANNEL: Final = "amplifier_sessions"
"""Where changes of sessions are announced, each with the key of its session."""

_ACQUIRE: Final = """
INSERT INTO amplifier.sessions AS held
    (namespace, session_id, lease_token, lease_owner, lease_expires)
VALUES (%s, %s, nextval('amplifier.lease_tokens'), %s,
        clock_timestamp() + make_interval(secs => %s))
ON CONFLICT (namespace, session_id) DO UPDATE SET
    lease_token = excluded.lease_token,
    lease_owner = excluded.lease_owner,
    lease_expires = excluded.lease_expires
WHERE held.lease_expires <= clock_timestamp()
RETURNING lease_token
"""
# `FOR UPDATE`: from here to the end of the transaction nobody takes the lease over.
_FENCE: Final = """
SELECT record IS NOT NULL FROM amplifier.sessions
WHERE namespace = %s AND session_id = %s AND lease_token = %s
    AND lease_expires > clock_timestamp()
FOR UPDATE
"""
_RENEW: Final = """
UPDATE amplifier.sessions
SET lease_expires = clock_timestamp() + make_interval(secs => %s)
WHERE namespace = %s AND session_id = %s
"""
_RELEASE: Final = """
UPDATE amplifier.sessions SET lease_expires = '-infinity'
WHERE namespace = %s AND session_id = %s AND lease_token = %s
"""
_CHANGED: Final = """
UPDATE amplifier.sessions SET change = nextval('amplifier.changes')
WHERE namespace = %(namespace)s AND session_id = %(session)s
RETURNING pg_notify(%(channel)s, %(key)s)
"""
_WRITE: Final = """
UPDATE amplifier.sessions
SET record = %s, facts = %s, parent_id = %s, created = %s, latest = %s
WHERE namespace = %s AND session_id = %s
"""
_LIST: Final = """
SELECT record::text FROM amplifier.sessions
WHERE namespace = %s AND record IS NOT NULL AND (%s OR parent_id IS NULL)
ORDER BY latest DESC, session_id LIMIT %s
"""
_CHILDREN: Final = """
SELECT session_id FROM amplifier.sessions
WHERE namespace = %s AND parent_id = %s AND record IS NOT NULL
ORDER BY created, session_id
"""


def acquire(
    connection: Connection, namespace: str, session_id: str, owner: str, period: float
) -> Lease:
    """Take the lease on a session.

    Raises:
        LeaseHeldError: somebody has it.
    """
    values = (namespace, session_id, owner, period)
    taken = connection.execute(_ACQUIRE, values).fetchone()
    if taken is None:
        holder = connection.execute(
            "SELECT lease_owner FROM amplifier.sessions"
            " WHERE namespace = %s AND session_id = %s",
            (namespace, session_id),
        ).fetchone()
        # its row may be gone again: it was held when this was refused
        (owner,) = holder or ("another worker",)
        raise LeaseHeldError(session_id, owner)
    return Lease(session_id=session_id, owner=owner, token=taken[0], period=period)


def fence(connection: Connection, namespace: str, lease: Lease) -> bool:
    """Lock the row of a session whose lease holds; return whether the session has a record.

    Raises:
        LeaseLostError: the lease has ended.
    """
    values = (namespace, lease.session_id, lease.token)
    found = connection.execute(_FENCE, values).fetchone()
    if found is None:
        raise LeaseLostError(lease.session_id)
    return bool(found[0])


def require_record(connection: Connection, namespace: str, lease: Lease) -> None:
    """Lock the row of a session that has a record and whose lease holds.

    Raises:
        LeaseLostError: the lease has ended.
        StoreError: there is no record yet.
    """
    if not fence(connection, namespace, lease):
        problem = "has no record yet; write that first"
        raise StoreError(f"Session {lease.session_id!r} {problem}")


def renew(connection: Connection, namespace: str, lease: Lease) -> None:
    """Have a lease end a whole period from now."""
    fence(connection, namespace, lease)
    connection.execute(_RENEW, (lease.period, namespace, lease.session_id))


def release(connection: Connection, namespace: str, lease: Lease) -> None:
    """End a lease; one that has ended is left as it is."""
    connection.execute(_RELEASE, (namespace, lease.session_id, lease.token))


def holder(connection: Connection, namespace: str, session_id: str) -> str | None:
    """Return who has the lease on a session at the moment; `None` for nobody."""
    found = connection.execute(
        "SELECT lease_owner FROM amplifier.sessions WHERE namespace = %s"
        " AND session_id = %s AND lease_expires > clock_timestamp()",
        (namespace, session_id),
    ).fetchone()
    return None if found is None else str(found[0])


def changed(connection: Connection, namespace: str, session_id: str) -> None:
    """Announce a change of a session; followers hear of it when the transaction is committed."""
    connection.execute(_CHANGED, announced(namespace, session_id))


def announced(namespace: str, session_id: str) -> dict[str, str]:
    """Return what a statement that announces a change of a session needs."""
    return {
        "namespace": namespace,
        "session": session_id,
        "channel": CHANNEL,
        "key": follower_key(namespace, session_id),
    }


def follower_key(namespace: str, session_id: str) -> str:
    """Return how announcements name a session: the server takes no more than 8,000 bytes."""
    named = json.dumps([namespace, session_id]).encode()
    return hashlib.sha256(named).hexdigest()


def change_of(connection: Connection, namespace: str, session_id: str) -> str:
    """Return the mark of how a session is now."""
    found = connection.execute(
        "SELECT change FROM amplifier.sessions"
        " WHERE namespace = %s AND session_id = %s",
        (namespace, session_id),
    ).fetchone()
    return "none" if found is None else str(found[0])


def write_record(
    connection: Connection, namespace: str, lease: Lease, record: JSONObject
) -> None:
    """Write who a session is.

    Raises:
        StoreError: it is the record of another session.
    """
    if record.get("session_id") != lease.session_id:
        problem = f"is that of {record.get('session_id')!r:.80}"
        raise StoreError(f"The record of session {lease.session_id!r} {problem}")
    fence(connection, namespace, lease)
    parent = record.get("parent_id")
    created = _seconds(record.get("created"))
    connection.execute(
        _WRITE,
        (
            json.dumps(record, allow_nan=False),
            json.dumps(_facts(record)),
            parent if isinstance(parent, str) else None,
            created,
            max(created, _seconds(record.get("updated"))),
            namespace,
            lease.session_id,
        ),
    )
    changed(connection, namespace, lease.session_id)


def read_record(
    connection: Connection, namespace: str, session_id: str
) -> JSONObject | None:
    """Return who a session is; `None` where there is none."""
    found = connection.execute(
        "SELECT record::text FROM amplifier.sessions"
        " WHERE namespace = %s AND session_id = %s AND record IS NOT NULL",
        (namespace, session_id),
    ).fetchone()
    if found is None:
        return None
    record: JSONObject = json.loads(found[0])
    return record


def list_records(
    connection: Connection, namespace: str, limit: int, children: bool
) -> tuple[JSONObject, ...]:
    """Return the records of sessions, the latest first."""
    found = connection.execute(_LIST, (namespace, children, limit))
    return tuple(json.loads(text) for (text,) in found)


def read_children(
    connection: Connection, namespace: str, session_id: str
) -> tuple[str, ...]:
    """Return the ids of the sessions that a session made, the first one first."""
    found = connection.execute(_CHILDREN, (namespace, session_id))
    return tuple(child for (child,) in found)


def _facts(record: JSONObject) -> JSONObject:
    """Return what is searched of a record, without what `jsonb` does not take."""
    tags = record.get("tags")
    return {
        "session_id": _storable(record.get("session_id")),
        "name": _storable(record.get("name")),
        "prompt": _storable(record.get("prompt")),
        "tags": [_storable(tag) for tag in tags if isinstance(tag, str)]
        if isinstance(tags, Sequence)
        else [],
    }


def _storable(text: JSONValue) -> str:
    if not isinstance(text, str):
        return ""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _seconds(value: JSONValue) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
