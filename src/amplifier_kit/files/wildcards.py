"""Names with wildcards, as git matches them, in linear time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["name_regex"]

_CLASSES: Final[Mapping[str, str]] = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~",
    "xdigit": "0-9a-fA-F",
    "cntrl": r"\x00-\x1f\x7f",
    "graph": "!-~",
    "print": " -~",
}


def name_regex(pattern: str) -> re.Pattern[str] | None:
    r"""Return what matches the names that a pattern means; `None` when it can match none.

    `*` is any characters, `?` one, `[…]` one of some, `\` takes what follows as it is.
    """
    pieces = [""]  # between stars
    at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "*":
            pieces.append("")
        elif character == "?":
            pieces[-1] += "."
        elif character == "[":
            found = _set(pattern, at)
            if found is None:
                return None
            at = found[1]
            pieces[-1] += found[0]
        elif character == "\\":
            if at == len(pattern):
                return None
            pieces[-1] += re.escape(pattern[at])
            at += 1
        else:
            pieces[-1] += re.escape(character)
    if len(pieces) == 1:
        return re.compile(pieces[0], re.DOTALL)
    # Each piece is taken where it is found first, for good: to try another place would change nothing but the time.
    inner = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1] if piece)
    return re.compile(f"{pieces[0]}{inner}.*{pieces[-1]}", re.DOTALL)


def _set(pattern: str, start: int) -> tuple[str, int] | None:
    """Read the set behind a bracket, and return its regular expression and where it ends; `None` without an end."""
    at = start
    is_negated = pattern[at : at + 1] in ("!", "^")
    at += is_negated
    items: list[str] = []
    is_first = True
    while at < len(pattern) and (is_first or pattern[at] != "]"):
        is_first = False
        end = pattern.find("]", at + 2)
        if pattern.startswith("[:", at) and end > at + 2 and pattern[end - 1] == ":":
            if pattern[at + 2 : end - 1] not in _CLASSES:
                return None
            items.append(_CLASSES[pattern[at + 2 : end - 1]])
            at = end + 1
            continue
        low, at = _character(pattern, at)
        high = low
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("", "]"):
            high, at = _character(pattern, at + 1)
        # Of a range that is the wrong way round git still knows the first character.
        items.append(
            f"{re.escape(low)}-{re.escape(high)}" if low < high else re.escape(low)
        )
    if at >= len(pattern):
        return None
    return f"[{'^' if is_negated else ''}{''.join(items)}]", at + 1


def _character(pattern: str, at: int) -> tuple[str, int]:
    """Return the character at a place, and the place behind it; a backslash takes the next as it is."""
    if pattern[at] == "\\" and at + 1 < len(pattern):
        at += 1
    return pattern[at], at + 1
