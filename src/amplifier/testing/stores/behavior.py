"""What is true of every good store, as a row of a table, and what the checks share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Protocol, TypeAlias, TypeVar

from amplifier.testing.suite_behaviors import SuiteBehavior
from amplifier.validation.behaviors import BehaviorFailed
from amplifier_sdk.errors import StoreError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.stores import Lease, LogEntry, SessionStore

__all__ = [
    "PERIOD",
    "StoreBehavior",
    "StoreSubject",
    "begin",
    "entry",
    "opened",
    "record",
    "refuses",
    "same",
]

E = TypeVar("E", bound=StoreError)

PERIOD = 60.0
"""Seconds of the leases in checks: longer than a check takes, so that only the subject ends one."""


class StoreSubject(Protocol):
    """A store under test, empty at the beginning of each check."""

    async def open(self) -> SessionStore:
        """Open the store; each call as another worker would, and all of them see the same sessions."""

    async def expire_leases(self) -> None:
        """End all leases, and reservations of accounts, as if their periods had passed without a renewal."""


StoreBehavior: TypeAlias = SuiteBehavior[StoreSubject]
"""Something that is true of every good store."""


@asynccontextmanager
async def opened(subject: StoreSubject) -> AsyncIterator[SessionStore]:
    """Open the store for a block."""
    store = await subject.open()
    try:
        yield store
    finally:
        await store.aclose()


def record(session_id: str, **more: JSONValue) -> JSONObject:
    """Return the record of a session as an application writes it."""
    return {
        "version": 1,
        "session_id": session_id,
        "created": 1000.0,
        "updated": 1000.0,
        **more,
    }


def entry(text: str, at: float = 1000.5) -> LogEntry:
    """Return an entry of a transcript in which a person said something."""
    message: JSONObject = {"role": "user", "content": text}
    data: JSONObject = {"at": 0, "turn": "t1", "message": message}
    return LogEntry(kind="message", data=data, at=at)


async def begin(store: SessionStore, session_id: str, **more: JSONValue) -> Lease:
    """Store a session and return the lease on it."""
    lease = await store.acquire(session_id, owner="check", period=PERIOD)
    await store.write_record(lease, record(session_id, **more))
    return lease


def same(what: str, seen: object, wanted: object) -> None:
    """Fail where something is not as it must be; the order of keys counts.

    Raises:
        BehaviorFailed: it is not.
    """
    # the text: two mappings are equal whatever the order of their keys
    if seen != wanted or repr(seen) != repr(wanted):
        raise BehaviorFailed(f"{what}: {seen!r:.300}; expected {wanted!r:.300}")


async def refuses(error: type[E], what: str, action: Awaitable[object]) -> E:
    """Return the error that an action is refused with.

    Raises:
        BehaviorFailed: it was not refused.
    """
    try:
        await action
    except error as refused:
        return refused
    raise BehaviorFailed(f"{what} was accepted; expected {error.__name__}")
