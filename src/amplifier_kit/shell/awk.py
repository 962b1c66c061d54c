"""Programs of `awk`: whether one certainly only reads and prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

__all__ = ["is_plain_awk"]

_TOKEN: Final = re.compile(
    r'(?P<space>[ \t]+|#[^\n]*)|(?P<string>"(?:[^"\\\n]|\\[^\n])*")|(?P<name>[A-Za-z_]\w*)|(?P<number>\d[\w.]*)'
    r"|(?P<sign>\+\+|--|\|\||[^\"\\#])"
)
_EXPRESSION: Final = re.compile(r"/(?:[^/\\\n\[]|\\[^\n]|\[\^?\]?(?:[^]/\\\n]|\\[^/\n])*\])+/")
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
_TAKING_CONDITION: Final = frozenset({"for", "if", "switch", "while"})


def is_plain_awk(text: str) -> bool:
    """Whether an `awk` program neither runs a command nor opens a file; false where that is not certain."""
    depth = 0
    printing: int | None = None
    for part in _parts(text):
        if part is None or part in _REACHING:
            return False
        if part in _OPENING:
            depth += 1
        elif part in _CLOSING:
            depth -= 1
        elif part in _PRINTING:
            printing = depth
        elif part in _ENDING:
            printing = None
        elif part == ">" and printing == depth:
            return False
    return True


def _parts(text: str) -> Iterator[str | None]:
    """Yield the parts of a program without space and comments; `None` where it cannot be read with certainty."""
    position, before = 0, ""
    opened: list[str] = []
    while position < len(text):
        found = (_EXPRESSION if text[position] == "/" and _begins_expression(before) else _TOKEN).match(text, position)
        if found is None:
            break
        position = found.end()
        if found.lastgroup == "space":
            continue
        if found[0] in _OPENING:
            opened.append(before)
        elif found[0] in _CLOSING and opened and opened.pop() in _TAKING_CONDITION and _SLASH.match(text, position):
            yield None  # only the grammar says whether this divides
        before = found[0]
        yield before
    if position < len(text):
        yield None


def _begins_expression(before: str) -> bool:
    """Whether a slash behind a token begins a regular expression; otherwise it divides."""
    return before in _KEYWORDS or not (before in (")", "]", "++", "--") or re.match(r"[\w\"/]", before))
