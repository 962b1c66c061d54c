"""Texts on their way into a page: nothing in them is obeyed, and all of them together have a bound."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import attrs

from amplifier_kit.terminal import visible
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["Texts", "arguments_words", "words"]

_LONGEST: Final = 20_000
_TOTAL: Final = 24_000_000
_SHORT: Final = 200
_LABEL: Final = 160


@attrs.define(eq=False)
class Texts:
    """Makes texts visible and cuts them; once so many characters went into the page, only beginnings follow.

    Args:
        longest: characters of one text.
        total: characters of all.
    """

    longest: int = _LONGEST
    total: int = _TOTAL
    used: int = 0

    def of(self, value: JSONValue) -> str:
        """Write a value: a text as it is, anything else as indented JSON."""
        if value is None:
            return self.cut("")
        if isinstance(value, str):
            return self.cut(value)
        return self.cut(_indented(value))

    def cut(self, text: str) -> str:
        """Bring a text into the page: control characters and marks of direction become escapes."""
        if self.used < self.total:
            limit = self.longest
        else:
            limit = min(_SHORT, self.longest)
        kept = visible(text[:limit])
        self.used += len(kept)
        if len(text) <= limit:
            return kept
        return f"{kept}\n… {len(text):,} characters in all"


def words(value: JSONValue, longest: int = _LABEL) -> str:
    """Write a value as a label: one visible line."""
    if isinstance(value, str):
        text = value
    else:
        text = "" if value is None else _compact(value)
    line = " ".join(visible(text[: longest * 4]).split())
    if len(line) <= longest:
        return line
    return f"{line[: longest - 1]}…"


def arguments_words(arguments: JSONValue) -> str:
    """Write what a tool is called with as a label: one value as it is, several with their names."""
    if not isinstance(arguments, Mapping):
        return words(arguments)
    if len(arguments) == 1:
        return words(next(iter(arguments.values())))
    return words(
        ", ".join(
            f"{name}: {words(value, 60)}" for name, value in list(arguments.items())[:8]
        )
    )


def _indented(value: JSONValue) -> str:
    try:
        return json.dumps(value, indent=2, ensure_ascii=False)
    except RecursionError:  # the indenting writer goes less deep than the reader
        return _compact(value)


def _compact(value: JSONValue) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(nested too deep to be written)"
