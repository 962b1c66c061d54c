"""Front matter that is not quite YAML: what Claude Code's own examples write and its reader takes.

`argument-hint: [file] [language]` and a description of many lines with colons in it are no YAML. Sound YAML is read as
YAML; of anything else each known field begins its line, and holds all up to the next one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

import attrs

from amplifier_kit.files.documents import DocumentError
from amplifier_kit.files.frontmatter import parse_front_matter
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["LooseFile", "folded", "parse_loosely"]

_FIELD: Final = re.compile(r"^([A-Za-z][A-Za-z0-9_-]*):(?:[ \t]+|$)(.*)", re.DOTALL)
_LIST: Final = re.compile(r"\[(.*)\]\Z", re.DOTALL)
_BETWEEN: Final = re.compile(r",(?![^(]*\))")
_FENCE: Final = re.compile(r"^---[ \t]*$")
_FALSE: Final = frozenset({"false", "no", "off"})


@attrs.frozen(kw_only=True)
class LooseFile:
    """A Markdown file in its parts.

    Args:
        fields: what its front matter says; a text for each field that was no sound YAML.
        body: what comes after.
    """

    fields: Mapping[str, JSONValue]
    body: str

    def text(self, name: str) -> str:
        """Return a field as text; empty when it is missing. A list is written as it stood."""
        value = self.fields.get(name)
        if isinstance(value, list):
            return f"[{', '.join(map(str, value))}]"
        if value is None or isinstance(value, dict):
            return ""
        return str(value).strip()

    def words(self, name: str) -> tuple[str, ...] | None:
        """Return a field as the list that it is, or that its text holds between commas; `None` when it is missing."""
        value = self.fields.get(name)
        if isinstance(value, list):
            return tuple(str(item).strip() for item in value)
        if not isinstance(value, str):
            return None
        text = value.strip()
        inner = _LIST.match(text)
        items = _BETWEEN.split(inner[1] if inner else text)
        lines = [
            line.strip().removeprefix("- ")
            for item in items
            for line in item.split("\n")
        ]
        return tuple(_unquoted(line.strip()) for line in lines if line.strip())

    def flag(self, name: str) -> bool:
        """Return a field that limits as a truth: false when it is missing or says so, else true."""
        return name in self.fields and self.text(name).lower() not in _FALSE


def parse_loosely(text: str, known: Collection[str]) -> LooseFile:
    """Part a text into the fields at its head and its body; a text without front matter is all body.

    Args:
        text: the file's.
        known: the fields that there are; in a text that is no sound YAML other words before a colon are text.

    Raises:
        DocumentError: the front matter does not end, or says a known field twice.
    """
    try:
        read = parse_front_matter(text.removeprefix("\ufeff"))
    except DocumentError:
        lines = text.splitlines(keepends=True)
        end = next(
            (
                number
                for number, line in enumerate(lines)
                if number and _FENCE.match(line)
            ),
            None,
        )
        if end is None:
            raise
        return LooseFile(
            fields=_fields(lines[1:end], known), body="".join(lines[end + 1 :])
        )
    return LooseFile(fields=_canonical(read.fields, known), body=read.body)


def folded(name: str) -> str:
    """Return the form that the spellings of a field share: `allowed-tools`, `Allowed_Tools`, `allowedTools`."""
    return name.replace("-", "").replace("_", "").casefold()


def _canonical(
    fields: Mapping[str, JSONValue], known: Collection[str]
) -> dict[str, JSONValue]:
    """Return fields under the names that are known, however they are spelt, but none in two spellings."""
    names = {folded(name): name for name in known}
    found: dict[str, JSONValue] = {}
    for name, value in fields.items():
        canonical = names.get(folded(str(name)), name)
        if canonical in found:
            raise DocumentError(canonical, f"it is said twice, also as {name!r}")
        found[canonical] = value
    return found


def _fields(lines: list[str], known: Collection[str]) -> dict[str, JSONValue]:
    names = {folded(each): each for each in known}
    found: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        field = _FIELD.match(line)
        canonical = None
        if field is not None:
            canonical = names.get(folded(field[1]))
        if field is not None and canonical is not None and canonical not in found:
            name = canonical
            found[name] = [field[2]]
        elif name:
            found[name].append(line)
    return {name: _value("".join(part)) for name, part in found.items()}


def _value(text: str) -> str:
    """Return a field's text without what marks it as a block or as quoted."""
    first, _, rest = text.strip().partition("\n")
    if first.strip() in ("|", ">", "|-", ">-"):
        return "\n".join(line.strip() for line in rest.splitlines())
    return _unquoted(text.strip())


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text
