"""Accounts under many workers: whatever they do and wherever they die, no budget is passed."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path

import anyio
import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amplifier.app.store.file_quotas import FileQuotas
from amplifier_kit.quotas import Claim, QuotaStore, Reservation
from tests.app.store.expiry import expire

LIMIT = Decimal(10)


@attrs.frozen
class Request:
    """What a worker does: it reserves, uses a part of that, and settles, or dies before."""

    amount: Decimal
    part: Decimal
    dies: bool
    other: bool


REQUESTS = st.builds(
    Request,
    amount=st.decimals(0, 6, places=2),
    part=st.decimals(0, 1, places=2),
    dies=st.booleans(),
    other=st.booleans(),
)
WORKERS = st.lists(st.lists(REQUESTS, max_size=4), min_size=2, max_size=5)


@given(WORKERS)
@settings(max_examples=15, deadline=None)
def test_workers_at_once_never_pass_a_budget(work: list[list[Request]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(partial(_work, Path(folder), work))


async def _work(root: Path, work: Sequence[Sequence[Request]]) -> None:
    paid: list[Decimal] = []
    # each as another process would
    async with anyio.create_task_group() as tasks:
        for requests in work:
            tasks.start_soon(_one, FileQuotas(root / "quotas.db"), requests, paid)
    expire(root)
    left = await FileQuotas(root / "quotas.db").balances()

    # what died holds nothing, and what was paid is counted once
    assert sum(each.spent for each in left if each.window == "day") == sum(paid)
    assert all(each.reserved == 0 for each in left)


async def _one(
    quotas: QuotaStore, requests: Sequence[Request], paid: list[Decimal]
) -> None:
    for request in requests:
        account = "b" if request.other else "a"
        claims = [
            Claim(account=account, amount=request.amount, limit=LIMIT, window=window)
            for window in ("day", "month")
        ]
        made = await quotas.reserve(claims, period=60)
        for balance in await quotas.balances():
            assert balance.spent + balance.reserved <= LIMIT
        if isinstance(made, Reservation) and not request.dies:
            used = request.amount * request.part
            paid.append(used)
            await quotas.settle(made, {account: used})


@pytest.mark.parametrize("content", [b"", b"no database at all, but a text"])
async def test_damaged_accounts_are_an_error_that_names_the_file(
    content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "quotas.db"
    path.write_bytes(content)
    quotas, claim = FileQuotas(path), Claim(account="a", amount=LIMIT, limit=LIMIT)
    if not content:
        # as it is before the first use
        assert isinstance(await quotas.reserve([claim], period=1), Reservation)
        return

    with pytest.raises(Exception, match=r"quotas\.db.*delete it"):
        await quotas.reserve([claim], period=1)


async def test_accounts_are_their_owners_alone(tmp_path: Path) -> None:
    quotas = FileQuotas(tmp_path / "below" / "quotas.db")
    await quotas.pause("a", 5)

    assert quotas.path.stat().st_mode & 0o077 == 0


async def test_accounts_of_a_newer_version_are_left_alone(tmp_path: Path) -> None:
    import sqlite3

    quotas = FileQuotas(tmp_path / "quotas.db")
    await quotas.pause("a", 5)
    with sqlite3.connect(quotas.path) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()

    with pytest.raises(Exception, match="update it"):
        await quotas.pauses()
