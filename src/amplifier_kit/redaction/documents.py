"""Documents: JSON that stands in a text, as far as it goes, with the place of each of its texts.

What is cut off, and what breaks off because it is none, is read to there.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from typing import Final

import attrs

from amplifier_kit.redaction.decoded import DecodedText, unescaped
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["Documents", "PlacedNumber", "PlacedText"]

_OPENING: Final = re.compile(r"\A\s*+\"|[{\[]|\"(?=[^\"\\\n]*+\\)")
"""What may begin a document; a text within another only if it has an escape, since most are words in quotes."""
_TOKEN: Final = re.compile(
    r"[ \t\r\n]*+(?:\"(?P<double>(?:[^\"\\\x00-\x1f]++|\\.)*+)(?:\"|\\?\Z)"
    r"|'(?P<single>(?:[^'\\\x00-\x1f]++|\\.)*+)(?:'|\\?\Z)"
    r"|(?P<sign>[{}\[\]:,])|(?P<integer>-?\d{1,400}+)(?![.eE\d])"
    r"|(?P<other>true|false|null|True|False|None|-?\d[\d.eE+\-]{0,400}+))"
)
"""A part of a document; Python writes what it shows of data nearly as JSON."""


class PlacedText(str):
    """A text of a document, as it reads, which knows where it stands."""

    __slots__ = ("_decoded", "start")
    start: int
    _decoded: DecodedText | None

    @classmethod
    def of(cls, source: str, start: int, end: int) -> PlacedText:
        """Read a text of a document between its quotes."""
        found = None
        if "\\" in source[start:end]:
            found = unescaped(source, start, end)
        # a subclass of `str` walks through the same code as plain JSON, and still
        # knows where it stands
        made = cls(source[start:end] if found is None else found.text)
        made.start, made._decoded = start, found
        return made

    @property
    def is_encoded(self) -> bool:
        """Whether it is written with escapes, of JSON or of URLs."""
        return self._decoded is not None or "%" in self

    def source(self, start: int, end: int) -> tuple[int, int]:
        """Return where a part of it stands in the document."""
        if self._decoded is None:
            return self.start + start, self.start + end
        return self._decoded.source(start, end)


class PlacedNumber(int):
    """A whole number of a document, which knows where it stands."""

    start: int

    @classmethod
    def of(cls, token: re.Match[str]) -> PlacedNumber:
        """Read a number."""
        made = cls(token["integer"])
        made.start = token.start("integer")
        return made

    def source(self, start: int, end: int) -> tuple[int, int]:
        """Return where its digits stand in the document."""
        return self.start + start, self.start + end


class Documents:
    """The documents in a text, one after the other; finding them takes linear time.

    `values` are what they hold, `texts` where their texts begin and end; `are_whole` says that one of them is the whole
    text.

    Args:
        text: the text.
        max_depth: how deep a document may nest; what is deeper is a document of its own.
    """

    def __init__(self, text: str, max_depth: int) -> None:
        self.values: list[JSONValue] = []
        self.texts: list[tuple[int, int]] = []
        self.are_whole: bool = False
        # without a quote it has neither a text nor a name, and nothing to withhold
        has_texts = '"' in text or "'" in text
        opening = _OPENING.search(text) if has_texts else None
        while opening is not None:
            start = opening.end() - 1
            reader = _Reader(self, text, start, max_depth)
            is_read = reader.read()
            self.are_whole = (
                is_read and not text[:start].strip() and not text[reader.at :].strip()
            )
            # at least one character on, or a bracket that opens nothing would be
            # found again
            opening = _OPENING.search(text, max(reader.at, start + 1))

    def end_of(self, start: int) -> int | None:
        """Return where the text ends in which a place is; `None` where it is in none."""
        index = bisect_right(self.texts, (start, sys.maxsize)) - 1
        if index >= 0 and start < self.texts[index][1]:
            return self.texts[index][1]
        return None


@attrs.define(eq=False)
class _Reader:
    """Reads one document from where it may begin; `at` is where it ends or breaks off."""

    _documents: Documents
    _text: str
    at: int
    _max_depth: int
    _open: list[dict[str, JSONValue] | list[JSONValue]] = attrs.field(
        factory=list, init=False
    )
    _key: PlacedText | None = attrs.field(default=None, init=False)

    def read(self) -> bool:
        """Read to the end of the document, or as far as it is one; return whether it was read to its end."""
        while (token := _TOKEN.match(self._text, self.at)) is not None and self._take(
            token
        ):
            self.at = token.end()
            if not self._open:
                return True
        return False

    def _take(self, token: re.Match[str]) -> bool:
        """Take a token in; one that cannot stand there ends the document."""
        sign = token["sign"]
        if sign is None:
            return self._add(self._value(token))
        # A separator is not checked: what is nearly JSON is read as well, since a
        # secret in it is one all the same.
        if sign in ":,":
            return True
        if sign in "{[":
            made: dict[str, JSONValue] | list[JSONValue]
            if sign == "{":
                made = {}
            else:
                made = []
            if len(self._open) == self._max_depth or not self._add(made):
                return False
            self._open.append(made)
            self._key = None
            return True
        # a key without a value, as in what was cut off
        self._key = None
        return isinstance(self._open.pop(), dict) is (sign == "}")

    def _add(self, value: JSONValue) -> bool:
        """Add a value to what is open; in an object a text is the name of what follows it."""
        if not self._open:
            self._documents.values.append(value)
            return True
        container = self._open[-1]
        if isinstance(container, list):
            container.append(value)
        elif self._key is not None:
            container[self._key] = value
            self._key = None
        elif isinstance(value, PlacedText):
            # named twice: what was named first is checked by itself
            if value in container:
                self._documents.values.append({value: container.pop(value)})
            container[value] = None
            self._key = value
        else:
            return False
        return True

    def _value(self, token: re.Match[str]) -> JSONValue:
        kind = token.lastgroup or ""
        if kind in ("double", "single"):
            self._documents.texts.append(token.span(kind))
            return PlacedText.of(self._text, *token.span(kind))
        if kind == "integer":
            return PlacedNumber.of(token)
        return None
