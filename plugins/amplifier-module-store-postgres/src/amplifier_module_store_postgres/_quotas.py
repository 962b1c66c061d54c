"""Accounts that processes share, by the server's clock. Each method is one transaction, run in a worker thread.

Whoever changes an account locks its row first, in the order of names: two claims on several accounts do not wait for
each other, and what the one reserved is seen by the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final
from uuid import uuid4

import attrs

from amplifier_kit.quotas import Balance, Claim, Refusal, Reservation
from amplifier_kit.windows import balance_of, bucket_of, refused
from amplifier_module_store_postgres._database import Connection, Database

__all__ = ["PostgresQuotas"]

_LATE: Final = "7 days"
"""For how long what was reserved by a dead process may still be settled."""

_NOW: Final = "SELECT extract(epoch FROM clock_timestamp())::double precision"
_MAKE: Final = """
INSERT INTO amplifier.accounts (namespace, account, bucket)
SELECT %s, wanted.account, wanted.bucket
FROM unnest(%s::text[], %s::text[]) AS wanted (account, bucket)
ORDER BY wanted.account, wanted.bucket
ON CONFLICT DO NOTHING
"""
_LOCK: Final = """
SELECT account, bucket, spent FROM amplifier.accounts
WHERE namespace = %s AND (account, bucket) IN
    (SELECT * FROM unnest(%s::text[], %s::text[]))
ORDER BY account, bucket
FOR UPDATE
"""
_HELD: Final = """
SELECT account, bucket, sum(amount) FROM amplifier.reservations
WHERE namespace = %s AND expires > clock_timestamp() AND (account, bucket) IN
    (SELECT * FROM unnest(%s::text[], %s::text[]))
GROUP BY account, bucket
"""
_RESERVE: Final = """
INSERT INTO amplifier.reservations
    (namespace, reservation_id, account, bucket, amount, expires)
SELECT %s, %s, wanted.account, wanted.bucket, wanted.amount,
    clock_timestamp() + make_interval(secs => %s)
FROM unnest(%s::text[], %s::text[], %s::numeric[]) AS wanted (account, bucket, amount)
"""
_RENEW: Final = """
UPDATE amplifier.reservations
SET expires = clock_timestamp() + make_interval(secs => %s)
WHERE namespace = %s AND reservation_id = ANY(%s) AND expires > clock_timestamp()
"""
_FORGET: Final = f"""
DELETE FROM amplifier.reservations
WHERE namespace = %s AND expires < clock_timestamp() - interval '{_LATE}'
"""  # noqa: S608  # of this module's own constant
_SETTLE: Final = """
DELETE FROM amplifier.reservations
WHERE namespace = %s AND reservation_id = %s
RETURNING account, bucket
"""
_SPEND: Final = """
UPDATE amplifier.accounts SET spent = spent + %s
WHERE namespace = %s AND account = %s AND bucket = %s
"""
_BALANCES: Final = """
SELECT account, bucket, spent, coalesce((
    SELECT sum(amount) FROM amplifier.reservations AS held
    WHERE held.namespace = accounts.namespace AND held.account = accounts.account
        AND held.bucket = accounts.bucket AND held.expires > clock_timestamp()), 0)
