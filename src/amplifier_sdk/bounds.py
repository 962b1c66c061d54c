"""Validators of configurations, for `attrs.field(validator=…)`: they name the setting, what it may be, what it is."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TypeAlias

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


def count(_: object, attribute: attrs.Attribute[int], value: object) -> None:
    """Refuse what is no whole number above 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"{attribute.name} is a whole number above 0; got {value!r}")


def seconds(_: object, attribute: attrs.Attribute[float], value: object) -> None:
    """Refuse what is no finite number of seconds above 0."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not 0 < value < inf
    ):
        raise ValueError(
            f"{attribute.name} is a number of seconds above 0; got {value!r}"
        )


def amount(_: object, attribute: attrs.Attribute[int], value: object) -> None:
    """Refuse what is no whole number from 0."""
    integer(0)(_, attribute, value)


def pause(_: object, attribute: attrs.Attribute[float], value: object) -> None:
    """Refuse what is no finite number of seconds from 0."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not 0 <= value < inf
    ):
        raise ValueError(
            f"{attribute.name} is a number of seconds from 0; got {value!r}"
        )


def fraction(_: object, attribute: attrs.Attribute[float], value: object) -> None:
    """Refuse what is no fraction above 0 and up to 1."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not 0 < value <= 1
    ):
        raise ValueError(
            f"{attribute.name} is a fraction above 0 and up to 1; got {value!r}"
        )


def share(_: object, attribute: attrs.Attribute[float], value: object) -> None:
    """Refuse what is no fraction from 0 to 1."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not 0 <= value <= 1
    ):
        raise ValueError(f"{attribute.name} is a fraction from 0 to 1; got {value!r}")


def integer(min_value: int, max_value: float = inf) -> _Integer:
    """Make a validator that refuses what is no whole number from `min_value` to `max_value`."""

    def check(_: object, attribute: attrs.Attribute[int], value: object) -> None:
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or not min_value <= value <= max_value
        ):
            raise ValueError(
                f"{attribute.name} is a whole number {_range(min_value, max_value)}; got {value!r}"
            )

    return check


def number(min_value: float, max_value: float = inf) -> _Number:
    """Make a validator that refuses what is no finite number from `min_value` to `max_value`."""

    def check(_: object, attribute: attrs.Attribute[float], value: object) -> None:
        is_within = (
            isinstance(value, (int, float))
            and min_value <= value <= max_value
            and value < inf
        )
        if isinstance(value, bool) or not is_within:
            raise ValueError(
                f"{attribute.name} is a number {_range(min_value, max_value)}; got {value!r}"
            )

    return check


def _range(min_value: float, max_value: float) -> str:
    if max_value == inf:
        return f"from {min_value}"
    return f"from {min_value} to {max_value}"
