"""Validators of configurations, for `attrs.field(validator=…)`: they name the setting, what it may be, what it is."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Final, TypeAlias

import attrs

__all__ = [
    "amount",
    "count",
    "fraction",
    "integer",
    "number",
    "pause",
    "seconds",
    "share",
]

_Integer: TypeAlias = Callable[[object, "attrs.Attribute[int]", object], None]
_Number: TypeAlias = Callable[[object, "attrs.Attribute[float]", object], None]


def integer(min_value: int, max_value: float = inf) -> _Integer:
    """Make a validator that refuses what is no whole number from `min_value` to `max_value`."""
    words = f"a whole number {_range(min_value, max_value)}"
    return _whole(lambda value: min_value <= value <= max_value, words)


def number(min_value: float, max_value: float = inf) -> _Number:
    """Make a validator that refuses what is no finite number from `min_value` to `max_value`."""
    words = f"a number {_range(min_value, max_value)}"
    return _real(lambda value: min_value <= value <= max_value, words)


def _range(min_value: float, max_value: float) -> str:
    if max_value == inf:
        return f"from {min_value}"
    return f"from {min_value} to {max_value}"


def _whole(fits: Callable[[int], bool], words: str) -> _Integer:
    def check(_: object, attribute: attrs.Attribute[int], value: object) -> None:
        """Refuse what is no whole number that fits."""
        # to Python True is the number 1, and a plan that says so is wrong
        if isinstance(value, bool) or not isinstance(value, int) or not fits(value):
            raise ValueError(f"{attribute.name} is {words}; got {value!r}")

    return check


def _real(fits: Callable[[float], bool], words: str) -> _Number:
    def check(_: object, attribute: attrs.Attribute[float], value: object) -> None:
        """Refuse what is no finite number that fits."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            is_fit = False
        else:
            # no clock and no vendor takes an infinite value; NaN is below nothing
            is_fit = value < inf and fits(value)
        if not is_fit:
            raise ValueError(f"{attribute.name} is {words}; got {value!r}")

    return check


count: Final = _whole(lambda value: value > 0, "a whole number above 0")
"""Refuses what is no whole number above 0."""

amount: Final = integer(0)
"""Refuses what is no whole number from 0."""

seconds: Final = _real(lambda value: value > 0, "a number of seconds above 0")
"""Refuses what is no finite number of seconds above 0."""

pause: Final = _real(lambda value: value >= 0, "a number of seconds from 0")
"""Refuses what is no finite number of seconds from 0."""

fraction: Final = _real(lambda value: 0 < value <= 1, "a fraction above 0 and up to 1")
"""Refuses what is no fraction above 0 and up to 1."""

share: Final = _real(lambda value: 0 <= value <= 1, "a fraction from 0 to 1")
"""Refuses what is no fraction from 0 to 1."""
