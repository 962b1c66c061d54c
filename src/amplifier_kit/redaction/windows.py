"""Windows: the parts of a text in which a pattern can match, since they hold a word that it needs.

To find a word costs a thirtieth of what it costs to try a pattern at each character.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

__all__ = ["line_matches", "lower", "matches_near", "places_of"]

_LINES: Final = 2
"""How many lines around a word a match may reach into."""
_BEFORE: Final = 1_500
_AFTER: Final = 6_000
"""How many characters it may reach, where lines are long."""


def matches_near(
    pattern: re.Pattern[str],
    words: Iterable[str],
    text: str,
    lowered: str | None = None,
) -> Iterator[re.Match[str]]:
    """Yield a pattern's matches near words without one of which it does not match.

    Args:
        pattern: what is looked for.
        words: what every match has in it or a line or two from it.
        text: where to look.
        lowered: the same text in lower case, where the words are.
    """
    for start, end in _windows(text if lowered is None else lowered, words):
        yield from pattern.finditer(text, start, end)


def _windows(text: str, words: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a text around words, joined where they meet."""
    begin = end = -1
    for index in places_of(words, text):
        start, stop = _around(text, index)
        if start > end:
            if end > 0:
                yield begin, end
            begin = start
        end = max(end, stop)
    if end > 0:
        yield begin, end


def places_of(words: Iterable[str], text: str) -> list[int]:
    """Return where words stand in a text, in order; a pattern that begins with one of them matches nowhere else."""
    # nearly always there is none, which is the only case that must be fast
    there = [word for word in words if word in text]
    return sorted({index for word in there for index in _all(word, text)})


def line_matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield a pattern's matches at the beginnings of lines, which `re` would try at each character."""
    start = 0
    while True:
        match = pattern.match(text, start)
        if match is not None:
            yield match
            start = match.end()
        start = text.find("\n", start) + 1
        if start == 0:
            return


def _all(word: str, text: str) -> Iterator[int]:
    index = text.find(word)
    while index >= 0:
        yield index
        index = text.find(word, index + 1)


def _around(text: str, index: int) -> tuple[int, int]:
    start = stop = index
    for _ in range(_LINES + 1):
        if start > 0:
            start = text.rfind("\n", max(0, index - _BEFORE), start)
        if start < 0:
            start = max(0, index - _BEFORE)
            break
    for _ in range(_LINES + 1):
        stop = text.find("\n", stop + 1, index + _AFTER)
        if stop < 0:
            stop = min(len(text), index + _AFTER)
            break
    return start, stop


def lower(text: str) -> str:
    """Return a text in lower case, every character where it was."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    # a few letters become two in lower case, which would shift every place behind
    # them
    return re.sub(r"[A-Z]+", lambda part: part[0].lower(), text)
