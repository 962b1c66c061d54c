"""Days and months of budgets, by the clock of whoever counts."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_kit.quotas import Window
from amplifier_kit.windows import balance_of, bucket_of, window_of

MOMENTS = st.floats(0, 4e9)


def at(text: str) -> float:
    return datetime.fromisoformat(f"{text}+00:00").timestamp()


@pytest.mark.parametrize(
    ("window", "now", "name", "renews"),
    [
        ("day", "2026-11-28T23:59:59", "2026-11-28", "2026-11-29T00:00:00"),
        ("day", "2026-12-31T00:00:00", "2026-12-31", "2027-01-01T00:00:00"),
        ("month", "2026-12-31T23:59:59", "2026-12", "2027-01-01T00:00:00"),
        ("month", "2028-02-29T12:00:00", "2028-02", "2028-03-01T00:00:00"),
        ("month", "2026-01-31T12:00:00", "2026-01", "2026-02-01T00:00:00"),
    ],
)
def test_window_ends_with_its_day_or_month(
    window: Window, now: str, name: str, renews: str
) -> None:
    bucket = bucket_of("a", window, at(now))
    balance = balance_of(bucket, Decimal(1), Decimal(2), at(now))

    assert bucket == ("a", name)
    assert balance.renews == at(renews)
    assert balance.renews_in == at(renews) - at(now)


def test_account_without_a_window_never_renews() -> None:
    balance = balance_of(bucket_of("a", None, 5.0), Decimal(1), Decimal(2), 5.0)

    assert (balance.window, balance.renews, balance.renews_in) == (None, None, None)


@given(MOMENTS, st.sampled_from(["day", "month"]))
def test_next_window_is_another_one_and_none_is_between(
    now: float, window: Window
) -> None:
    bucket = bucket_of("a", window, now)
    balance = balance_of(bucket, Decimal(0), Decimal(0), now)
    assert balance.renews is not None

    assert window_of(bucket[1]) == window
    assert balance.renews > now
    assert bucket_of("a", window, balance.renews) != bucket
    assert bucket_of("a", window, balance.renews - 1) == bucket
    assert datetime.fromtimestamp(balance.renews, UTC).hour == 0
