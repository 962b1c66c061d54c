"""Decoded texts: what an encoded text says, with the place in the source of every character.

An escape hides where a token begins, and an escaped quote is none. So secrets are looked for in what a text says, and
what is found is marked in the text as it is written.
"""

from __future__ import annotations

import re
from base64 import b64decode
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

__all__ = ["DecodedText", "base64_texts", "unescaped", "unquoted"]

_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|\\0[0-7]{2}"
    r"|\\[\"'`\\/bfnrt]"
)
"""One character as JSON or a program writes it."""
_PERCENT: Final = re.compile(r"%[0-7][0-9a-fA-F]|(?:%[89a-fA-F][0-9a-fA-F])+")
"""One character as URLs write it; bytes of one that takes several stay together."""
_CONTROLS: Final[Mapping[str, str]] = {
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}

_BASE64: Final = re.compile(
    r"(?<![A-Za-z0-9+/_\-])(?:(?:[A-Za-z0-9+/_\-]{56,100}+\r?\n)++[A-Za-z0-9+/_\-]*+|[A-Za-z0-9+/_\-]{24,}+)={0,2}"
)
"""A word of base64, also in lines of equal length."""
_URL_SAFE: Final = str.maketrans("-_", "+/", "\r\n=")
_FIRST: Final = 24


class DecodedText(NamedTuple):
    """What a text says.

    Args:
        text: what it says.
        starts: where each part of it begins: a run of plain characters, or one escape.
        sources: where these parts begin in the source, and where the last one ends.
    """

    text: str
    starts: list[int]
    sources: list[int]

    @property
    def is_other(self) -> bool:
        """Whether it says something else than what is written."""
        return (
            len(self.starts) > 2 or len(self.text) != self.sources[-1] - self.sources[0]
        )

    def source(self, start: int, end: int) -> tuple[int, int]:
        """Return what part of the source a part of the text was read from."""
        first = bisect_right(self.starts, start) - 1
        last = bisect_left(self.starts, end) - 1
        return self._at(first, start, self.sources[first]), self._at(
            last, end, self.sources[last + 1]
        )

    def _at(self, part: int, index: int, edge: int) -> int:
        """Return where a character stands: in a run it is counted, an escape is taken whole."""
        start, stop = self.starts[part], self.starts[part + 1]
        source = self.sources[part]
        is_run = self.sources[part + 1] - source == stop - start
        if is_run:
            return source + index - start
        return edge


def unescaped(text: str, start: int = 0, end: int | None = None) -> DecodedText:
    """Return what a text, or a part of it, says once its escapes are read; what is no escape stays as it is."""
    return _decoded(_ESCAPE, text, start, len(text) if end is None else end)


def unquoted(text: str) -> DecodedText:
    """Return what a text says that has characters as URLs write them."""
    return _decoded(_PERCENT, text, 0, len(text))


def _decoded(pattern: re.Pattern[str], text: str, start: int, stop: int) -> DecodedText:
    parts: list[str] = []
    starts, sources = [0], [start]
    size = 0

    def add(part: str, behind: int) -> None:
        nonlocal size
        parts.append(part)
        size += len(part)
        starts.append(size)
        sources.append(behind)

    for escape in pattern.finditer(text, start, stop):
        if escape.start() > sources[-1]:
            add(text[sources[-1] : escape.start()], escape.start())
        add(_character(escape[0]), escape.end())
    if sources[-1] < stop:
        add(text[sources[-1] : stop], stop)
    return DecodedText("".join(parts), starts, sources)


def _character(escape: str) -> str:
    # bytes that are no UTF-8 are replaced, so that a broken escape hides nothing
    if escape.startswith("%"):
        return bytes.fromhex(escape.replace("%", "")).decode("utf-8", "replace")
    kind, code = escape[1], escape[2:]
    # a surrogate pair: JSON writes what lies outside the first plane as two
    # escapes
    if len(escape) == 12:
        return chr(
            0x10000 + ((int(code[:4], 16) & 0x3FF) << 10 | int(code[6:], 16) & 0x3FF)
        )
    if kind in "ux":
        return chr(int(code, 16))
    if kind == "0":
        return chr(int(code, 8))
    return _CONTROLS.get(kind, kind)


def base64_texts(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where words of base64 are that say a text, and what they say."""
    for word in _BASE64.finditer(text):
        # most long words say no text, and 24 characters show that at a fraction
        # of the cost
        if _printable(word[0][:_FIRST]) and (said := _printable(word[0])):
            yield *word.span(), said


def _printable(word: str) -> str | None:
    """Return the text that a word of base64 says; `None` where it says bytes that are none."""
    # line breaks and padding go first, since `validate=True` takes neither in the
    # middle
    plain = word.translate(_URL_SAFE)
    try:
        said = b64decode(plain + "=" * (-len(plain) % 4), validate=True).decode()
    except ValueError:
        return None
    if all(character.isprintable() or character.isspace() for character in said):
        return said
    return None
