"""What stores of accounts share: the windows of budgets by their clock, and whether a claim fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import TypeAlias

from amplifier_kit.quotas import Balance, Claim, Refusal, Window

__all__ = ["Bucket", "balance_of", "bucket_of", "refused", "window_of"]

Bucket: TypeAlias = tuple[str, str]
"""An account, and which of its windows; empty for one without windows."""

_NOTHING = Decimal(0)


def bucket_of(account: str, window: Window | None, now: float) -> Bucket:
    """Return where what is used of an account at a moment is counted.

    Args:
        account: its name.
        window: for how long it counts.
        now: the moment, in seconds since the epoch.
    """
    if window is None:
        return account, ""
    day = datetime.fromtimestamp(now, UTC).date().isoformat()
    return account, day if window == "day" else day[: len("2000-01")]


def window_of(name: str) -> Window | None:
    """Return of what kind the window of a bucket is."""
    if not name:
        return None
    return "day" if len(name) == len("2000-01-01") else "month"


def balance_of(
    bucket: Bucket, spent: Decimal, reserved: Decimal, now: float
) -> Balance:
    """Return how an account stands at a moment."""
    account, name = bucket
    window = window_of(name)
    renews = None if window is None else _next(window, now)
    return Balance(
        account=account,
        window=window,
        spent=spent,
        reserved=reserved,
        renews=renews,
        renews_in=None if renews is None else renews - now,
    )


def refused(
    claims: Sequence[Claim],
    spent: Mapping[Bucket, Decimal],
    reserved: Mapping[Bucket, Decimal],
    now: float,
) -> Refusal | None:
    """Return why claims cannot be reserved at a moment; `None` where they can.

    Args:
        claims: what is wanted.
        spent: what was spent, by bucket.
        reserved: what is reserved, likewise.
        now: the moment, in seconds since the epoch.
    """
    for claim in claims:
        bucket = bucket_of(claim.account, claim.window, now)
        used, held = spent.get(bucket, _NOTHING), reserved.get(bucket, _NOTHING)
        left = claim.limit - used - held
        if left <= 0 or claim.amount > left:
            balance = balance_of(bucket, used, held, now)
            return Refusal(claim=claim, balance=balance)
    return None


def _next(window: Window, now: float) -> float:
    """Return when the window after that of a moment begins."""
    at = datetime.fromtimestamp(now, UTC)
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    if window == "day":
        # UTC has no days of other lengths to a clock that counts from the epoch
        return midnight.timestamp() + 86_400
    is_last = at.month == 12
    first = midnight.replace(
        year=at.year + is_last, month=1 if is_last else at.month + 1, day=1
    )
    return first.timestamp()
