"""Tables: what stands in a column that is called as a secret is, in Markdown, CSV, rows of SQL and listings."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from typing import Final

from amplifier_kit.redaction.heuristics import (
    PLACEHOLDER,
    SHORTEST_TOKEN,
    SHORTEST_WORD,
    is_literal,
)
from amplifier_kit.redaction.names import is_password_name, is_secret_name, kind_of
from amplifier_kit.redaction.places import Found
from amplifier_kit.redaction.windows import line_matches

__all__ = ["columns"]

_HEAD: Final = re.compile(
    r"^\|? ?[\"'`*A-Za-z][\w .\-\"'`*]{0,60}+(?:[|,;\t][\w .\-\"'`*]{0,60}+){1,40}+\r?$",
    re.MULTILINE,
)
"""A line that may be the head of a table: plain words with a sign between them."""
_INSERT: Final = re.compile(
    r"(?i:insert +into)[^\n(]{1,200}\((?P<names>[^()]{1,1000})\)\s{0,20}(?i:values)\s{0,20}"
    r"\((?P<values>[^()]{1,4000})\)"
)
_LISTED: Final = re.compile(
    r"^ {0,8}(?P<name>[A-Za-z][\w.\-]{1,60})(?:\t{1,8}| {2,40})(?P<value>\S{6,512}) {0,4}$",
    re.MULTILINE,
)
"""A name and one value behind it, as commands list them."""


def columns(text: str) -> Iterator[Found]:
    """Yield the cells below the names of secrets, and the values that are listed behind one."""
    for match in line_matches(_LISTED, text):
        if is_secret_name(match["name"]) and _is_secret(match["value"], match["name"]):
            yield (*match.span("value"), kind_of(match["name"]))
    if "nsert into" in text or "INSERT INTO" in text:
        for insert in _INSERT.finditer(text):
            names = [_plain(name) for name in insert["names"].split(",")]
            yield from _row(names, insert.start("values"), insert["values"], ",")
    end = 0
    for head in line_matches(_HEAD, text):
        if head.start() >= end:
            for sign in "|,\t;":
                names = [_plain(cell) for cell in _cells(head[0], sign)]
                # a sentence with commas splits into cells, too, but seldom names
                # a secret
                if len(names) > 1 and all(names) and any(map(is_secret_name, names)):
                    end = yield from _rows(text, names, head.end() + 1, sign)


def _rows(
    text: str, names: Sequence[str], start: int, sign: str
) -> Generator[Found, None, int]:
    """Yield the secrets of the rows below a head; return where the table ends."""
    while start < len(text):
        line = text[start : (text.find("\n", start) + 1 or len(text) + 1) - 1]
        if len(_cells(line, sign)) != len(names):
            break
        yield from _row(names, start, line, sign)
        start += len(line) + 1
    return start


def _cells(line: str, sign: str) -> list[str]:
    """Split a row; one of Markdown begins and ends with the sign."""
    if sign == "|":
        return line.strip("| \r").split(sign)
    return line.split(sign)


def _row(names: Sequence[str], start: int, line: str, sign: str) -> Iterator[Found]:
    """Yield the secrets of one row; it has a cell for each name."""
    cells = _cells(line, sign)
    if len(cells) != len(names):
        return
    end = 0
    for name, cell in zip(names, cells, strict=True):
        value = _plain(cell)
        # equal cells stand in one row, so each search starts behind the last
        begin = line.index(cell, end)
        end = begin + len(cell)
        if is_secret_name(name) and _is_secret(value, name):
            at = start + begin + cell.index(value)
            yield at, at + len(value), kind_of(name)


def _plain(cell: str) -> str:
    return cell.strip(" \t\r\"'`*")


def _is_secret(value: str, name: str) -> bool:
    is_password = is_password_name(name)
    return (
        len(value) >= (SHORTEST_WORD if is_password else SHORTEST_TOKEN)
        and not PLACEHOLDER.search(value)
        and is_literal(value, is_password=is_password)
    )
