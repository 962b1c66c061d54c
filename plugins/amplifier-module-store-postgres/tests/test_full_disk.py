"""A server whose disk is full: one clear error, nothing half done, and what was stored is there when it has room."""

from __future__ import annotations

import pytest

from amplifier.testing.postgres import PostgresServer, small_disk
from amplifier_module_store_postgres import open_store
from amplifier_sdk.errors import StoreUnavailableError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import LogEntry

pytestmark = pytest.mark.process

RECORD: JSONObject = {"version": 1, "session_id": "s1"}
LARGE = LogEntry(kind="note", data={"text": "x" * 200_000}, at=1.0)


async def test_a_full_disk_takes_nothing_by_halves(server: PostgresServer) -> None:
    with small_disk(server) as disk:
        if disk is None:
            pytest.skip("needs the right to mount a file system")
        store = await open_store(disk.url, namespace="shop")
        lease = await store.acquire("s1", owner="worker 1", period=600)
        await store.write_record(lease, RECORD)
        disk.fill()
        stored = 0
        with pytest.raises(StoreUnavailableError) as refused:
            while True:
                await store.append(lease, "journal", [LARGE, LARGE])
                stored += 2
        during = (await store.read_log("s1", "journal")).entries
        disk.make_room()
        await store.append(lease, "journal", [LARGE, LARGE])
        after = (await store.read_log("s1", "journal")).entries
        await store.aclose()

    text = str(refused.value)
    assert text.endswith("Make room on the server's disk")
    assert text.startswith("PostgreSQL at 127.0.0.1:")
    assert len(during) == stored
    assert len(after) == stored + 2
