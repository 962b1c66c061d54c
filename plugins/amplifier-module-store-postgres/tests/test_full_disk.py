"""A server whose disk is full: one clear error, nothing half done, and what was stored is there when it has room."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from amplifier.testing.postgres import PostgresServer
from amplifier_module_store_postgres import open_store
from amplifier_sdk.errors import StoreUnavailableError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import LogEntry

pytestmark = pytest.mark.process

RECORD: JSONObject = {"version": 1, "session_id": "s1"}
LARGE = LogEntry(kind="note", data={"text": "x" * 200_000}, at=1.0)


@contextmanager
def small_disk() -> Iterator[Path]:
    """Mount a disk of a few megabytes, where that is permitted."""
    folder = Path(tempfile.mkdtemp(prefix="amplifier-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)]
    try:
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("needs the right to mount a file system")
        try:
            shutil.chown(folder, "postgres")
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
    finally:
        folder.rmdir()


@contextmanager
def database_on(server: PostgresServer, folder: Path) -> Iterator[str]:
    """Make a database whose tables are on a disk."""
    place = sql.Literal(str(folder))
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE TABLESPACE small LOCATION {}").format(place))
        connection.execute("CREATE DATABASE small TABLESPACE small")
        try:
            yield server.url("small")
        finally:
            connection.execute("DROP DATABASE small WITH (FORCE)")
            connection.execute("DROP TABLESPACE small")


async def test_a_full_disk_takes_nothing_by_halves(server: PostgresServer) -> None:
    with small_disk() as folder, database_on(server, folder) as url:
        store = await open_store(url, namespace="shop")
        lease = await store.acquire("s1", owner="worker 1", period=600)
        await store.write_record(lease, RECORD)
        # what fills the disk, and is in the way
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE ballast (piece text)")
            connection.execute("ALTER TABLE ballast ALTER piece SET STORAGE EXTERNAL")
            with pytest.raises(psycopg.errors.DiskFull):
                while True:
                    connection.execute("INSERT INTO ballast VALUES (repeat('x', 8000))")
        stored = 0
        with pytest.raises(StoreUnavailableError) as refused:
            while True:
                await store.append(lease, "journal", [LARGE, LARGE])
                stored += 2
        during = (await store.read_log("s1", "journal")).entries
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP TABLE ballast")
            connection.execute("CHECKPOINT")
        await store.append(lease, "journal", [LARGE, LARGE])
        after = (await store.read_log("s1", "journal")).entries
        await store.aclose()

    told = str(refused.value)
    assert told.endswith("Make room on the server's disk")
    assert told.startswith("PostgreSQL at 127.0.0.1:")
    assert len(during) == stored
    assert len(after) == stored + 2
