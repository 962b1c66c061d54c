"""Figures and JSON values as people read them: durations, amounts of money, large numbers, names and texts in lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from amplifier_sdk.jsontypes import JSONValue

__all__ = ["counted", "dollars", "duration_text", "short_number", "value_text"]

_LEAST: Final = Decimal("0.000001")

_STEP: Final = "  "
_WORDS: Final[Mapping[object, str]] = {None: "none", True: "yes", False: "no"}


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


def counted(number: int, noun: str) -> str:
    """Write a number with its noun: `1 turn`, `2 turns`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}s"


def short_number(value: float) -> str:
    """Write a number in few characters: `950`, `1.2k`, `34k`, `5.6M`."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size * 0.9995:
            scaled = value / size
            if scaled < 9.95:
                return f"{scaled:.1f}{unit}"
            return f"{scaled:.0f}{unit}"
    return f"{value:.0f}"


def value_text(value: JSONValue) -> str:
    """Write a value in lines: `name: value`, `- item`, and of a text of several lines those below its name."""
    return "\n".join(_lines(value))


def _lines(value: JSONValue) -> Iterator[str]:
    """Yield the lines of a value that stands by itself."""
    if isinstance(value, str):
        yield from value.splitlines()
    elif isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from _led(f"{name}:", item)
    elif isinstance(value, Sequence) and value:
        for item in value:
            yield from _led("-", item)
    else:
        yield _word(value)


def _led(lead: str, value: JSONValue) -> Iterator[str]:
    """Yield the lines of a value behind its name, or behind the sign of an item."""
    if _is_short(value):
        yield f"{lead} {_word(value)}".rstrip()
        return
    yield lead
    for line in _lines(value):
        yield f"{_STEP}{line}"


def _is_short(value: JSONValue) -> bool:
    if isinstance(value, str):
        return "\n" not in value
    return not value or not isinstance(value, (Mapping, Sequence))


def _word(value: JSONValue) -> str:
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, (Mapping, list, tuple)):
        return "none"
    return str(value)
