"""Programs of `awk`: whether one certainly only reads and prints, and comes to an end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

__all__ = ["is_plain_awk"]

_TOKEN: Final = re.compile(
    r'(?P<space>[ \t]+|#[^\n]*)|(?P<string>"(?:[^"\\\n]|\\[^\n])*")|(?P<name>[A-Za-z_]\w*)|(?P<number>\d[\w.]*)'
    r"|(?P<sign>\+\+|--|\|\||[^\"\\#])"
)
_EXPRESSION: Final = re.compile(
    r"/(?:[^/\\\n\[]|\\[^\n]|\[\^?\]?(?:[^]/\\\n]|\\[^/\n])*\])+/"
)
_SLASH: Final = re.compile(r"\s*/")
_REACHING: Final = frozenset({
    "@", "ARGC", "ARGV", "ENVIRON", "FUNCTAB", "PROCINFO", "SYMTAB", "close", "fflush", "getline", "system", "|",
})  # fmt: skip
_OPENING: Final = frozenset({"(", "["})
_CLOSING: Final = frozenset({")", "]"})
_PRINTING: Final = frozenset({"print", "printf"})
_ENDING: Final = frozenset({";", "}"})
_KEYWORDS: Final = frozenset({
    "case", "delete", "do", "else", "exit", "for", "func", "function", "if", "in", "print", "printf", "return", "while",
})  # fmt: skip
_UNBOUNDED: Final = frozenset({"do", "func", "function", "while"})
"""Words behind which a program may run for ever; a function may call itself."""

_OVER_KEYS: Final = re.compile(r"\( \w+ in \w+ \)")
_COUNTED: Final = re.compile(
    r"\( (\w+) = (?:\d{1,4}|NF) ; \1 (?:< (?:= )?(?:NF|\d{1,4}) ; (?:\1 \+\+|\+\+ \1|\1 \+ = [1-9])"
    r"|> (?:= )?\d{1,4} ; (?:\1 --|-- \1|\1 - = [1-9])) \)"
)
"""The head of a loop that counts up or down to a number that is seen, its parts apart."""

_MAX_COUNTED: Final = 2
_WIDE: Final = re.compile(r"%[^A-Za-z%\"]*(?:\d{5}|\*)")
_TAKING_CONDITION: Final = frozenset({"for", "if", "switch", "while"})


def is_plain_awk(text: str) -> bool:
    """Whether an `awk` program ends and neither runs a command nor opens a file; false where that is not certain."""
    depth = 0
    printing: int | None = None
    parts = list(_parts(text))
    if None in parts or not _ends(" ".join(filter(None, parts))):
        return False
    for part in parts:
        if part in _REACHING:
            return False
        if part in _OPENING:
            depth += 1
        elif part in _CLOSING:
            depth -= 1
        elif part in _PRINTING:
            printing = depth
        elif part in _ENDING:
            printing = None
        # in parentheses it compares, and behind `print` it opens a file
        elif part == ">" and printing == depth:
            return False
    return True


def _ends(text: str) -> bool:
    """Whether a program, its parts apart, has only loops whose end is seen, and puts out no wide fields."""
    if not _UNBOUNDED.isdisjoint(text.split()) or _WIDE.search(text):
        return False
    # loops whose end is seen are taken out, and any other `for` is one too many
    rest = _OVER_KEYS.sub("", text)
    counters = [found[1] for found in _COUNTED.finditer(rest)]
    rest = _COUNTED.sub("", rest)
    if len(counters) > _MAX_COUNTED or text.split().count("for") != len(
        _OVER_KEYS.findall(text)
    ) + len(counters):
        return False
    return not any(
        _sets(rest, name) for name in (*counters, *(["NF"] if counters else []))
    )


def _sets(text: str, name: str) -> bool:
    """Whether a program may give a variable another value; a field behind the last sets their number."""
    assigned = rf"(?<!\$ )\b{name} (?:\+\+|--|(?:[-+*/%^] )*= (?!=))|(?:\+\+|--) {name}\b|, {name} \)"
    fields = ""
    if name == "NF":
        fields = r"|\$ \(.*= (?!=)"
    return re.search(assigned + fields, text) is not None


def _parts(text: str) -> Iterator[str | None]:
    """Yield the parts of a program without space and comments; `None` where it cannot be read with certainty."""
    position, before = 0, ""
    opened: list[str] = []
    while position < len(text):
        found = (
            _EXPRESSION
            if text[position] == "/" and _begins_expression(before)
            else _TOKEN
        ).match(text, position)
        if found is None:
            break
        position = found.end()
        if found.lastgroup == "space":
            continue
        if found[0] in _OPENING:
            opened.append(before)
        elif (
            found[0] in _CLOSING
            and opened
            and opened.pop() in _TAKING_CONDITION
            and _SLASH.match(text, position)
        ):
            yield None  # only the grammar says whether this divides
        before = found[0]
        yield before
    if position < len(text):
        yield None


def _begins_expression(before: str) -> bool:
    """Whether a slash behind a token begins a regular expression; otherwise it divides."""
    return before in _KEYWORDS or not (
        before in (")", "]", "++", "--") or re.match(r"[\w\"/]", before)
    )
