"""Text that a person decides by: every character shows, and what is left out is counted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from amplifier_sdk.jsontypes import JSONValue

__all__ = ["asked_text", "escaped", "shortened", "shortened_value"]

_BLANKS: Final = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc\U00013441\U00013442\U00016fe4"
    "\U0001d159\U000e0100-\U000e01ef"
)
"""What counts as printable and shows nothing: fillers, blank signs, what joins and what selects a variant."""

_HIDDEN: Final = re.compile(f"[{_BLANKS}]")
_MARKS: Final = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4,}"
)
"""More marks on one character than any writing has; they cover the lines above and below."""

_MAX_DEPTH: Final = 40
_MAX_ASKED: Final = 12_000


def asked_text(text: str) -> str:
    """Write a handler's question as a person reads it."""
    return shortened(escaped(text), _MAX_ASKED)


def escaped(text: str, allowed: str = "\n\t") -> str:
    r"""Write what a terminal obeys, does not show or shows as a blank as escapes such as `\x1b` and `\u3164`.

    Args:
        text: any text.
        allowed: the characters that stay although they are no printable ones.
    """
    # most text, told at a glance; the patterns below walk over every character
    if text.isascii() and text.isprintable():
        return text
    text = _MARKS.sub(_escape, _HIDDEN.sub(_escape, text))
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in allowed else ascii(c)[1:-1] for c in text
    )


def shortened(text: str, limit: int) -> str:
    """Cut the middle out of a text of more than `limit` characters, and say there how many are left out.

    The end is shown as well as the beginning: what a command does may stand behind anything.
    """
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return f"{text[:head]} [... {len(text) - limit} characters left out ...] {text[len(text) - tail :]}"


def shortened_value(value: JSONValue, limit: int, depth: int = 0) -> JSONValue:
    """Cut the middle out of each long text of JSON data."""
    if isinstance(value, str):
        return shortened(value, limit)
    # deeper data is cut as a whole later; a recursion without end would fail
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, Mapping):
        return {
            key: shortened_value(item, limit, depth + 1) for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [shortened_value(item, limit, depth + 1) for item in value]
    return value


def _escape(match: re.Match[str]) -> str:
    return ascii(match[0])[1:-1]
