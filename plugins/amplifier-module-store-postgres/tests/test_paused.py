"""A worker that is stopped, loses its session to another one and runs on, writes nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Final

import anyio
import psycopg
import pytest

from amplifier.testing.postgres import PostgresServer
from amplifier_module_store_postgres import open_store
from amplifier_sdk.stores import LogEntry

pytestmark = pytest.mark.process

WORKER: Final = """
import sys
import anyio
from amplifier_module_store_postgres import open_store
from amplifier_sdk.errors import LeaseLostError, StoreUnavailableError
from amplifier_sdk.stores import LogEntry

async def main(url, namespace):
    store = await open_store(url, namespace=namespace)
    lease = await store.acquire("s1", owner="paused", period=60)
    await store.write_record(lease, {"version": 1, "session_id": "s1"})
    number = 0
    while True:
        entry = LogEntry(kind="step", data=number, at=0.5)
        try:
            await store.append(lease, "journal", [entry])
        except StoreUnavailableError:
            continue  # its transaction was ended, and nothing of it was done
        except LeaseLostError:
            print("lost", number, flush=True)
            break
        print(number, flush=True)
        number += 1
    await store.aclose()

anyio.run(main, *sys.argv[1:])
"""
TAKEN_OVER: Final = LogEntry(kind="step", data="taken over", at=0.5)


async def test_a_paused_worker_is_fenced(
    server: PostgresServer, namespace: str
) -> None:
    store = await open_store(server.url(), namespace=namespace)
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, server.url(), namespace],
        stdout=subprocess.PIPE,
        text=True,
    ) as worker:
        assert worker.stdout is not None
        for _ in range(20):  # it is in the middle of its steps
            worker.stdout.readline()
        worker.send_signal(signal.SIGSTOP)
        # Its last statement may hold the row until the server ends the transaction.
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE state = 'idle in transaction'"
            )
            connection.execute(
                "UPDATE amplifier.sessions SET lease_expires = clock_timestamp()"
                " WHERE namespace = %s",
                (namespace,),
            )
        with anyio.fail_after(20):
            lease = await store.acquire("s1", owner="worker 2", period=60)
            await store.append(lease, "journal", [TAKEN_OVER])
        steps = (await store.read_log("s1", "journal")).entries
        worker.send_signal(signal.SIGCONT)
        *_, last = worker.stdout.read().splitlines()

    assert (await store.read_log("s1", "journal")).entries == steps
    assert [each.data for each in steps] == [*range(len(steps) - 1), "taken over"]
    assert last == f"lost {len(steps) - 1}"
    await store.aclose()
