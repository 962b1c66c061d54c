"""Figures as people read them: durations, amounts of money, large numbers."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

__all__ = ["dollars", "duration_text", "short_number"]

_LEAST: Final = Decimal("0.000001")


def dollars(value: Decimal) -> str:
    """Write an amount of US dollars with as many places as it needs, at least two and at most six."""
    if value >= Decimal("0.995") or value == 0:
        return f"${value:,.2f}"
    if value < _LEAST:
        return f"under ${_LEAST}"
    places = min(6, max(2, 1 - value.adjusted()))
    return f"${value:.{places}f}"


def duration_text(seconds: float) -> str:
    """Write a duration: `0 ms`, `12 ms`, `1.20 s`, `3 min 05 s`, `2 h 07 min`."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.995:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def short_number(value: float) -> str:
    """Write a number in few characters: `950`, `1.2k`, `34k`, `5.6M`."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size * 0.9995:
            scaled = value / size
            if scaled < 9.95:
                return f"{scaled:.1f}{unit}"
            return f"{scaled:.0f}{unit}"
    return f"{value:.0f}"