FROM amplifier.accounts AS accounts
WHERE namespace = %s AND bucket = ANY(%s) AND starts_with(account, %s)
ORDER BY account, bucket
"""
_PAUSE: Final = """
INSERT INTO amplifier.pauses AS paused (namespace, account, until)
VALUES (%s, %s, clock_timestamp() + make_interval(secs => %s))
ON CONFLICT (namespace, account) DO UPDATE
SET until = greatest(paused.until, excluded.until)
"""
_PAUSES: Final = """
SELECT account, extract(epoch FROM until - clock_timestamp())::double precision
FROM amplifier.pauses WHERE namespace = %s AND until > clock_timestamp()
ORDER BY account
"""


@attrs.frozen(eq=False)
class PostgresQuotas:
    """The accounts of a namespace as `amplifier_kit.quotas.QuotaStore`.

    Args:
        database: the connections.
        namespace: whose accounts they are.
    """

    database: Database
    namespace: str

    async def reserve(
        self, claims: Sequence[Claim], *, period: float
    ) -> Reservation | Refusal:
        """Reserve all claims, or nothing; see the protocol, as of all methods."""
        return await self.database.run(_reserve, self.namespace, tuple(claims), period)

    async def renew(self, reservation_ids: Sequence[str], *, period: float) -> None:
        """Have reservations end a whole period from now; those that have ended stay so."""
        await self.database.run(_renew, self.namespace, [*reservation_ids], period)

    async def settle(
        self, reservation: Reservation, used: Mapping[str, Decimal]
    ) -> None:
        """End a reservation, and count what was used of its accounts."""
        id_ = reservation.reservation_id
        await self.database.run(_settle, self.namespace, id_, used)

    async def balances(self, begin: str = "") -> tuple[Balance, ...]:
        """Return how accounts stand of which something is spent or reserved."""
        return await self.database.run(_balances, self.namespace, begin)

    async def pause(self, account: str, seconds: float) -> None:
        """Pause an account for a time from now; a longer pause that it has stays."""
        await self.database.run(_pause, self.namespace, account, seconds)

    async def pauses(self) -> Mapping[str, float]:
        """Return the accounts that are paused, with the seconds that are left."""
        return await self.database.run(_pauses, self.namespace)


def _reserve(
    connection: Connection, namespace: str, claims: tuple[Claim, ...], period: float
) -> Reservation | Refusal:
    made = Reservation(reservation_id=uuid4().hex)
    now = _now(connection)
    buckets = [bucket_of(claim.account, claim.window, now) for claim in claims]
    names = [account for account, _ in buckets]
    windows = [name for _, name in buckets]
    wanted = (namespace, names, windows)
    connection.execute(_MAKE, wanted)
    locked = connection.execute(_LOCK, wanted).fetchall()
    # read after the rows are locked: whoever had them before has reserved by now
    held = connection.execute(_HELD, wanted).fetchall()
    refusal = refused(
        claims,
        {(account, name): spent for account, name, spent in locked},
        {(account, name): amount for account, name, amount in held},
        now,
    )
    if refusal is not None:
        return refusal
    amounts = [claim.amount for claim in claims]
    row = (namespace, made.reservation_id, period, names, windows, amounts)
    connection.execute(_RESERVE, row)
    return made


def _renew(
    connection: Connection, namespace: str, reservation_ids: list[str], period: float
) -> None:
    connection.execute(_RENEW, (period, namespace, reservation_ids))
    connection.execute(_FORGET, (namespace,))


def _settle(
    connection: Connection,
    namespace: str,
    reservation_id: str,
    used: Mapping[str, Decimal],
) -> None:
    ended = connection.execute(_SETTLE, (namespace, reservation_id)).fetchall()
    for account, bucket in sorted(ended):
        # one without a window is free again
        if bucket and used.get(account):
            connection.execute(_SPEND, (used[account], namespace, account, bucket))


def _balances(
    connection: Connection, namespace: str, begin: str
) -> tuple[Balance, ...]:
    now = _now(connection)
    buckets = (bucket_of("", window, now)[1] for window in (None, "day", "month"))
    found = connection.execute(_BALANCES, (namespace, [*buckets], begin)).fetchall()
    return tuple(
        balance_of((account, name), spent, reserved, now)
        for account, name, spent, reserved in found
        if spent or reserved
    )


def _pause(
    connection: Connection, namespace: str, account: str, seconds: float
) -> None:
    connection.execute(_PAUSE, (namespace, account, seconds))


def _pauses(connection: Connection, namespace: str) -> Mapping[str, float]:
    return dict(connection.execute(_PAUSES, (namespace,)).fetchall())


def _now(connection: Connection) -> float:
    ((now,),) = connection.execute(_NOW).fetchall()
    return float(now)
