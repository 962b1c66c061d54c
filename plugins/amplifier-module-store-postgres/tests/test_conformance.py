"""The suite of stores, on a real server."""

from __future__ import annotations

import attrs
import psycopg
import pytest

from amplifier.testing.postgres import PostgresServer
from amplifier.testing.stores import (
    MeteredStoreTests,
    SessionStoreTests,
    StoreSubject,
)
from amplifier_module_store_postgres import open_store
from amplifier_sdk import SessionStore

pytestmark = pytest.mark.process


@attrs.frozen
class _Postgres:
    """The sessions of a namespace, as the subject of the suite."""

    url: str
    namespace: str

    async def open(self) -> SessionStore:
        return await open_store(self.url, namespace=self.namespace)

    async def expire_leases(self) -> None:
        with psycopg.connect(self.url) as connection:
            connection.execute(
                "UPDATE amplifier.sessions SET lease_expires = clock_timestamp()"
                " WHERE namespace = %s AND lease_expires > clock_timestamp()",
                (self.namespace,),
            )
            connection.execute(
                "UPDATE amplifier.reservations SET expires = clock_timestamp()"
                " WHERE namespace = %s",
                (self.namespace,),
            )


class TestPostgres(SessionStoreTests, MeteredStoreTests):
    @pytest.fixture
    def subject(self, server: PostgresServer, namespace: str) -> StoreSubject:
        return _Postgres(server.url(), namespace)
