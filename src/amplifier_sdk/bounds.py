"""Validators of configurations, for `attrs.field(validator=…)`: they name the setting, what it may be, what it is."""

from __future__ import annotations

from math import inf

import attrs

__all__ = ["amount", "count", "fraction", "pause", "seconds", "share"]


def count(_: object, attribute: attrs.Attribute[int], value: object) -> None:
    """Refuse what is no whole number above 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"{attribute.name} is a whole number above 0; got {value!r}")


def seconds(_: object, attribute: attrs.Attribute[float], value: object) -> None:
    """Refuse what is no finite number of seconds above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < inf:
        raise ValueError(f"{attribute.name} is a number of seconds above 0; got {value!r}")


def amount(_: object, attribute: attrs.Attribute[int], value: object) -> None:
    """Refuse what is no whole number from 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{attribute.name} is a whole number from 0; got {value!r}")


def pause(_: object, attribute: attrs.Attribute[float], value: object) -> None:
    """Refuse what is no finite number of seconds from 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < inf:
        raise ValueError(f"{attribute.name} is a number of seconds from 0; got {value!r}")


def fraction(_: object, attribute: attrs.Attribute[float], value: object) -> None:
    """Refuse what is no fraction above 0 and up to 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise ValueError(f"{attribute.name} is a fraction above 0 and up to 1; got {value!r}")


def share(_: object, attribute: attrs.Attribute[float], value: object) -> None:
    """Refuse what is no fraction from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError(f"{attribute.name} is a fraction from 0 to 1; got {value!r}")
