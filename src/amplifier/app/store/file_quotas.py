"""Accounts that the processes of one machine share: a SQLite file beside their sessions, by the machine's clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, TypeVar
from uuid import uuid4

import attrs
from anyio import to_thread

from amplifier.app.store.index import make_private
from amplifier_kit.files.private_append import make_folders
from amplifier_kit.quotas import Balance, Claim, Refusal, Reservation
from amplifier_kit.windows import Bucket, balance_of, bucket_of, refused
from amplifier_sdk.errors import StoreError, StoreUnavailableError

if TYPE_CHECKING:
    import sqlite3

__all__ = ["QUOTAS", "FileQuotas"]

P = ParamSpec("P")
T = TypeVar("T")

QUOTAS: Final = "quotas.db"
"""The file's name, beside the folder of the sessions."""

_VERSION: Final = 1
_TIMEOUT: Final = 10.0
_LATE: Final = 7 * 86_400.0
"""Seconds for which what was reserved by a dead process may still be settled."""

# amounts are decimal text: SQLite's numbers are binary
_ACCOUNTS: Final = """
CREATE TABLE IF NOT EXISTS accounts (
    account TEXT, bucket TEXT, spent TEXT, PRIMARY KEY (account, bucket)
) WITHOUT ROWID
"""
_RESERVATIONS: Final = """
CREATE TABLE IF NOT EXISTS reservations (
    reservation_id TEXT, account TEXT, bucket TEXT, amount TEXT, expires REAL,
    PRIMARY KEY (account, bucket, reservation_id)
) WITHOUT ROWID
"""
_PAUSES: Final = """
CREATE TABLE IF NOT EXISTS pauses (account TEXT PRIMARY KEY, until REAL) WITHOUT ROWID
"""


