"""The tables of every version become those of the newest one: once, all steps or none."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from amplifier.testing.postgres import PostgresServer
from amplifier_module_store_postgres import open_store
from amplifier_module_store_postgres._schema import MIGRATIONS, migrate
from amplifier_sdk.stores import LogEntry

pytestmark = pytest.mark.process

RELEASED = ["23e875831d41a76f", "3549ed0e2ca24752"]
"""What the steps that were released are, one after the other; a new step adds its own."""

NEXT = "ALTER TABLE amplifier.sessions ADD COLUMN tenant text"
BROKEN = "ALTER TABLE amplifier.no_such_table ADD COLUMN tenant text"


@pytest.fixture
def connection(server: PostgresServer) -> Iterator[psycopg.Connection]:
    name = f"db_{uuid4().hex}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    with psycopg.connect(server.url(name), autocommit=True) as connection:
        yield connection


def _versions(connection: psycopg.Connection) -> list[tuple[int]]:
    found = connection.execute("SELECT version FROM amplifier.schema_version")
    return found.fetchall()


def test_each_version_becomes_the_newest(connection: psycopg.Connection) -> None:
    migrate(connection, MIGRATIONS)
    connection.execute(
        "INSERT INTO amplifier.sessions VALUES"
        " ('shop', 's1', NULL, 1, 1, '{}', '{}', 0, 1, 'w', '-infinity')"
    )

    migrate(connection, (*MIGRATIONS, NEXT))
    migrate(connection, (*MIGRATIONS, NEXT))

    assert _versions(connection) == [(len(MIGRATIONS) + 1,)]
    found = connection.execute("SELECT session_id, tenant FROM amplifier.sessions")
    assert found.fetchall() == [("s1", None)]


ROWS = """
INSERT INTO amplifier.sessions
    (namespace, session_id, created, latest, facts, record, lease_token, lease_owner, lease_expires)
VALUES ('shop', 's1', 1, 2,
    '{"session_id": "s1", "name": "trip", "prompt": "", "tags": []}',
    '{"version": 1, "session_id": "s1", "name": "trip"}', 7, 'worker 1', '-infinity');
INSERT INTO amplifier.documents VALUES ('shop', 's1', 'composition.json', 'made of');
INSERT INTO amplifier.questions (namespace, question_id, session_id, asked)
VALUES ('shop', 'q1', 's1', '{"question_id": "q1", "session_id": "s1", "prompt": "?", "options": ["yes"]}');
"""
"""What the first version wrote; each later one reads it."""


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS) + 1))
async def test_what_a_released_version_wrote_is_read_and_written_on(
    version: int, connection: psycopg.Connection, server: PostgresServer
) -> None:
    migrate(connection, MIGRATIONS[:1])
    connection.execute(ROWS.encode())
    migrate(connection, MIGRATIONS[:version])
    # what migrates holds the lock until its connection is closed
    connection.execute("SELECT pg_advisory_unlock_all()")
    url = server.url(connection.info.dbname)
    store = await open_store(url, namespace="shop")
    lease = await store.acquire("s1", owner="worker 2", period=60)
    await store.append(lease, "journal", [LogEntry(kind="note", data={}, at=1.0)])
    answered = await store.answer("q1", "yes", by="ann")
    found = await store.search("TRIP", limit=9)
    documents = await store.read_documents("s1")
    await store.aclose()

    assert _versions(connection) == [(len(MIGRATIONS),)]
    assert lease.token > 0
    assert answered.prompt == "?"
    assert found == ("s1",)
    assert documents == {"composition.json": b"made of"}


@pytest.mark.parametrize("version", range(len(MIGRATIONS)))
def test_each_way_leads_to_the_same_tables(
    version: int, connection: psycopg.Connection, server: PostgresServer
) -> None:
    migrate(connection, MIGRATIONS[:version])
    migrate(connection)
    other = f"db_{uuid4().hex}"
    with psycopg.connect(server.url(), autocommit=True) as made:
        made.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(other)))
    with psycopg.connect(server.url(other), autocommit=True) as anew:
        migrate(anew)

        assert _tables(connection) == _tables(anew)


def _tables(connection: psycopg.Connection) -> list[tuple[object, ...]]:
    """Return the columns of all tables, and what indexes them."""
    columns = connection.execute(
        "SELECT table_name, column_name, data_type, is_nullable, column_default"
        " FROM information_schema.columns WHERE table_schema = 'amplifier'"
        " ORDER BY table_name, ordinal_position"
    ).fetchall()
    indexes = connection.execute(
        "SELECT tablename, indexname, indexdef FROM pg_indexes"
        " WHERE schemaname = 'amplifier' ORDER BY tablename, indexname"
    ).fetchall()
    return [*columns, *indexes]


def test_a_released_step_is_as_it_was() -> None:
    """A step that changed would leave the databases that took it before without the change."""
    known = [sha256(step.encode()).hexdigest()[:16] for step in MIGRATIONS]

    assert known[: len(RELEASED)] == RELEASED


def test_a_step_that_fails_undoes_those_before_it(
    connection: psycopg.Connection,
) -> None:
    migrate(connection, MIGRATIONS)

    with pytest.raises(psycopg.errors.UndefinedTable):
        migrate(connection, (*MIGRATIONS, NEXT, BROKEN))

    assert _versions(connection) == [(len(MIGRATIONS),)]
    migrate(connection, (*MIGRATIONS, NEXT))
    assert _versions(connection) == [(len(MIGRATIONS) + 1,)]


async def test_a_schema_that_fits_needs_no_rights_to_change_it(
    connection: psycopg.Connection, server: PostgresServer
) -> None:
    url = server.url(connection.info.dbname)
    await (await open_store(url)).aclose()
    connection.execute("SELECT pg_advisory_lock(1634562156)")

    await (await open_store(url)).aclose()  # waits for no lock
