"""What goes wrong with a server is one clear error, and nothing is half done."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from functools import partial
from uuid import uuid4

import anyio
import psycopg
import pytest
from anyio import to_thread
from psycopg import sql

from amplifier.testing.postgres import PASSWORD, PostgresServer, running_server
from amplifier_module_store_postgres import PostgresSessionStore, open_store
from amplifier_module_store_postgres._database import POOL_SIZE, Connection
from amplifier_module_store_postgres._schema import MIGRATIONS
from amplifier_sdk.errors import (
    LeaseLostError,
    StoreError,
    StoreUnavailableError,
    StoreVersionError,
)
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import LogEntry, NamespacedStore, SessionLog

pytestmark = pytest.mark.process

RECORD: JSONObject = {"version": 1, "session_id": "s1"}
ENTRY = LogEntry(kind="note", data={"text": "x"}, at=1000.5)
ENTRIES = (ENTRY, ENTRY, ENTRY)


@pytest.fixture
async def store(
    server: PostgresServer, namespace: str
) -> AsyncIterator[PostgresSessionStore]:
    opened = await open_store(server.url(), namespace=namespace)
    yield opened
    await opened.aclose()


@pytest.fixture
def database(server: PostgresServer) -> str:
    """The URL of a database of the test's own, with no tables in it."""
    name = f"db_{uuid4().hex}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return server.url(name)


