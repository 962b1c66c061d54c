"""What the files of a project name that would run: commands, and sources of modules."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator
from typing import Final

import attrs

from amplifier_kit.open_data import as_list
from amplifier_kit.trust.runners import TASK_FILES
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["References", "references"]

_DIRECTIVE: Final = re.compile(r"!(?: ?)`([^`\n]+)`")

_TASK_KEYS: Final = (
    "cmd",
    "cmds",
    "command",
    "commands",
    "entrypoint",
    "entry",
    "run",
    "script",
    "scripts",
    "sh",
    "tasks",
)
"""Where lists of tasks have shell texts."""


@attrs.define(eq=False)
class References:
    """What a document names: shell texts, where modules come from, and where programs start."""

    commands: list[str] = attrs.field(factory=list)
    sources: list[str] = attrs.field(factory=list)
    folders: list[str] = attrs.field(factory=list)


def references(name: str, content: bytes, *, has_directives: bool) -> References:
    """Return what a document names; what cannot be read is an error where it is used.

    Args:
        name: its name, whose end says what it is: JSON, Markdown with front matter, else YAML.
        content: what it holds.
        has_directives: whether Markdown is a command, in which shell texts behind `!` run.
    """
    found = References()
    # read as far as it goes: whoever uses the file reports what is wrong with it
    text = content.decode("utf-8-sig", errors="replace")
    if has_directives and name.endswith(".md"):
        found.commands += _DIRECTIVE.findall(text)
    document = _read(name, text)
    for value in _values(document):
        _take(value, found)
    if os.path.basename(name) in TASK_FILES:
        found.commands += (
            text
            for value in _values(document)
            for key in _TASK_KEYS
            for text in _strings(value.get(key))
        )
    return found


def _read(name: str, text: str) -> JSONValue:
    if name.endswith(".json"):
        try:
            read: JSONValue = json.loads(text.removeprefix("\ufeff"))
        except (ValueError, RecursionError):
            return None
        return read
    # YAML is read where there is any
    from amplifier_kit.files.documents import DocumentError, parse_yaml
    from amplifier_kit.files.frontmatter import parse_front_matter

    try:
        if name.endswith(".md"):
            return dict(parse_front_matter(text).fields)
        return parse_yaml(text)
    except (DocumentError, RecursionError):
        return None


def _values(document: JSONValue) -> Iterator[dict[str, JSONValue]]:
    """Yield the mappings of a document, however deep."""
    # a list in the place of recursion: a document may nest deeper than Python
    # calls
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _strings(value: JSONValue) -> Iterator[str]:
    """Yield the texts in a value, however deep."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each


def _take(value: dict[str, JSONValue], found: References) -> None:
    command, arguments = value.get("command"), value.get("args")
    words = as_list(command)
    if isinstance(command, str):
        words = [command]
    rest = as_list(arguments)
    if isinstance(command, str) and not rest:
        found.commands.append(command)
    elif words:
        found.commands.append(
            shlex.join(word for word in (*words, *rest) if isinstance(word, str))
        )
    start = value.get("cwd")
    if words and isinstance(start, str):
        found.folders.append(start)
    for key, item in value.items():
        if key == "source" or key.endswith("_source"):
            found.sources += _texts(item)
        elif key == "sources" and isinstance(item, dict):
            found.sources += (text for each in item.values() for text in _texts(each))


def _texts(source: JSONValue) -> Iterator[str]:
    inside = source
    if isinstance(source, dict):
        inside = source.get("path")
    if isinstance(inside, str):
        yield inside
