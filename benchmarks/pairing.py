"""Pairs of samples taken turn about, so that a busy machine slows both sides of a ratio alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

__all__ = ["Effort", "Paired", "paired", "shown"]


@dataclass(frozen=True)
class Effort:
    """How long to sample: at least `pairs` pairs, and then until `seconds` are over."""

    seconds: float = 4.0
    pairs: int = 7


@dataclass(frozen=True)
class Paired:
    """The medians of both sides in microseconds an operation, and of the pairs' ratios.

    `best` is the ratio of the fastest samples of each side: what the code costs when nothing disturbs it.
    """

    subject: float
    floor: float
    ratio: float
    best: float

    def __str__(self) -> str:
        return f"{shown(self.subject)} µs, floor {shown(self.floor)} µs; fastest samples {shown(self.best)}×"


def paired(
    subject: Callable[[], float],
    floor: Callable[[], float],
    effort: Effort,
    *,
    per: int = 1,
) -> Paired:
    """Take samples turn about and return what they say.

    Args:
        subject: takes one sample; seconds an operation.
        floor: the same of the floor.
        effort: how many pairs to take.
        per: operations in what both call one; it divides the medians, not the ratio.
    """
    floor(), subject()  # warm both
    pairs: list[tuple[float, float]] = []
    end = perf_counter() + effort.seconds
    while len(pairs) < effort.pairs or perf_counter() < end:
        below = floor()
        pairs.append((subject(), below))
    return Paired(
        subject=median(above for above, _ in pairs) * 1e6 / per,
        floor=median(below for _, below in pairs) * 1e6 / per,
        ratio=median(above / below for above, below in pairs),
        best=min(above for above, _ in pairs) / min(below for _, below in pairs),
    )


def shown(value: float) -> str:
    """Write a figure with three digits, and a large one whole."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
