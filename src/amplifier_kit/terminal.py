"""Text on its way to a terminal: what models and tools write is shown and never obeyed, and fits its line."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Protocol

from amplifier_sdk.legible import escaped

# the command line loads nothing else of the SDK before it knows what is asked
if TYPE_CHECKING:
    from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "TextStream",
    "arguments_text",
    "call_text",
    "columns_of",
    "cut",
    "has_colour",
    "one_line",
    "progress_text",
    "visible",
    "whole_lines",
    "wrapped",
]

# C0 but tab and line feed, DEL and C1, marks that turn the direction of what follows, halves of surrogate pairs.
_OBEYED: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_BLANKS: Final = "\n\t\u3000"
"""What a line has in the place of blanks; the last one belongs to Chinese and Japanese."""

_ELLIPSIS: Final = "..."
_SPARE: Final = 64
_MAX_VALUE: Final = 2000
_MAX_ITEMS: Final = 50
_MAX_DEPTH: Final = 6


class TextStream(Protocol):
    """Where text is shown: standard error, or what an application gives in its place."""

    def write(self, text: str, /) -> object:
        """Take text; may block."""

    def flush(self) -> object:
        """Show what was taken."""


def visible(text: str) -> str:
    r"""Write control characters as their escapes, such as `\x1b`; tabs and line ends stay."""
    return _OBEYED.sub(_escape, text)


def one_line(text: str, width: int = 200) -> str:
    """Bring a text into one line of at most `width` columns, in which every character shows."""
    start = text.lstrip()
    # enough to fill the line, and a text may be very long
    head = start[: width * 4 + _SPARE]
    line = " ".join(escaped(head, _BLANKS).split())
    is_whole = len(head) == len(start) or columns_of(line) > width
    return cut(line if is_whole else line + _ELLIPSIS, width)


def cut(text: str, columns: int) -> str:
    """Shorten a line to at most `columns` columns, with three dots where something is left out."""
    if columns_of(text) <= columns:
        return text
    room = max(0, columns - len(_ELLIPSIS))
    shown = room
    if not text.isascii():
        shown = bisect_right([*accumulate(map(_columns, text))], room)
    return text[:shown] + _ELLIPSIS[:columns]


def columns_of(text: str) -> int:
    """Return how many columns a line takes at most: wide characters take two, and all others count as one."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def has_colour(stream: object) -> bool:
    """Tell whether a stream may be given colours: a terminal that is not dumb, where `NO_COLOR` is not set."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    isatty = getattr(stream, "isatty", None)
    try:
        return bool(isatty and isatty())
    except ValueError:  # it is closed
        return False


def arguments_text(
    arguments: Mapping[str, JSONValue],
    redact: Callable[[JSONValue], JSONValue] | None = None,
) -> str:
    """Write a call's arguments as JSON for a person to read; of long texts and lists the beginning.

    Args:
        arguments: what the tool is called with.
        redact: takes the secrets out of what is shown, while its names still tell them; `None` where nobody does.
    """
    import json  # much that is shown has no arguments

    shown = _short(arguments, 0)
    return json.dumps(shown if redact is None else redact(shown), ensure_ascii=False)


def call_text(
    arguments: Mapping[str, JSONValue],
    redact: Callable[[JSONValue], JSONValue] | None = None,
) -> str:
    """Write a call's arguments for a glance: a text that is the first one without its name, as `read_file notes.txt`.

    Args:
        arguments: what the tool is called with.
        redact: as `arguments_text` has it.
    """
    import json  # much that is shown has no arguments

    short = _short(arguments, 0)
    shown = short if redact is None else redact(short)
    if not isinstance(shown, Mapping):
        return json.dumps(shown, ensure_ascii=False)
    parts: list[str] = []
    for name, value in shown.items():
        is_text = isinstance(value, str)
        text = str(value) if is_text else json.dumps(value, ensure_ascii=False)
        parts.append(text if is_text and not parts else f"{name}: {text}")
    return ", ".join(parts)


def progress_text(message: str, done: float | None, total: float | None) -> str:
    """Write how far a tool is: `compiling (3 of 10)`, `3 of 10`, `compiling`."""
    if done is None:
        return message
    share = f"{done:g}"
    if total is not None:
        share += f" of {total:g}"
    if message:
        return f"{message} ({share})"
    return share


def whole_lines(text: str) -> tuple[list[str], str]:
    """Split a text that comes in pieces into its whole lines and what is begun of the next one."""
    # A carriage return at the very end may be half of a line end.
    end = max(text.rfind("\n"), text.rfind("\r", 0, -1)) + 1
    return text[:end].splitlines(), text[end:]


def wrapped(line: str, width: int, indent: str) -> str:
    """Break a line between words; a word that is too long, such as a path, stays whole.

    Args:
        line: the line, whose blanks stay.
        width: how many columns there are.
        indent: what the second line and those behind it begin with.
    """
    if columns_of(line) <= width:
        return line
    import textwrap  # most lines fit

    parts = textwrap.wrap(
        line,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    return "\n".join(parts)


def _escape(match: re.Match[str]) -> str:
    number = ord(match[0])
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}"


def _columns(character: str) -> int:
    from unicodedata import east_asian_width  # most lines are ASCII

    if east_asian_width(character) in "WF":
        return 2
    return 1


def _short(value: object, depth: int) -> JSONValue:
    """Copy what a line may show of a value; what has no JSON form becomes its Python text."""
    if isinstance(value, str):
        if len(value) <= _MAX_VALUE:
            return value
        return f"{value[:_MAX_VALUE]}{_ELLIPSIS}"
    if (
        value is None
        or isinstance(value, (bool, int))
        or (isinstance(value, float) and value - value == 0)
    ):
        return value
    if depth < _MAX_DEPTH and isinstance(value, Mapping):
        items = list(value.items())[:_MAX_ITEMS]
        return {str(key)[:_MAX_VALUE]: _short(item, depth + 1) for key, item in items}
    if depth < _MAX_DEPTH and isinstance(value, (list, tuple)):
        return [_short(item, depth + 1) for item in value[:_MAX_ITEMS]]
    try:
        return repr(value)[:_MAX_VALUE]
    except Exception as error:  # foreign values: their own text may fail
        return f"({type(value).__name__}: {type(error).__name__})"
