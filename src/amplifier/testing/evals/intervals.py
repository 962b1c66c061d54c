"""Confidence intervals of rates, of means, and of the differences between two rates.

Rates have Wilson's score interval (Wilson 1927), which is right for few trials and for rates of 0 and 1, where the
usual one is empty. Means have Student's t interval. The difference of two rates has Newcombe's hybrid score interval
(Newcombe 1998, method 10), made of the two Wilson intervals.

Each interval takes the cases as given and the trials as independent: it says how far chance alone would move the
figure if the same cases ran again. It does not speak of cases that nobody wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, exp, pi, sin, sqrt
from statistics import NormalDist, fmean, stdev
from typing import Final

import attrs

from amplifier_sdk.values import Value

__all__ = [
    "CONFIDENCE",
    "Interval",
    "mean_interval",
    "rate_difference",
    "student_quantile",
    "wilson",
]

CONFIDENCE: Final = 0.95
"""The confidence of every interval in a report."""


@attrs.frozen(eq=False, repr=False)
class Interval(Value):
    """A confidence interval, its ends included."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def excludes_zero(self) -> bool:
        """Whether all of it is on one side of zero."""
        return self.low > 0 or self.high < 0


def wilson(
    passed: int, total: int, *, confidence: float = CONFIDENCE
) -> Interval | None:
    """Return Wilson's score interval of a rate; `None` where nothing was tried."""
    if total == 0:
        return None
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    rate = passed / total
    scale = 1 + z * z / total
    centre = (rate + z * z / (2 * total)) / scale
    half = z * sqrt(rate * (1 - rate) / total + z * z / (4 * total * total)) / scale
    # rounding may leave the ends of 0 and 1 on the wrong side of the rate itself
    return Interval(
        max(0.0, min(rate, centre - half)), min(1.0, max(rate, centre + half))
    )


def mean_interval(
    values: Sequence[float], *, confidence: float = CONFIDENCE
) -> Interval | None:
    """Return Student's t interval of a mean; `None` for fewer than two values, which say nothing of their spread."""
    if len(values) < 2:
        return None
    mean = fmean(values)
    half = student_quantile((1 + confidence) / 2, len(values) - 1)
    half *= stdev(values) / sqrt(len(values))
    return Interval(mean - half, mean + half)


def rate_difference(
    before: tuple[int, int], after: tuple[int, int], *, confidence: float = CONFIDENCE
) -> Interval | None:
    """Return Newcombe's interval of a rate less an earlier one; `None` where either has no trials.

    Args:
        before: how many trials passed, of how many.
        after: the same, later.
        confidence: of the interval.
    """
    old = wilson(*before, confidence=confidence)
    new = wilson(*after, confidence=confidence)
    if old is None or new is None:
        return None
    old_rate, new_rate = before[0] / before[1], after[0] / after[1]
    change = new_rate - old_rate
    down = sqrt((new_rate - new.low) ** 2 + (old.high - old_rate) ** 2)
    up = sqrt((new.high - new_rate) ** 2 + (old_rate - old.low) ** 2)
    return Interval(change - down, change + up)


def student_quantile(probability: float, freedom: int) -> float:
    """Return the value below which Student's t lies with a probability of at least one half.

    Exact for one and two degrees of freedom, Hill's approximation (CACM algorithm 396, 1970) for more.

    Args:
        probability: from 0.5 to below 1.
        freedom: the degrees of freedom, at least 1.
    """
    tail = 2 * (1 - probability)  # of both sides, as Hill counts
    if freedom == 1:
        return cos(tail * pi / 2) / sin(tail * pi / 2)
    if freedom == 2:
        return sqrt(max(0.0, 2 / (tail * (2 - tail)) - 2))
    return _hill(tail, freedom)


def _hill(tail: float, freedom: int) -> float:
    # the names are those of the paper
    a = 1 / (freedom - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * sqrt(a * pi / 2) * freedom
    y = (d * tail) ** (2 / freedom)
    if y <= 0.05 + a:
        y = (
            1
            / (((freedom + 6) / (freedom * y) - 0.089 * d - 0.822) * (freedom + 2) * 3)
            + 0.5 / (freedom + 4)
        ) * y - 1
        y = y * (freedom + 1) / (freedom + 2) + 1 / ((d * tail) ** (2 / freedom))
        return sqrt(freedom * y)
    # an asymptotic expansion about the normal distribution
    x = NormalDist().inv_cdf(tail / 2)
    y = x * x
    if freedom < 5:
        c += 0.3 * (freedom - 4.5) * (x + 0.6)
    c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b
    y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
    y = a * y * y
    if y > 0.002:
        y = exp(y) - 1
    else:
        y = 0.5 * y * y + y
    return sqrt(freedom * y)
