"""Intervals: figures from the papers and from tables, and what must hold for all."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist, fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.testing.evals.intervals import (
    Interval,
    mean_interval,
    rate_difference,
    student_quantile,
    wilson,
)

Z = NormalDist().inv_cdf(0.975)
counts = st.integers(1, 2_000).flatmap(
    lambda total: st.tuples(st.integers(0, total), st.just(total))
)


# Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3
@pytest.mark.parametrize(
    ("passed", "total", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_agrees_with_the_paper(
    passed: int, total: int, low: float, high: float
) -> None:
    interval = wilson(passed, total)

    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=5e-5)


# Newcombe 1998, "Interval estimation for the difference between independent proportions", table II, method 10
@pytest.mark.parametrize(
    ("new", "old", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((10, 10), (0, 10), 0.6075, 1.0000),
        ((0, 10), (0, 20), -0.1611, 0.2775),
    ],
)
def test_differences_agree_with_the_paper(
    new: tuple[int, int], old: tuple[int, int], low: float, high: float
) -> None:
    interval = rate_difference(old, new)

    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=5e-5)


# the tables of every textbook
@pytest.mark.parametrize(
    ("probability", "freedom", "value"),
    [
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.975, 3, 3.182),
        (0.975, 4, 2.776),
        (0.975, 5, 2.571),
        (0.975, 10, 2.228),
        (0.975, 30, 2.042),
        (0.975, 120, 1.980),
        (0.995, 5, 4.032),
        (0.9, 4, 1.533),
        (0.75, 3, 0.765),
        (0.55, 3, 0.137),
        (0.999, 7, 4.785),
    ],
)
def test_student_agrees_with_the_tables(
    probability: float, freedom: int, value: float
) -> None:
    assert student_quantile(probability, freedom) == pytest.approx(value, abs=6e-4)


def test_nothing_is_said_of_too_few() -> None:
    assert wilson(0, 0) is None
    assert mean_interval([]) is None
    assert mean_interval([1.0]) is None
    assert rate_difference((0, 0), (1, 1)) is None
    assert rate_difference((1, 1), (0, 0)) is None


@given(counts)
def test_wilson_holds_the_rate_and_is_its_own_mirror(count: tuple[int, int]) -> None:
    passed, total = count
    interval, mirror = wilson(passed, total), wilson(total - passed, total)

    assert interval is not None
    assert mirror is not None
    assert 0 <= interval.low <= passed / total <= interval.high <= 1
    assert passed / total in interval
    assert interval.low == pytest.approx(1 - mirror.high, abs=1e-12)


@given(counts)
def test_wilsons_ends_are_the_rates_that_a_score_test_just_accepts(
    count: tuple[int, int],
) -> None:
    passed, total = count
    interval = wilson(passed, total)

    assert interval is not None
    for end in (interval.low, interval.high):
        if 1e-9 < end < 1 - 1e-9:
            z = abs(passed / total - end) / sqrt(end * (1 - end) / total)
            assert z == pytest.approx(Z, rel=1e-6)


@given(counts, st.integers(2, 20))
def test_more_trials_narrow_the_interval(count: tuple[int, int], factor: int) -> None:
    few = wilson(*count)
    many = wilson(count[0] * factor, count[1] * factor)

    assert few is not None
    assert many is not None
    assert many.high - many.low < few.high - few.low


@given(counts, counts)
def test_a_difference_holds_itself_and_turns_with_its_runs(
    old: tuple[int, int], new: tuple[int, int]
) -> None:
    there, back = rate_difference(old, new), rate_difference(new, old)

    assert there is not None
    assert back is not None
    change = new[0] / new[1] - old[0] / old[1]
    assert -1 - 1e-9 <= there.low <= change + 1e-12
    assert change - 1e-12 <= there.high <= 1 + 1e-9
    assert there.low == pytest.approx(-back.high, abs=1e-9)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40), st.floats(-1e3, 1e3))
def test_a_mean_stands_in_the_middle_and_moves_with_its_values(
    values: list[float], by: float
) -> None:
    interval = mean_interval(values)
    moved = mean_interval([value + by for value in values])

    assert interval is not None
    assert moved is not None
    scale = max(map(abs, values), default=1) + abs(by) + 1
    assert (interval.low + interval.high) / 2 == pytest.approx(
        fmean(values), abs=1e-9 * scale
    )
    assert moved.low - interval.low == pytest.approx(by, abs=1e-6 * scale)


@given(st.floats(0.5, 0.9995), st.integers(1, 300))
def test_quantiles_grow_with_the_probability_and_shrink_towards_the_normal(
    probability: float, freedom: int
) -> None:
    value = student_quantile(probability, freedom)

    assert value <= student_quantile(probability + 0.0004, freedom)
    assert value >= NormalDist().inv_cdf(probability) - 1e-4


def test_an_interval_excludes_zero_only_where_it_is_on_one_side() -> None:
    assert Interval(0.1, 0.2).excludes_zero
    assert Interval(-0.2, -0.1).excludes_zero
    assert not Interval(0, 0.2).excludes_zero
    assert not Interval(-0.1, 0.2).excludes_zero
