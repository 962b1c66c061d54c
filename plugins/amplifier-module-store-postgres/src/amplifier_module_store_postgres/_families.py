"""Deleting sessions with all that came of them. All functions run within a transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from amplifier_module_store_postgres._database import Connection
from amplifier_sdk.errors import LeaseHeldError
from amplifier_sdk.stores import Lease

__all__ = ["delete", "delete_old", "delete_unwritten", "old_families"]

_COLUMNS: Final = """
SELECT session_id, parent_id, latest, coalesce(facts->>'name', '') <> '',
    lease_expires > clock_timestamp(), lease_owner, lease_token
FROM amplifier.sessions WHERE namespace = %s AND record IS NOT NULL
"""
# `UNION` and not `UNION ALL`: records that name each other as parents end it.
_FAMILY: Final = """
WITH RECURSIVE family AS (
    SELECT session_id FROM amplifier.sessions
    WHERE namespace = %s AND session_id = %s
    UNION
    SELECT child.session_id FROM amplifier.sessions AS child
    JOIN family ON child.parent_id = family.session_id
    WHERE child.namespace = %s
)
SELECT session_id FROM family
"""
_LOCK: Final = f"""
{_COLUMNS} AND session_id = ANY(%s) ORDER BY session_id FOR UPDATE
"""
_DELETE: Final = """
DELETE FROM amplifier.sessions WHERE namespace = %s AND session_id = ANY(%s)
"""


class _Member(NamedTuple):
    session_id: str
    parent_id: str | None
    latest: float
    is_named: bool
    is_leased: bool
    owner: str
    token: int

    def is_old(self, before: float) -> bool:
        return self.latest < before and not self.is_named and not self.is_leased


def delete(
    connection: Connection, namespace: str, session_id: str, leases: Sequence[Lease]
) -> tuple[str, ...]:
    """Delete a session and all that came of it; return the ids, children before their parents.

    Args:
        connection: the connection, in a transaction.
        namespace: whose session it is.
        session_id: the session.
        leases: those that the caller has on them.

    Raises:
        LeaseHeldError: somebody writes one of them.
    """
    members = _locked(connection, namespace, session_id)
    own = {(lease.session_id, lease.token) for lease in leases}
    for member in members:
        if member.is_leased and (member.session_id, member.token) not in own:
            raise LeaseHeldError(member.session_id, member.owner)
    return _delete(connection, namespace, members, session_id)


def old_families(
    connection: Connection, namespace: str, before: float
) -> tuple[str, ...]:
    """Return the sessions in whose families nothing has happened since, that nobody named and nobody writes."""
    members = [_Member(*row) for row in connection.execute(_COLUMNS, (namespace,))]
    children = _by_parent(members)
    known = {member.session_id for member in members}
    roots = (each for each in members if each.parent_id not in known)
    return tuple(
        root.session_id
        for root in roots
        if all(each.is_old(before) for each in _ordered(root, children))
    )


def delete_unwritten(connection: Connection, namespace: str, before: float) -> None:
    """Delete what is left of leases that ended without a record; tokens come from a sequence, and none is lost."""
    connection.execute(
        "DELETE FROM amplifier.sessions WHERE namespace = %s AND record IS NULL"
        " AND lease_expires < least(clock_timestamp(), to_timestamp(%s))",
        (namespace, before),
    )


def delete_old(
    connection: Connection, namespace: str, session_id: str, before: float
) -> tuple[str, ...]:
    """Delete a family if it is old still, now that nobody else can change it; return the ids."""
    members = _locked(connection, namespace, session_id)
    if not all(member.is_old(before) for member in members):
        return ()
    return _delete(connection, namespace, members, session_id)


def _locked(
    connection: Connection, namespace: str, session_id: str
) -> Sequence[_Member]:
    """Lock the rows of a family, in the order of their ids: two that do so do not wait for each other for ever."""
    values = (namespace, session_id, namespace)
    ids = [found for (found,) in connection.execute(_FAMILY, values)]
    return [_Member(*row) for row in connection.execute(_LOCK, (namespace, ids))]


def _delete(
    connection: Connection, namespace: str, members: Sequence[_Member], root: str
) -> tuple[str, ...]:
    children = _by_parent(members)
    roots = [member for member in members if member.session_id == root]
    order = [each.session_id for found in roots for each in _ordered(found, children)]
    connection.execute(_DELETE, (namespace, order))
    return tuple(reversed(order))


def _by_parent(members: Iterable[_Member]) -> Mapping[str | None, Sequence[_Member]]:
    children: defaultdict[str | None, list[_Member]] = defaultdict(list)
    for member in members:
        children[member.parent_id].append(member)
    return children


def _ordered(
    root: _Member, children: Mapping[str | None, Sequence[_Member]]
) -> list[_Member]:
    """Return a family, parents before their children."""
    found, seen = [root], {root.session_id}
    for member in found:  # which grows
        for child in children.get(member.session_id, ()):
            if child.session_id not in seen:
                seen.add(child.session_id)
                found.append(child)
    return found
