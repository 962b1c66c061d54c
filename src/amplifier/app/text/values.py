"""JSON values as a person reads them: names and texts in lines, without quotes and escapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from amplifier_sdk.jsontypes import JSONValue

__all__ = ["value_text"]

_STEP: Final = "  "
_WORDS: Final[Mapping[object, str]] = {None: "none", True: "yes", False: "no"}


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
    """Tell whether a value fits behind its name."""
    if isinstance(value, str):
        return "\n" not in value
    return not value or not isinstance(value, (Mapping, Sequence))


def _word(value: JSONValue) -> str:
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, (Mapping, list, tuple)):
        return "none"
    return str(value)
