"""The tables of every version become those of the newest one: once, all steps or none."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from amplifier.testing.postgres import PostgresServer
from amplifier_module_store_postgres import open_store
from amplifier_module_store_postgres._schema import MIGRATIONS, migrate

pytestmark = pytest.mark.process

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