def _execute(url: str, statement: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(statement.encode())


async def test_no_server_is_said_with_its_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    with pytest.raises(StoreUnavailableError) as refused:
        await open_store(f"postgresql://me:hidden@127.0.0.1:{port}/db")

    text = str(refused.value)
    assert text.startswith(f"PostgreSQL at 127.0.0.1:{port}: ")
    assert "Connection refused" in text
    assert text.endswith("Check that the server runs, and try again")
    assert "hidden" not in text


@pytest.mark.parametrize(
    ("password", "remedy"),
    [
        ("wrong-one", "Check the user and the password"),
        (None, "Give the password in PGPASSWORD or ~/.pgpass"),
    ],
)
async def test_a_password_that_is_wrong_or_missing_is_said(
    server: PostgresServer,
    password: str | None,
    remedy: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PGPASSWORD")
    if password is not None:
        monkeypatch.setenv("PGPASSWORD", password)

    with pytest.raises(StoreUnavailableError) as refused:
        await open_store(server.url())

    assert str(refused.value).endswith(remedy)
    assert "wrong-one" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["postgresql://h:1/d?nonsense=1", "not a url", "postgresql://h:port/d"]
)
async def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(StoreError):
        await open_store(url)


async def test_a_newer_schema_is_left_alone(database: str) -> None:
    await (await open_store(database)).aclose()
    _execute(database, "UPDATE amplifier.schema_version SET version = 99")

    with pytest.raises(StoreVersionError, match="has version 99; this module knows"):
        await open_store(database)


async def test_a_user_who_may_not_change_the_schema_is_told_who_may(
    server: PostgresServer, database: str
) -> None:
    role = f"role_{uuid4().hex}"
    _execute(database, f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")

    with pytest.raises(StoreVersionError, match="as a user who may create schemas"):
        await open_store(database.replace("postgres@", f"{role}@"))


async def test_many_that_open_an_empty_database_make_the_tables_once(
    database: str,
) -> None:
    async def open_one() -> None:
        await (await open_store(database)).aclose()

    async with anyio.create_task_group() as tasks:
        for _ in range(6):
            tasks.start_soon(open_one)

    with psycopg.connect(database) as connection:
        found = connection.execute("SELECT version FROM amplifier.schema_version")
        assert found.fetchall() == [(len(MIGRATIONS),)]


async def test_a_migration_that_fails_leaves_nothing(database: str) -> None:
    _execute(
        database, "CREATE SCHEMA amplifier; CREATE VIEW amplifier.logs AS SELECT 1"
    )

    with pytest.raises(StoreError, match="already exists"):
        await open_store(database)

    with psycopg.connect(database) as connection:
        found = connection.execute("SELECT to_regclass('amplifier.sessions')")
        assert found.fetchone() == (None,)


async def test_a_connection_that_is_lost_in_a_statement_does_nothing(
    store: PostgresSessionStore, server: PostgresServer, namespace: str
) -> None:
    lease = await store.acquire("s1", owner="worker 1", period=60)
    await store.write_record(lease, RECORD)

    # The row is locked: the append waits within its transaction until it is terminated.
    with psycopg.connect(server.url()) as blocker:
        blocker.execute(
            "SELECT 1 FROM amplifier.sessions WHERE namespace = %s FOR UPDATE",
            (namespace,),
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(to_thread.run_sync, _terminate_waiting, server.url())
            with pytest.raises(StoreUnavailableError, match="terminating connection"):
                await store.append(lease, "journal", ENTRIES)

    assert await store.read_log("s1", "journal") == SessionLog()
    await store.append(lease, "journal", ENTRIES)
    assert (await store.read_log("s1", "journal")).entries == ENTRIES


def _terminate_waiting(url: str) -> None:
    """Terminate the connection that waits for a lock, once there is one."""
    with psycopg.connect(url, autocommit=True) as connection:
        while not connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE wait_event_type = 'Lock' AND query LIKE '%FOR UPDATE%'"
        ).fetchall():
            pass


async def test_a_takeover_waits_for_the_write_that_is_under_way(
    store: PostgresSessionStore, server: PostgresServer, namespace: str
) -> None:
    lease = await store.acquire("s1", owner="worker 1", period=60)
    await store.write_record(lease, RECORD)
    _execute(
        server.url(),
        "UPDATE amplifier.sessions SET lease_expires = '-infinity'"
        f" WHERE namespace = '{namespace}'",
    )

    second = await store.acquire("s1", owner="worker 2", period=60)

    with pytest.raises(LeaseLostError):
        await store.append(lease, "journal", ENTRIES)
    await store.append(second, "journal", ENTRIES)


async def test_a_store_works_again_after_its_server_was_restarted(
    server: PostgresServer, namespace: str
) -> None:
    with running_server(server.programs) as own:
        store = await open_store(own.url(), namespace=namespace)
        lease = await store.acquire("s1", owner="worker 1", period=600)
        await store.write_record(lease, RECORD)
        seen = await store.wait_for_change("s1", "", max_wait=0)
        assert await store.wait_for_change("s1", seen, max_wait=0.01) == seen

        await to_thread.run_sync(own.stop)
        with pytest.raises(StoreUnavailableError):
            await store.append(lease, "journal", ENTRIES)
        await to_thread.run_sync(own.start)

        await store.append(lease, "journal", ENTRIES)
        assert await store.wait_for_change("s1", seen, max_wait=20) != seen
        await store.aclose()


async def test_a_line_that_was_changed_in_the_database_is_reported(
    store: PostgresSessionStore, server: PostgresServer, namespace: str
) -> None:
    lease = await store.acquire("s1", owner="worker 1", period=60)
    await store.write_record(lease, RECORD)
    await store.append(lease, "journal", ENTRIES)
    _execute(
        server.url(),
        "UPDATE amplifier.entries SET line = replace(line, 'note', 'nope')"
        f" WHERE namespace = '{namespace}' AND number = 2",
    )

    with pytest.raises(StoreError, match="Entry 2 of the journal of session 's1'"):
        await store.read_log("s1", "journal")


async def test_namespaces_see_nothing_of_each_other(
    server: PostgresServer, store: PostgresSessionStore
) -> None:
    lease = await store.acquire("s1", owner="worker 1", period=60)
    await store.write_record(lease, {**RECORD, "name": "secret"})
    other = await open_store(server.url(), namespace="another")

    assert await other.read_record("s1") is None
    assert await other.list_sessions(limit=9) == ()
    assert await other.search("secret", limit=9) == ()
    assert await other.cleanup(9e9) == ()
    assert await other.delete("s1") == ()
    with pytest.raises(LeaseLostError):
        await other.renew(lease)
    await other.aclose()
    assert await store.read_record("s1") is not None


async def test_namespaces_share_connections_and_nothing_else(
    server: PostgresServer, store: PostgresSessionStore, namespace: str
) -> None:
    lease = await store.acquire("s1", owner="worker 1", period=60)
    await store.write_record(lease, {**RECORD, "name": "secret"})
    others = [store.in_namespace(f"{namespace}-{number}") for number in range(20)]
    assert all(isinstance(other, NamespacedStore) for other in others)

    async with anyio.create_task_group() as tasks:
        for other in others:
            tasks.start_soon(partial(other.acquire, "s1", owner="worker", period=60))
    found = [await other.read_record("s1") for other in others]
    await others[0].aclose()

    assert found == [None] * 20
    assert await store.read_record("s1") is not None
    with psycopg.connect(server.url()) as connection:
        count = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'amplifier'"
        ).fetchone()
    assert count is not None
    assert count[0] <= POOL_SIZE


@pytest.mark.parametrize("text", ["\0", "a\0b"])
async def test_what_the_server_does_not_take_is_refused_by_name(
    store: PostgresSessionStore, text: str
) -> None:
    with pytest.raises(StoreError, match="PostgreSQL at 127"):
        await store.acquire(text, owner="worker 1", period=60)


async def test_a_closed_store_takes_nothing(
    server: PostgresServer, namespace: str
) -> None:
    store = await open_store(server.url(), namespace=namespace)
    await store.aclose()
    await store.aclose()

    with pytest.raises(anyio.ClosedResourceError):
        await store.read_record("s1")


async def test_a_statement_has_a_limit_of_time(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch, namespace: str
) -> None:
    limits = {"statement_timeout": 0.05, "lock_timeout": 10.0}
    monkeypatch.setattr("amplifier_module_store_postgres._database._LIMITS", limits)
    store = await open_store(server.url(), namespace=namespace)

    def sleep(connection: Connection) -> None:
        connection.execute("SELECT pg_sleep(60)")

    with pytest.raises(StoreUnavailableError, match="took longer than"):
        await store.database.run(sleep)
    assert await store.list_sessions(limit=1) == ()
    await store.aclose()


async def test_leases_that_ended_without_a_record_are_cleaned_up(
    server: PostgresServer, store: PostgresSessionStore, namespace: str
) -> None:
    ended = await store.acquire("ended", owner="worker 1", period=60)
    await store.release(ended)
    held = await store.acquire("held", owner="worker 1", period=60)

    assert await store.cleanup(9e9) == ()

    with psycopg.connect(server.url()) as connection:
        found = connection.execute(
            "SELECT session_id FROM amplifier.sessions WHERE namespace = %s",
            (namespace,),
        )
        assert found.fetchall() == [("held",)]
    await store.renew(held)
