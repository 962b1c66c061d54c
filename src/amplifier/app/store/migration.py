"""Moving sessions from one store to another: everything of them, and never half of one.

A session is deleted where it was only after all of it was read back where it is now, and while nobody else can
write it in either place. Whoever is killed in between leaves it where it was; the next move begins anew.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

import anyio
import attrs

from amplifier_sdk.errors import (
    AmplifierError,
    ConfigError,
    LeaseHeldError,
    StoreError,
    StoreUnavailableError,
)
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import (
    Lease,
    LogName,
    SessionLog,
    SessionStore,
    StoredQuestion,
)

__all__ = ["Migration", "migrate_sessions"]

_INCOMPLETE: Final = "is_being_moved"
"""Stands in the record of a session that is not yet all there."""

_FIRST: Final = ("version", "session_id", "parent_id", "created")
"""What such a record says besides."""

_ALL: Final = 1_000_000
"""More sessions than a store has."""

_OWNER: Final = "amplifier session move"
_PERIOD: Final = 60.0
_LOGS: Final[tuple[LogName, ...]] = ("journal", "transcript", "events")


@attrs.frozen(kw_only=True)
class Migration:
    """What became of the sessions of a store, or of a project: ids.

    Args:
        moved: those that are in the other one now.
        open: those that somebody writes; they stay, from a store with their families.
        taken: those whose id another session there has; likewise.
        refused: those that cannot be moved as they are, with the reason; likewise.
    """

    moved: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()
    refused: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class _Content:
    """All that a store has of a session."""

    record: JSONObject
    logs: Mapping[LogName, SessionLog]
    documents: Mapping[str, bytes]
    questions: tuple[StoredQuestion, ...]


class _TakenError(StoreError):
    """Another session has the id."""


async def migrate_sessions(
    source: SessionStore, target: SessionStore, only: Sequence[str] = ()
) -> Migration:
    """Move sessions with all that came of them to another store.

    Args:
        source: where they are.
        target: where they shall be.
        only: the ids of those that are moved; default all that no other session made.

    Raises:
        StoreUnavailableError: a store cannot be reached; what was moved before stays moved.
        OSError: the system refuses; likewise.
    """
    moved, open_, taken = list[str](), list[str](), list[str]()
    refused: dict[str, str] = {}
    for root in only or await _roots(source):
        try:
            moved += await _move_family(source, target, root)
        except LeaseHeldError:
            open_.append(root)
        except _TakenError:
            taken.append(root)
        except StoreUnavailableError:
            raise  # nor would the next one be moved
        except (ConfigError, StoreError) as error:
            refused[root] = str(error)
    return Migration(
        moved=tuple(moved), open=tuple(open_), taken=tuple(taken), refused=refused
    )


async def _roots(store: SessionStore) -> list[str]:
    """Return the sessions that no other one made, and those whose parents are gone."""
    records = await store.list_sessions(limit=_ALL, children=True)
    ids = {str(record["session_id"]) for record in records}
    return [
        str(record["session_id"])
        for record in reversed(records)
        if record.get("parent_id") not in ids
    ]


async def _move_family(
    source: SessionStore, target: SessionStore, root: str
) -> tuple[str, ...]:
    family = await _family(source, root)
    async with _leased(source, family) as own:
        await _remove_incomplete(target, root)
        try:
            await _copy_family(source, target, own)
        except (ConfigError, StoreError):
            # Where that fails as well, the next move does it.
            with suppress(AmplifierError, OSError):
                await _remove_incomplete(target, root)
            raise
        return await source.delete(root, leases=own)


async def _copy_family(
    source: SessionStore, target: SessionStore, own: Sequence[Lease]
) -> None:
    async with _leased(target, [lease.session_id for lease in own]) as leases:
        for lease in leases:
            await _copy(source, target, lease)
            await _renew(source, own)
            await _renew(target, leases)
        # The root last: without it the family counts as incomplete, and is moved anew.
        for lease in reversed(leases):
            record = await _record(source, lease.session_id)
            await target.write_record(lease, record)


async def _family(store: SessionStore, root: str) -> list[str]:
    """Return a session and all that came of it, parents before their children."""
    found = [root]
    for session_id in found:  # which grows
        children = await store.children(session_id)
        found += [child for child in children if child not in found]
    return found


@asynccontextmanager
async def _leased(
    store: SessionStore, family: Sequence[str]
) -> AsyncIterator[list[Lease]]:
    async with AsyncExitStack() as stack:
        leases: list[Lease] = []
        for session_id in family:
            lease = await store.acquire(session_id, owner=_OWNER, period=_PERIOD)
            stack.push_async_callback(_release, store, lease)
            leases.append(lease)
        yield leases


async def _release(store: SessionStore, lease: Lease) -> None:
    # One that cannot be released ends by itself; what went wrong before counts.
    with anyio.CancelScope(shield=True), suppress(AmplifierError, OSError):
        await store.release(lease)


async def _renew(store: SessionStore, leases: Sequence[Lease]) -> None:
    for lease in leases:
        await store.renew(lease)


async def _remove_incomplete(store: SessionStore, root: str) -> None:
    """Remove what a move left that was ended in the middle; the sessions are where they were."""
    record = await store.read_record(root)
    if record is not None and _INCOMPLETE in record:
        async with _leased(store, await _family(store, root)) as leases:
            await store.delete(root, leases=leases)


async def _copy(source: SessionStore, target: SessionStore, lease: Lease) -> None:
    """Write all that a store has of a session into another one, but for the end of it: its record.

    Raises:
        _TakenError: another session there has its id.
        StoreError: it is not there as it was written.
    """
    session_id = lease.session_id
    content = await _read(source, session_id)
    known = await target.read_record(session_id)
    if known is not None:
        # A move that was ended right before the sessions were deleted where they were.
        if known == content.record and await _read(target, session_id) == content:
            return
        raise _TakenError(session_id)
    # Of its turns it says nothing yet: a session that lacks what was said counts as damaged.
    incomplete: JSONObject = {
        key: content.record[key] for key in _FIRST if key in content.record
    }
    incomplete[_INCOMPLETE] = True
    await target.write_record(lease, incomplete)
    for name, document in content.documents.items():
        await target.write_document(lease, name, document)
    for log, entries in content.logs.items():
        await target.replace(lease, log, entries)
    for question in content.questions:
        await target.ask(lease, question)
    written = await _read(target, session_id)
    if written != attrs.evolve(content, record=incomplete):
        problem = "is not read as it was written, and stays where it was"
        raise StoreError(f"Session {session_id!r} {problem}")


async def _read(store: SessionStore, session_id: str) -> _Content:
    logs = {log: await store.read_log(session_id, log) for log in _LOGS}
    return _Content(
        record=await _record(store, session_id),
        # one that was never begun is not begun by the move
        logs={log: each for log, each in logs.items() if each.began is not None},
        documents=await store.read_documents(session_id),
        questions=await store.questions(session_id),
    )


async def _record(store: SessionStore, session_id: str) -> JSONObject:
    record = await store.read_record(session_id)
    if record is None:
        raise StoreError(f"There is no session {session_id!r}")
    return record
