"""Accounts in real processes: they pass no budget together, whoever is killed or whose connection breaks."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from typing import Final

import anyio
import psycopg
import pytest

from amplifier.testing.postgres import PostgresServer
from amplifier_kit.quotas import Claim, Refusal, Reservation
from amplifier_module_store_postgres import open_store

pytestmark = pytest.mark.process

LIMIT: Final = Decimal(10)
SPENDER: Final = """
import sys
from decimal import Decimal
import anyio
from amplifier_module_store_postgres import open_store
from amplifier_kit.quotas import Claim, Reservation

async def main(url, namespace, is_last):
    store = await open_store(url, namespace=namespace)
    claims = [
        Claim(account="tenant/a/cost_usd", amount=Decimal("0.37"), limit=Decimal(10), window=window)
        for window in ("day", "month")
    ]
    spent = 0
    while True:
        made = await store.quotas.reserve(claims, period=60)
        if not isinstance(made, Reservation):
            if made.is_final:
                break
            continue  # others hold what is left, and may use less
        if is_last == "dies" and spent == 3:
            print("reserved", flush=True)
            await anyio.sleep_forever()
        await store.quotas.settle(made, {"tenant/a/cost_usd": Decimal("0.31")})
        spent += 1
    print(spent, flush=True)
    await store.aclose()

anyio.run(main, *sys.argv[1:])
"""


def spender(server: PostgresServer, namespace: str, what: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", SPENDER, server.url(), namespace, what]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


async def test_processes_pass_no_budget_and_one_that_is_killed_gives_its_part_back(
    server: PostgresServer, namespace: str
) -> None:
    store = await open_store(server.url(), namespace=namespace)
    with spender(server, namespace, "dies") as dying:
        assert dying.stdout is not None
        assert dying.stdout.readline() == "reserved\n"
        dying.kill()
    with (
        spender(server, namespace, "ends") as one,
        spender(server, namespace, "ends") as two,
    ):
        balances: list[Decimal] = []
        with anyio.fail_after(60):
            # until the dead one's part alone is left of what could be reserved
            while not balances or balances[-1] + Decimal("0.37") <= LIMIT:
                (day, _) = await store.quotas.balances()
                assert day.spent + day.reserved <= LIMIT
                balances.append(day.spent + day.reserved)
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(
                "UPDATE amplifier.reservations SET expires = clock_timestamp()"
                " WHERE namespace = %s AND reservation_id IN (SELECT reservation_id"
                " FROM amplifier.reservations WHERE namespace = %s"
                " ORDER BY expires LIMIT 1)",
                (namespace, namespace),
            )
        outputs = [each.stdout.read() for each in (one, two) if each.stdout]
    (day, month) = await store.quotas.balances()
    await store.aclose()

    # three of the one that was killed, and all of the others
    assert day.spent == month.spent == Decimal("0.31") * (3 + sum(map(int, outputs)))
    assert LIMIT - Decimal("0.37") < day.spent <= LIMIT
    assert day.reserved == 0


async def test_connection_that_is_lost_while_it_reserves_holds_nothing_for_long(
    server: PostgresServer, namespace: str
) -> None:
    """Whoever lost it cannot know what was reserved, and renews nothing of it."""
    store = await open_store(server.url(), namespace=namespace)
    claim = Claim(account="a", amount=Decimal(8), limit=LIMIT, window="day")
    await store.quotas.reserve([claim], period=0.3)
    refused = await store.quotas.reserve([claim], period=60)
    await store.quotas.renew([], period=60)
    with anyio.fail_after(10):
        while isinstance(refused, Refusal):
            refused = await store.quotas.reserve([claim], period=60)
    await store.aclose()

    assert isinstance(refused, Reservation)


async def test_accounts_of_a_namespace_are_its_own(
    server: PostgresServer, namespace: str
) -> None:
    store = await open_store(server.url(), namespace=namespace)
    other = store.in_namespace(f"{namespace}-2")
    claim = Claim(account="a", amount=LIMIT, limit=LIMIT, window="day")
    first = await store.quotas.reserve([claim], period=60)
    second = await other.quotas.reserve([claim], period=60)
    await store.quotas.pause("a", 60)
    paused = await other.quotas.pauses()
    await store.aclose()

    assert isinstance(first, Reservation)
    assert isinstance(second, Reservation)
    assert paused == {}
