"""Whichever statement a connection is lost in: nothing of the write is done, and the next attempt does all of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from decimal import Decimal
from itertools import count
from typing import Final

import attrs
import psycopg
import pytest
from psycopg import Connection

from amplifier.testing.postgres import PostgresServer
from amplifier_kit.quotas import Claim, Reservation
from amplifier_module_store_postgres import PostgresSessionStore, open_store
from amplifier_sdk.errors import StoreUnavailableError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import Lease, LogEntry, SessionLog, StoredQuestion

pytestmark = pytest.mark.process

RECORD: Final[JSONObject] = {"version": 1, "session_id": "s1"}
ENTRY: Final = LogEntry(kind="note", data={"text": "x"}, at=1000.5)
ASKED: Final = StoredQuestion(
    question_id="q1", session_id="s1", prompt="?", options=("yes", "no")
)
FURTHER: Final = StoredQuestion(
    question_id="q2", session_id="s1", prompt="?", options=("yes", "no")
)
CLAIM: Final = Claim(
    account="tenant/t", amount=Decimal(2), limit=Decimal(9), window="day"
)
CLAIM_OF_KEY: Final = attrs.evolve(CLAIM, account="provider/p")
WRITES: Final[
    Mapping[str, Callable[[PostgresSessionStore, Lease], Awaitable[object]]]
] = {
    "write_record": lambda store, lease: store.write_record(
        lease, {**RECORD, "name": "new"}
    ),
    "append": lambda store, lease: store.append(lease, "journal", [ENTRY, ENTRY]),
    "replace": lambda store, lease: store.replace(lease, "journal", SessionLog()),
    "write_document": lambda store, lease: store.write_document(lease, "a", b"new"),
    "ask": lambda store, lease: store.ask(lease, FURTHER),
    "void_questions": lambda store, lease: store.void_questions(lease),
    "forget_questions": lambda store, lease: store.forget_questions(lease, ["q1"]),
    "answer": lambda store, _: store.answer("q1", "yes", by="ann"),
    "delete": lambda store, lease: store.delete("s1", leases=[lease]),
    "reserve": lambda store, _: store.quotas.reserve([CLAIM, CLAIM_OF_KEY], period=60),
    "pause": lambda store, _: store.quotas.pause("provider/p", 60),
}


@pytest.mark.parametrize("name", WRITES)
async def test_a_write_is_done_whole_or_not_at_all(
    name: str,
    server: PostgresServer,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = await open_store(server.url(), namespace=namespace)
    lease = await store.acquire("s1", owner="worker 1", period=60)
    await store.write_record(lease, RECORD)
    await store.append(lease, "journal", [ENTRY])
    await store.ask(lease, ASKED)
    before = await _content(store)

    for number in count(1):
        with monkeypatch.context() as patch:
            _lose_connection(patch, server.url(), number)
            try:
                await WRITES[name](store, lease)
            except StoreUnavailableError:
                pass
            else:
                break
        assert await _content(store) == before

    # the fence, and at least one that writes; one is both, and one needs no lease
    assert number > (1 if name in ("append", "pause") else 2)
    assert await _content(store) != before
    await store.aclose()


async def test_a_reservation_is_settled_whole_or_not_at_all(
    server: PostgresServer, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store(server.url(), namespace=namespace)
    made = await store.quotas.reserve([CLAIM, CLAIM_OF_KEY], period=60)
    assert isinstance(made, Reservation)
    used = {"tenant/t": Decimal(1), "provider/p": Decimal(1)}
    reserved, _ = await _accounts(store)
    for number in count(1):
        with monkeypatch.context() as patch:
            _lose_connection(patch, server.url(), number)
            try:
                await store.quotas.settle(made, used)
            except StoreUnavailableError:
                pass
            else:
                break
        assert await _accounts(store) == (reserved, set())
    settled, _ = await _accounts(store)

    assert number > 3
    assert settled == [(name, Decimal(1), Decimal(0)) for name in sorted(used)]
    await store.aclose()


def _lose_connection(patch: pytest.MonkeyPatch, url: str, number: int) -> None:
    """End the connection right before a statement, the first one being 1; its check is replaced by a new one."""
    execute = Connection.execute
    made = count(1)

    def losing(
        connection: Connection, query: str, values: Sequence[object] | None = None
    ) -> psycopg.Cursor:
        is_of_store = not query.startswith(("SELECT 1", "SELECT set_config"))
        if is_of_store and next(made) == number:
            pid = connection.info.backend_pid
            with psycopg.connect(url, autocommit=True) as other, other.cursor() as ends:
                ends.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        return execute(connection, query.encode(), values)

    patch.setattr(Connection, "execute", losing)


async def _content(store: PostgresSessionStore) -> tuple[object, ...]:
    return (
        await store.read_record("s1"),
        await store.read_log("s1", "journal"),
        dict(await store.read_documents("s1")),
        await store.questions("s1"),
        await _accounts(store),
    )


async def _accounts(store: PostgresSessionStore) -> tuple[object, ...]:
    balances = await store.quotas.balances()
    standing = [(each.account, each.spent, each.reserved) for each in balances]
    return standing, {*await store.quotas.pauses()}
