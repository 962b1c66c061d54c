"""Changing a settings file: one value, so that all else stays, comments too; or the whole text."""

from __future__ import annotations

import io
from collections.abc import Callable, MutableMapping, MutableSequence
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from amplifier.app.settings.layers import Key, Scope, read_layer
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.kit.atomic import write_private
from amplifier_sdk.kit.documents import read_text

__all__ = ["change_setting", "rewrite"]

_PATIENCE = 5.0


def change_setting(scope: Scope, path: Path, key: Key, value: JSONValue) -> None:
    """Set a value in a settings file, or take it away with `None`; the file is written whole and under a lock.

    Args:
        scope: whose file it is.
        path: the file; it need not exist.
        key: names and indexes from the outside in; an index may be one behind the last, which appends.
        value: JSON data.

    Raises:
        ConfigError: the file would not be sound; it stays as it was.
        AmplifierError: the package that edits YAML is not installed.
        OSError: it cannot be written, or another process writes it.
    """
    try:
        yaml = _round_trip()
    except ImportError as error:
        raise _lacks(error) from error

    def changed(text: str) -> str:
        read_layer(scope, path, text.encode())
        document = yaml.load(text)
        if document is None:
            document = {}
        _set(document, key, value)
        written = io.StringIO()
        yaml.dump(document, written)
        return written.getvalue() if document else ""

    rewrite(scope, path, changed)


def rewrite(scope: Scope, path: Path, change: Callable[[str], str]) -> None:
    """Give a settings file the text that `change` makes of it; the file is written whole and under a lock.

    Args:
        scope: whose it is.
        path: the file; it need not exist.
        change: gets what the file holds, and returns what it will hold.

    Raises:
        ConfigError: the file would not be sound; it stays as it was.
        AmplifierError: the package that locks files is not installed.
        OSError: it cannot be written, or another process writes it.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        from amplifier_sdk.kit.locks import WriterLock  # its library comes with an extra, which readers need not have

        lock = WriterLock.take(path, patience=_PATIENCE)
    except ImportError as error:
        raise _lacks(error) from error
    try:
        data = change(read_text(path) if path.exists() else "").encode()
        read_layer(scope, path, data)
        write_private(path, data)
    finally:
        lock.release()


def _lacks(error: ImportError) -> AmplifierError:
    return AmplifierError(f"To change settings, {error.name} is needed: pip install 'amplifier[cli]'")


class _RoundTrip(Protocol):
    """What is used of ruamel.yaml, whose documents are mappings and lists that remember their comments."""

    def load(self, text: str, /) -> object: ...
    def dump(self, document: object, stream: io.StringIO, /) -> None: ...


def _round_trip() -> _RoundTrip:
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    result: _RoundTrip = yaml
    return result


def _set(document: object, key: Key, value: JSONValue) -> None:
    """Walk to the value's place, making what is missing on the way, and set or remove it there."""
    holder = document
    for part, after in pairwise(key):
        fresh: object = [] if isinstance(after, int) else {}
        holder = _child(holder, part, fresh if value is not None else None)
        if holder is None:
            return
    last = key[-1]
    if isinstance(holder, MutableMapping) and isinstance(last, str):
        if value is None:
            holder.pop(last, None)
        else:
            holder[last] = value
    elif isinstance(holder, MutableSequence) and isinstance(last, int) and last <= len(holder):
        if value is None:
            del holder[last : last + 1]
        else:
            holder[last : last + 1] = [value]
    else:
        raise _misplaced(key, last)


def _child(holder: object, part: str | int, fresh: object) -> object:
    if isinstance(holder, MutableMapping) and isinstance(part, str):
        if holder.get(part) is None and fresh is not None:
            holder[part] = fresh
        return holder.get(part)
    if isinstance(holder, MutableSequence) and isinstance(part, int) and part <= len(holder):
        if part == len(holder) and fresh is not None:
            holder.append(fresh)
        return holder[part] if part < len(holder) else None
    raise _misplaced((part,), part)


def _misplaced(key: Key, part: str | int) -> AmplifierError:
    what = "an index" if isinstance(part, int) else "a name"
    return AmplifierError(f"The setting {key} cannot be set: {part!r} is {what}, and there is none at its place")
