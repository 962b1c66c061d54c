"""Whether bytes may hold words: a test that takes far less than decoding them.

It never refuses bytes that hold the words once they are decoded, in whichever case; it may
admit others. It is for lines of JSON, so that a word must be one that JSON does not escape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Self

import attrs

__all__ = ["ESCAPE", "WordFilter", "longest_word"]

ESCAPE: Final = "\\u"
"""Begins what JSON writes for a character that stands for itself elsewhere."""

_WORD: Final = re.compile(r"[^\W\d][\w.:-]*")
_LETTERS: Final = re.compile(r"[^\W\d]{3}")  # `1e-05` may be written in other ways
_HIDDEN: Final = re.compile(r"u[0-9a-f]{4}")  # the rest of an escape

FOLDED_TO_ASCII: Final = (
    "\xdf\u0130\u0149\u017f\u01f0\u1e96\u1e97\u1e98\u1e99\u1e9a\u1e9e\u212a"
    "\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06"
)
"""All that `str.casefold` makes ASCII letters of, though it is none."""

_FOLDED: Final = re.compile("|".join(FOLDED_TO_ASCII).encode())


def longest_word(text: str) -> str | None:
    """Return the longest word of a text that JSON writes as it is; `None` for none."""
    words = [
        word
        for word in _WORD.findall(text)
        if _LETTERS.search(word) and not _HIDDEN.search(word.lower())
    ]
    return max(words, key=len, default=None)


@attrs.frozen
class WordFilter:
    """A test of whether bytes may hold words.

    Args:
        groups: of each group one word must be there, in either case.
    """

    groups: tuple[_Words, ...]

    @classmethod
    def of(cls, groups: Iterable[Iterable[str]]) -> Self:
        """Make a filter of words in any case."""
        return cls(tuple(_Words.of(map(str.casefold, group)) for group in groups))

    def admits(self, data: bytes) -> bool:
        """Return whether bytes may hold a word of each group."""
        lowered = data.lower()
        # Plain loops: this runs for each line of a log and each session of a store.
        for group in self.groups:
            for word in group.ascii:
                if word in lowered:
                    break
            else:
                if data.isascii() or not group.may_fold(data):
                    return False
        return True


@attrs.frozen
class _Words:
    """Words of which one must be there, those that are ASCII as bytes."""

    ascii: tuple[bytes, ...]
    others: tuple[str, ...]

    @classmethod
    def of(cls, words: Iterable[str]) -> Self:
        every = tuple(words)
        return cls(
            tuple(word.encode() for word in every if word.isascii()),
            tuple(word for word in every if not word.isascii()),
        )

    def may_fold(self, data: bytes) -> bool:
        """Return whether bytes that are not ASCII may hold one of the words once they are folded."""
        if self.ascii and _FOLDED.search(data):
            return True
        if not self.others:
            return False
        folded = data.decode("utf-8", "replace").casefold()
        return any(word in folded for word in self.others)