@attrs.frozen(eq=False)
class FileQuotas:
    """The accounts of a file as `amplifier_kit.quotas.QuotaStore`.

    Args:
        path: the file; it is made when something is first reserved or paused.
    """

    path: Path

    async def reserve(
        self, claims: Sequence[Claim], *, period: float
    ) -> Reservation | Refusal:
        """Reserve all claims, or nothing; see the protocol, as of all methods."""
        return await self._run(_reserve, tuple(claims), period)

    async def renew(self, reservation_ids: Sequence[str], *, period: float) -> None:
        """Have reservations end a whole period from now; those that have ended stay so."""
        await self._run(_renew, reservation_ids, period)

    async def settle(
        self, reservation: Reservation, used: Mapping[str, Decimal]
    ) -> None:
        """End a reservation, and count what was used of its accounts."""
        await self._run(_settle, reservation.reservation_id, used)

    async def balances(self, begin: str = "") -> tuple[Balance, ...]:
        """Return how accounts stand of which something is spent or reserved."""
        if not await to_thread.run_sync(self.path.exists):
            return ()
        return await self._run(_balances, begin)

    async def pause(self, account: str, seconds: float) -> None:
        """Pause an account for a time from now; a longer pause that it has stays."""
        await self._run(_pause, account, seconds)

    async def pauses(self) -> Mapping[str, float]:
        """Return the accounts that are paused, with the seconds that are left."""
        if not await to_thread.run_sync(self.path.exists):
            return {}
        return await self._run(_pauses)

    async def _run(
        self,
        function: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a function in a thread and in one transaction: all that it did, or nothing.

        Raises:
            StoreUnavailableError: others write the file for longer than that takes.
            StoreError: it is no such file, or a newer version's.
        """

        def call() -> T:
            with self._transaction() as connection:
                return function(connection, *args, **kwargs)

        return await to_thread.run_sync(call)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            # not every Python is built with it
            import sqlite3
        except ImportError as error:
            raise StoreError("Limits of a server need Python's sqlite3") from error
        make_folders(self.path.parent)
        make_private(self.path)
        try:
            opened = sqlite3.connect(self.path, timeout=_TIMEOUT, isolation_level=None)
            with closing(opened) as connection:
                # a writer from the beginning: what is read is not changed by others meanwhile
                connection.execute("BEGIN IMMEDIATE")
                _prepare(connection, self.path)
                yield connection
                connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise StoreUnavailableError(f"{str(self.path)!r}: {error}") from error
        except sqlite3.Error as error:
            remedy = "delete it while no server runs; it has the spending of this month"
            raise StoreError(f"{str(self.path)!r}: {error}; {remedy}") from error


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > _VERSION:
        problem = f"has version {version}; this Amplifier knows {_VERSION}"
        raise StoreError(f"{str(path)!r} {problem}: update it")
    if version < _VERSION:
        for table in (_ACCOUNTS, _RESERVATIONS, _PAUSES):
            connection.execute(table)
        connection.execute(f"PRAGMA user_version = {_VERSION}")


def _reserve(
    connection: sqlite3.Connection,
    claims: tuple[Claim, ...],
    period: float,
) -> Reservation | Refusal:
    now = time.time()
    buckets = [bucket_of(claim.account, claim.window, now) for claim in claims]
    spent = {bucket: _spent(connection, bucket) for bucket in buckets}
    held = {bucket: _held(connection, bucket, now) for bucket in buckets}
    refusal = refused(claims, spent, held, now)
    if refusal is not None:
        return refusal
    made = Reservation(reservation_id=uuid4().hex)
    connection.executemany(
        "INSERT INTO reservations VALUES (?, ?, ?, ?, ?)",
        [
            (made.reservation_id, *bucket, str(claim.amount), now + period)
            for bucket, claim in zip(buckets, claims, strict=True)
        ],
    )
    return made


def _renew(
    connection: sqlite3.Connection, reservation_ids: Sequence[str], period: float
) -> None:
    now = time.time()
    connection.executemany(
        "UPDATE reservations SET expires = ? WHERE reservation_id = ? AND expires > ?",
        [(now + period, each, now) for each in reservation_ids],
    )
    connection.execute("DELETE FROM reservations WHERE expires < ?", (now - _LATE,))


def _settle(
    connection: sqlite3.Connection, reservation_id: str, used: Mapping[str, Decimal]
) -> None:
    buckets = connection.execute(
        "DELETE FROM reservations WHERE reservation_id = ? RETURNING account, bucket",
        (reservation_id,),
    ).fetchall()
    for account, name in buckets:
        # one without a window is free again
        if name and used.get(account):
            spent = _spent(connection, (account, name)) + used[account]
            connection.execute(
                "INSERT OR REPLACE INTO accounts VALUES (?, ?, ?)",
                (account, name, str(spent)),
            )


def _balances(connection: sqlite3.Connection, begin: str) -> tuple[Balance, ...]:
    now = time.time()
    names = [bucket_of("", window, now)[1] for window in (None, "day", "month")]
    found = connection.execute(
        "SELECT account, bucket FROM accounts WHERE bucket IN (?, ?, ?) UNION"
        " SELECT account, bucket FROM reservations WHERE bucket IN (?, ?, ?)"
        " ORDER BY account, bucket",
        (*names, *names),
    ).fetchall()
    balances = [
        balance_of(
            bucket, _spent(connection, bucket), _held(connection, bucket, now), now
        )
        for bucket in found
        if bucket[0].startswith(begin)
    ]
    return tuple(each for each in balances if each.spent or each.reserved)


def _pause(connection: sqlite3.Connection, account: str, seconds: float) -> None:
    connection.execute(
        "INSERT INTO pauses VALUES (?, ?) ON CONFLICT (account)"
        " DO UPDATE SET until = max(until, excluded.until)",
        (account, time.time() + seconds),
    )


def _pauses(connection: sqlite3.Connection) -> Mapping[str, float]:
    now = time.time()
    found = connection.execute(
        "SELECT account, until - ? FROM pauses WHERE until > ? ORDER BY account",
        (now, now),
    )
    return dict(found.fetchall())


def _spent(connection: sqlite3.Connection, bucket: Bucket) -> Decimal:
    found = connection.execute(
        "SELECT spent FROM accounts WHERE account = ? AND bucket = ?", bucket
    ).fetchone()
    return Decimal(0) if found is None else Decimal(found[0])


def _held(connection: sqlite3.Connection, bucket: Bucket, now: float) -> Decimal:
    found = connection.execute(
        "SELECT amount FROM reservations"
        " WHERE account = ? AND bucket = ? AND expires > ?",
        (*bucket, now),
    )
    return sum((Decimal(amount) for (amount,) in found), Decimal(0))
