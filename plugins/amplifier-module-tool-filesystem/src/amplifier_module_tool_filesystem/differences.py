"""What a change did to a text, as a unified diff of bounded size."""

from __future__ import annotations

import re
from difflib import unified_diff
from itertools import islice
from typing import Final

__all__ = ["unified"]

_CONTEXT: Final = 3
_MAX_LINES_COMPARED: Final = 2000
_MAX_LINES_SHOWN: Final = 200
_MAX_LINE_LENGTH: Final = 500

_HUNK: Final = re.compile(r"@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")


def unified(before: str, after: str) -> str:
    r"""Return a unified diff without the lines that name files.

    Long lines are cut, and so is a long diff, each with a mark. Lines end with `\\n`.
    """
    old, new = before.split("\n"), after.split("\n")
    # Equal ends are cut away first: difflib takes quadratic time, and most changes are
    # small.
    head = _common(old, new, 0)
    # Without the lines that the head took, or one line would be counted for both.
    tail = _common(old[::-1], new[::-1], head)
    first = max(0, head - _CONTEXT)
    old = old[first : max(len(old) - tail + _CONTEXT, 0)]
    new = new[first : max(len(new) - tail + _CONTEXT, 0)]
    if len(old) + len(new) > _MAX_LINES_COMPARED:
        return f"[diff left out, it is too long: the changes begin at line {head + 1}]"
    lines = [
        _shifted(line, first)
        for line in islice(unified_diff(old, new, lineterm="", n=_CONTEXT), 2, None)
    ]
    shown = [
        line if len(line) <= _MAX_LINE_LENGTH else f"{line[:_MAX_LINE_LENGTH]} [cut]"
        for line in lines
    ]
    if len(shown) > _MAX_LINES_SHOWN:
        shown[_MAX_LINES_SHOWN:] = [
            f"[{len(shown) - _MAX_LINES_SHOWN} more lines of diff]"
        ]
    return "\n".join(shown)


def _common(old: list[str], new: list[str], taken: int) -> int:
    """Count the lines that two texts begin with in common, when `taken` lines of each are spoken for."""
    most = min(len(old), len(new)) - taken
    for index in range(most):
        if old[index] != new[index]:
            return index
    return max(most, 0)


def _shifted(line: str, by: int) -> str:
    """Add to the line numbers of a hunk's head."""
    found = _HUNK.fullmatch(line)
    if found is None:
        return line
    old, old_length, new, new_length = found.groups("")
    return f"@@ -{int(old) + by}{old_length} +{int(new) + by}{new_length} @@"
