"""Changing a settings file: some values, so that all else stays, comments too; or the whole text."""

from __future__ import annotations

import io
import json
import os
from collections.abc import (
    Callable,
    Iterable,
    MutableMapping,
    MutableSequence,
    Sequence,
)
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Protocol, TypeAlias

import attrs
import yaml

from amplifier.app.settings.layers import Key, Scope, read_layer
from amplifier_kit.files.atomic import write_private
from amplifier_kit.files.documents import DocumentError, parse_yaml, read_text
from amplifier_kit.installation import install_command
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["Revision", "change_settings", "cut_entry", "rewrite"]

_TIMEOUT = 5.0

Revision: TypeAlias = Callable[[JSONObject], Iterable[tuple[Key, JSONValue]]]
"""Gets what a settings file holds, and returns what is to be set in it, one after the other, `None` to take it away.

A key is names and indexes from the outside in; an index may be one behind the last, which appends.
"""


def change_settings(scope: Scope, path: Path, revision: Revision) -> None:
    """Change values in a settings file; the file is read and written whole, under one lock.

    Args:
        scope: whose file it is.
        path: the file; it need not exist.
        revision: says what is changed.

    Raises:
        ConfigError: the file would not be sound; it stays as it was.
        AmplifierError: the package that edits YAML is not installed, or a value cannot be changed by itself.
        OSError: it cannot be written, or another process writes it.
    """
    try:
        yaml = _round_trip()
    except ImportError as error:
        raise _lacks(error) from error

    def changed(text: str) -> str:
        # A file that is damaged already is refused before it is touched: the error is
        # its own and not the change's.
        wanted = deepcopy(read_layer(scope, path, text.encode()).values)
        ending = "\n"
        if "\r\n" in text:
            ending = "\r\n"
        # YAML libraries write one ending for all lines; the file gets back the one that
        # it had.
        text = text.replace("\r\n", "\n")
        for key, value in revision(deepcopy(wanted)):
            _set(wanted, key, value)
            text = _with(yaml, text, key, value, wanted)
        return text.replace("\n", ending)

    rewrite(scope, path, changed)


def rewrite(scope: Scope, path: Path, change: Callable[[str], str]) -> None:
    """Give a settings file the text that `change` makes of it; the file is written whole and under a lock.

    Args:
        scope: whose it is.
        path: the file; it need not exist.
        change: gets what the file holds, and returns what it will hold.

    Raises:
        ConfigError: the file would not be sound; it stays as it was.
        AmplifierError: the package that locks files is not installed, or it is a link.
        OSError: it cannot be written, or another process writes it.
    """
    # Written by a rename, which would replace the link and leave the file behind it as
    # it was.
    if path.is_symlink():
        raise AmplifierError(
            f"{path} is a link, and is not written over; edit {os.path.realpath(path)}"
        )
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        # its library comes with an extra, which readers need not have
        from amplifier_kit.files.locks import WriterLock

        lock = WriterLock.take(path, timeout=_TIMEOUT)
    except ImportError as error:
        raise _lacks(error) from error
    with lock:
        before = ""
        if path.exists():
            before = read_text(path)
        after = change(before)
        if after != before:
            # What is written must be readable by the next command, or the person could
            # not repair it with one.
            read_layer(scope, path, after.encode())
            write_private(path, after.encode())


def _lacks(error: ImportError) -> AmplifierError:
    return AmplifierError(
        f"To change settings, {error.name} is needed: {install_command('amplifier[cli]')}"
    )


class _RoundTrip(Protocol):
    """What is used of ruamel.yaml, whose documents are mappings and lists that remember their comments."""

    def load(self, text: str, /) -> object: ...
    def dump(self, document: object, stream: io.StringIO, /) -> None: ...


def _round_trip() -> _RoundTrip:
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    # Long lines are not folded: the file keeps the shape that its author gave it.
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    result: _RoundTrip = yaml
    return result


def _with(
    yaml: _RoundTrip, text: str, key: Key, value: JSONValue, wanted: JSONObject
) -> str:
    """Return a text in which one value is changed, which then holds what is wanted and nothing else."""
    # Setting what is there already changes no byte.
    if _holds(text, wanted):
        return text
    if value is None:
        # By its lines first: the round trip loses or moves comments beside what it
        # removes.
        cut = cut_entry(text, key)
        if cut is not None and _holds(cut, wanted):
            return cut
    document, changed = yaml.load(text), ""
    if document is None:
        # A file of comments alone has no document, and writing one would drop them.
        document, changed = {}, text
        if text and not text.endswith("\n"):
            changed = f"{text}\n"
    _set(document, key, value)
    if document:
        written = io.StringIO()
        yaml.dump(document, written)
        changed += written.getvalue()
    if not _holds(changed, wanted):
        problem = "an anchor shares it, or it has characters that YAML changes"
        raise AmplifierError(
            f"The setting {key} cannot be changed by itself: {problem}; use 'amplifier config edit'"
        )
    return changed


def _holds(text: str, wanted: JSONObject) -> bool:
    try:
        return _plain(parse_yaml(text) or {}) == _plain(wanted)
    except DocumentError:
        return False


