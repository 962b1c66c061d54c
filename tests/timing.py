"""How much of the processor some work takes, told so that a busy machine changes nothing.

The clock is that of the calling thread. Others can only add to it, so a limit is missed when every one of a few rounds
misses it; what is too slow by its nature does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from time import thread_time
from typing import Final

__all__ = ["cpu_seconds", "grows_in_proportion", "listeners", "takes_at_most"]

listeners: Final[list[Callable[[], None]]] = []
"""Called when a test measures, so that it is noticed when it is not marked so."""

_ROUNDS: Final = 5
_GRAIN: Final = 0.001


def cpu_seconds(work: Callable[[], object]) -> float:
    """Do some work and return the seconds that this thread ran for it."""
    for listener in listeners:
        listener()
    began = thread_time()
    work()
    return thread_time() - began


def takes_at_most(seconds: float, work: Callable[[], object]) -> bool:
    """Tell whether some work is done in so many seconds of the processor."""
    return any(cpu_seconds(work) <= seconds for _ in range(_ROUNDS))


def grows_in_proportion(work: Callable[[int], object], small: int, large: int) -> bool:
    """Tell whether work of two sizes takes time in proportion to them, and not to their squares.

    Args:
        work: does it for a size.
        small: one size.
        large: another, several times as large; half way to its square, in powers, counts as too much.
    """
    limit = (large / small) ** 1.5
    work(small)  # what is made once is made by now
    short = long = inf
    for _ in range(_ROUNDS):
        short, long = (
            min(best, cpu_seconds(partial(work, size)))
            for best, size in ((short, small), (long, large))
        )
        if long <= limit * short + _GRAIN:
            return True
    return False
