"""Docstrings as parts: the summary, the text before the sections, and each argument's own text.

Reads the three customary forms: Google (`Args:`), NumPy (`Parameters` over a rule of dashes) and Sphinx
(`:param name: …`). What it does not know ends the description and is skipped.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

__all__ = ["Docstring", "parse"]

_NO_ARGUMENTS: Final[Mapping[str, str]] = MappingProxyType({})
_ARGUMENT_SECTIONS: Final = frozenset(
    {
        "args",
        "arguments",
        "attributes",
        "keyword args",
        "keyword arguments",
        "other parameters",
        "parameters",
        "params",
    }
)
_OTHER_SECTIONS: Final = frozenset(
    {
        "example",
        "examples",
        "note",
        "notes",
        "raises",
        "receives",
        "references",
        "return",
        "returns",
        "see also",
        "todo",
        "warning",
        "warnings",
        "warns",
        "yield",
        "yields",
    }
)
_SECTIONS: Final = _ARGUMENT_SECTIONS | _OTHER_SECTIONS
# Patterns stay text, so that a process pays for compiling those alone that its tools need.
_FIELD: Final = r":(?P<kind>[a-zA-Z]+)(?:\s+(?P<rest>[^:]*))?:(?:\s+(?P<text>.*))?$"
_FIELD_KINDS: Final = frozenset(
    {"arg", "argument", "ivar", "key", "keyword", "param", "parameter", "var"}
)
_GOOGLE_ITEM: Final = (
    r"(?P<name>\*{0,2}\w+)\s*(?:\([^)]*(?:\([^)]*\)[^)]*)*\))?\s*:(?:\s+(?P<text>.*))?$"
)
_NUMPY_ITEM: Final = r"(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$"


class Docstring(NamedTuple):
    """A docstring's parts; `arguments` maps a name to its text, on one line."""

    summary: str = ""
    description: str = ""
    arguments: Mapping[str, str] = _NO_ARGUMENTS

    @property
    def text(self) -> str:
        """The summary and the description: what stands before the sections."""
        if self.description:
            return f"{self.summary}\n\n{self.description}"
        return self.summary


_EMPTY: Final = Docstring()


def parse(doc: str | None) -> Docstring:
    """Split a docstring into its summary, its description and the texts of its arguments."""
    if not doc or doc.isspace():
        return _EMPTY
    lines = inspect.cleandoc(doc).splitlines()
    starts = [number for number in range(len(lines)) if _starts_section(lines, number)]
    summary, description = _split_prose(lines[: starts[0]] if starts else lines)
    if not starts:
        return Docstring(summary, description)
    arguments: dict[str, str] = {}
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        arguments |= _read_section(lines, start, end)
    return Docstring(summary, description, arguments)


def _starts_section(lines: Sequence[str], number: int) -> bool:
    titles = (_google_title(lines, number), _numpy_title(lines, number))
    return any(titles) or _is_field(lines[number])


def _google_title(lines: Sequence[str], number: int) -> str | None:
    line = lines[number]
    if not line.endswith(":") or line[:1].isspace():
        return None
    title = line[:-1].strip().lower()
    if title not in _SECTIONS:
        return None
    # "Note:" before prose on the next, unindented line is a sentence's start, not a section.
    following = next((line for line in lines[number + 1 :] if line.strip()), " ")
    if following[0].isspace():
        return title
    return None


def _numpy_title(lines: Sequence[str], number: int) -> str | None:
    if number + 1 >= len(lines) or not _is_rule(lines[number + 1]):
        return None
    title = lines[number].strip().lower()
    if title in _SECTIONS:
        return title
    return None


def _is_rule(line: str) -> bool:
    rule = line.rstrip()
    return len(rule) > 2 and not rule.strip("-")


def _is_field(line: str) -> bool:
    return line.startswith(":") and re.match(_FIELD, line) is not None


def _split_prose(lines: Sequence[str]) -> tuple[str, str]:
    """Return the first paragraph on one line, and the rest as it stands."""
    blank = next(
        (number for number, line in enumerate(lines) if not line.strip()), len(lines)
    )
    summary = " ".join(line.strip() for line in lines[:blank])
    return summary, "\n".join(lines[blank:]).strip()


def _read_section(lines: Sequence[str], start: int, end: int) -> dict[str, str]:
    if _is_field(lines[start]):
        return _read_field(lines[start:end])
    if _google_title(lines, start) in _ARGUMENT_SECTIONS:
        return _read_google(lines[start + 1 : end])
    if _numpy_title(lines, start) in _ARGUMENT_SECTIONS:
        return _read_numpy(lines[start + 2 : end])
    return {}


def _read_field(lines: Sequence[str]) -> dict[str, str]:
    """Read `:param [type] name: text` and the lines that continue it."""
    found = re.match(_FIELD, lines[0])
    if (
        found is None
        or found["kind"].lower() not in _FIELD_KINDS
        or not (found["rest"] or "").strip()
    ):
        return {}
    # Sphinx allows a type before the name, and escapes the star of `*args`
    name = found["rest"].split()[-1].lstrip("*").replace("\\*", "")
    return {name: _one_line([found["text"] or "", *lines[1:]])}


def _read_google(lines: Sequence[str]) -> dict[str, str]:
    """Read `name (type): text` items, each with the deeper lines that continue it."""
    indent = min((_indent(line) for line in lines if line.strip()), default=0)
    texts: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        found = None
        if _indent(line) == indent:
            found = re.match(_GOOGLE_ITEM, line.strip())
        # a name that is described twice has both texts
        if found is not None:
            current = texts.setdefault(found["name"].lstrip("*"), [])
            current.append(found["text"] or "")
            continue
        current.append(line)
    return {name: _one_line(text) for name, text in texts.items()}


def _read_numpy(lines: Sequence[str]) -> dict[str, str]:
    """Read `name : type` items, each with the indented lines below it."""
    texts: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        found = None
        if not line[:1].isspace():
            found = re.match(_NUMPY_ITEM, line)
        if found is None:
            current.append(line)
            continue
        current = []
        for name in found["names"].split(","):
            texts[name.strip().lstrip("*")] = current
    return {name: _one_line(text) for name, text in texts.items()}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _one_line(lines: Sequence[str]) -> str:
    return " ".join(" ".join(lines).split())