def _plain(values: JSONValue) -> str:
    """Write values so that what differs in type alone differs as well."""
    # In Python `True == 1`, and in a settings file they differ.
    return json.dumps(values, sort_keys=True)


def _set(document: object, key: Key, value: JSONValue) -> None:
    """Set a value at its place, making what is missing on the way; or remove it, and the mappings it leaves empty."""
    holder = document
    trail: list[tuple[object, str | int]] = []
    for part, after in pairwise(key):
        fresh: object = None
        if value is not None:
            fresh = [] if isinstance(after, int) else {}
        trail.append((holder, part))
        holder = _child(holder, part, fresh)
        if holder is None:
            return
    is_gone = _put(holder, key, value)
    while is_gone and trail and isinstance(holder, MutableMapping) and not holder:
        holder, part = trail.pop()
        if isinstance(holder, MutableMapping):
            del holder[part]


def _put(holder: object, key: Key, value: JSONValue) -> bool:
    """Set or remove the last part of a key; whether something was removed."""
    last = key[-1]
    if isinstance(holder, MutableMapping) and isinstance(last, str):
        is_there = last in holder
        if value is None:
            holder.pop(last, None)
        else:
            holder[last] = value
    elif (
        isinstance(holder, MutableSequence)
        and isinstance(last, int)
        and last <= len(holder)
    ):
        is_there = last < len(holder)
        if value is None:
            holder[last : last + 1] = []
        else:
            holder[last : last + 1] = [value]
    else:
        raise _misplaced(key, last)
    return is_there and value is None


def _child(holder: object, part: str | int, fresh: object) -> object:
    if isinstance(holder, MutableMapping) and isinstance(part, str):
        if holder.get(part) is None and fresh is not None:
            holder[part] = fresh
        return holder.get(part)
    if (
        isinstance(holder, MutableSequence)
        and isinstance(part, int)
        and part <= len(holder)
    ):
        if part == len(holder) and fresh is not None:
            holder.append(fresh)
        if part < len(holder):
            return holder[part]
        return None
    raise _misplaced((part,), part)


def _misplaced(key: Key, part: str | int) -> AmplifierError:
    what = "an index" if isinstance(part, int) else "a name"
    return AmplifierError(
        f"The setting {key} cannot be set: {part!r} is {what}, and there is none at its place"
    )


def cut_entry(text: str, key: Sequence[str | int]) -> str | None:
    """Return a text without an entry, and without the mappings that it leaves empty; `None` where lines do not do.

    Nothing is known of anchors: the caller checks what the result means.

    Args:
        text: sound YAML.
        key: names and indexes from the outside in.
    """
    entry = _entry(yaml.compose(text, Loader=yaml.CSafeLoader), key)
    if entry is None or entry.holder.flow_style:
        return None
    lines = text.splitlines(keepends=True)
    first = entry.name.start_mark
    before = lines[first.line][: first.column].strip()
    if before != ("-" if isinstance(entry.holder, yaml.SequenceNode) else ""):
        return None
    left = list[str]()
    if len(entry.holder.value) == 1:
        left = _nothing(entry.holder)
    return "".join([*lines[: first.line], *left, *lines[_last_line(entry.value) + 1 :]])


@attrs.frozen
class _Entry:
    """Its container, its key (in a list itself), and its value."""

    holder: yaml.CollectionNode
    name: yaml.Node
    value: yaml.Node


def _entry(root: yaml.Node | None, key: Sequence[str | int]) -> _Entry | None:
    """Return the entry, or the outermost mapping's that holds nothing else."""
    found: _Entry | None = None
    node = root
    for part in key:
        child = _entry_in(node, part)
        if child is None:
            return None
        is_mapping = isinstance(child.holder, yaml.MappingNode)
        is_alone = is_mapping and len(child.holder.value) == 1
        if found is None or not is_alone or isinstance(found.holder, yaml.SequenceNode):
            found = child
        node = child.value
    return found


def _entry_in(node: yaml.Node | None, part: str | int) -> _Entry | None:
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if name.value == part:
                return _Entry(node, name, value)
    elif (
        isinstance(node, yaml.SequenceNode)
        and isinstance(part, int)
        and part < len(node.value)
    ):
        return _Entry(node, node.value[part], node.value[part])
    return None


def _nothing(holder: yaml.CollectionNode) -> list[str]:
    """Return the line that stands for an empty list, or for the mapping of a list's entry."""
    if isinstance(holder, yaml.MappingNode) and holder.start_mark.column == 0:
        return []
    brackets = "[]" if isinstance(holder, yaml.SequenceNode) else "{}"
    return [f"{' ' * (holder.start_mark.column + 2)}{brackets}\n"]


def _last_line(node: yaml.Node) -> int:
    """Return the line on which a node's own text ends; comments behind it are not its own."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last_line(last[1] if isinstance(last, tuple) else last)
    end = node.end_mark
    if end.column:
        return end.line
    return max(node.start_mark.line, end.line - 1)
