"""One file of settings: its scope, what it holds, and where each value stands in it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar

import attrs

from amplifier.app.plan_entries import identity
from amplifier.app.settings.expansion import Lookup, expand
from amplifier.app.settings.schema import SettingsSchema
from amplifier_kit.files.documents import (
    find_line,
    find_lines,
    named_errors,
    parse_yaml,
)
from amplifier_kit.open_data import as_object
from amplifier_sdk.configuration import read_config
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.secret import is_secret_name

__all__ = [
    "FILES",
    "SCOPES",
    "Key",
    "Layer",
    "Scope",
    "decode_mapping",
    "find_module",
    "plan_entry",
    "read_fields",
    "read_key",
    "read_layer",
    "value_at",
    "with_lines",
]

C = TypeVar("C")

Scope: TypeAlias = Literal["session", "local", "project", "user"]
SCOPES: Final[tuple[Scope, ...]] = ("session", "local", "project", "user")
"""The scopes that have a file, the strongest first."""

FILES: Final = {
    "local": "settings.local.yaml",
    "project": "settings.yaml",
    "user": "settings.yaml",
}
"""The files of the scopes, in the project's folder or the person's own."""

Key: TypeAlias = "tuple[str | int, ...]"
"""Where a value stands: names and indexes from the outside in."""

_PART: Final = re.compile(
    r"\.?([A-Za-z_][\w-]*)|\[(\d+)\]|\[(\"(?:[^\"\\]|\\(?:[\"\\/bfnrt]|u[0-9A-Fa-f]{4}))*\")\]"
)
_UNQUOTE: Final = json.JSONDecoder(strict=False).decode
_REFERENCE: Final = "${"
_REMEDY: Final = (
    "keep it with 'amplifier config secret set NAME' and write ${NAME} here"
)


@attrs.frozen(kw_only=True)
class Layer:
    """A file of settings.

    Args:
        scope: whose it is.
        path: the file.
        values: what it holds, references to the environment as they were written.
        text: the file itself.
    """

    scope: Scope
    path: Path
    values: JSONObject
    text: str = attrs.field(default="", repr=False)

    @property
    def base(self) -> Path:
        """The folder that relative paths in it count from: the project's, or the one that the file stands in."""
        if self.scope in ("project", "local"):
            return self.path.parent.parent
        return self.path.parent

    def expanded(self, key: Sequence[str | int], lookup: Lookup) -> JSONValue:
        """Return the value under a key with its references filled in.

        Raises:
            ConfigError: it refers to a variable that is not set; names file and line.
        """
        subject, place = f"settings file {str(self.path)!r}", f"line {self.line(key)}"
        return expand(value_at(self.values, key), lookup, path=place, subject=subject)

    def line(self, key: Sequence[str | int]) -> int | None:
        """Return the line, from 1, on which a value begins, or as much of its path as the file has."""
        return find_line(self.text, key)


def read_layer(scope: Scope, path: Path, data: bytes) -> Layer:
    """Read a file of settings strictly.

    Args:
        scope: whose it is.
        path: the file, for messages.
        data: its content.

    Raises:
        ConfigError: it is no YAML, has a key that no setting has, a value that does not fit, or a secret in plain
            text; every problem has its line.
    """
    subject = f"settings file {str(path)!r}"
    values, text = decode_mapping(data, subject=subject)
    layer = Layer(scope=scope, path=path, values=values, text=text)
    _check(layer, subject)
    return layer


def decode_mapping(data: bytes, *, subject: str) -> tuple[JSONObject, str]:
    """Read a file's content as a mapping in YAML, an empty one as an empty mapping; return it with the text.

    Args:
        data: UTF-8, with or without a byte order mark.
        subject: what it is, for the message.

    Raises:
        ConfigError: it is no UTF-8, no YAML, or no mapping; names line and column.
    """
    with named_errors(subject):
        text = data.decode("utf-8-sig")
        values = parse_yaml(text)
    if values is not None and not isinstance(values, dict):
        raise ConfigError.of(
            "line 1", f"a mapping; got {type(values).__name__}", subject=subject
        )
    return values or {}, text


def plan_entry(entry: JSONValue) -> JSONValue:
    """Return a module of settings as plans write it: `id` is the plan's `instance_id`."""
    if not isinstance(entry, dict):
        return entry
    return {
        ("instance_id" if name == "id" else name): value
        for name, value in entry.items()
    }


def find_module(
    listed: Sequence[JSONValue], module: str, instance: JSONValue = None
) -> int:
    """Return where a list of settings has a module, or the place behind its last one."""
    for index, entry in enumerate(listed):
        if identity(as_object(plan_entry(entry))) == (module, instance):
            return index
    return len(listed)


def read_fields(
    cls: type[C], fields: Mapping[str, JSONValue], head: str, *, subject: str
) -> C:
    """Turn the fields at the head of a file into their class.

    Args:
        cls: the class.
        fields: the fields; one that is null is as if it were not there.
        head: the fields as they are written, in YAML.
        subject: what the file is, for the message.

    Raises:
        ConfigError: a key is unknown, or a value does not fit; every problem has its line.
    """
    try:
        return read_config(
            cls,
            {key: value for key, value in fields.items() if value is not None},
            subject=subject,
        )
    except ConfigError as error:
        raise ConfigError(with_lines(error.problems, head), subject=subject) from error


def with_lines(problems: Sequence[Problem], text: str) -> list[Problem]:
    """Return problems of a text in YAML with the lines of their places, where they have any."""
    # The text is parsed once for all problems: a hostile file has thousands.
    lines = find_lines(text, map(_key_of, problems))
    return [
        problem
        if line is None
        else Problem(f"line {line}, {problem.path}", problem.message)
        for problem, line in zip(problems, lines, strict=True)
    ]


def _key_of(problem: Problem) -> Key:
    try:
        return read_key(problem.path)
    except ValueError:
        return ()


def read_key(text: str) -> Key:
    """Read a key as people write it: `config.providers[0].module`.

    Raises:
        ValueError: it is none.
    """
    parts: list[str | int] = []
    end = 0
    while end < len(text) and (part := _PART.match(text, end)):
        name, index, quoted = part.groups()
        if index is not None:
            parts.append(int(index))
        elif name is not None:
            parts.append(name)
        else:
            # JSON texts, since names of modules may have dots and brackets
            parts.append(_UNQUOTE(quoted))
        end = part.end()
    if not parts or end != len(text):
        raise ValueError(
            f"a key is written as 'ui.show_tool_lines' or 'config.providers[0].module'; got {text!r}"
        )
    return tuple(parts)


def value_at(values: JSONValue, key: Sequence[str | int]) -> JSONValue:
    """Return the value under a key; `None` where there is none."""
    for part in key:
        if isinstance(values, dict) and isinstance(part, str):
            values = values.get(part)
        elif isinstance(values, list) and isinstance(part, int) and part < len(values):
            values = values[part]
        else:
            return None
    return values


def _check(layer: Layer, subject: str) -> None:
    problems = [
        Problem(path, "a secret in plain text; " + _REMEDY)
        for path in _plain_secrets(layer.values)
    ]
    try:
        # The schema knows no null: it says only that a weaker scope's value is taken
        # away.
        read_config(SettingsSchema, _without_nulls(layer.values), subject=subject)
    except ConfigError as error:
        problems += error.problems
    if problems:
        raise ConfigError(with_lines(problems, layer.text), subject=subject)


def _plain_secrets(
    value: JSONValue, path: str = "", *, secret: bool = False
) -> list[str]:
    """Return the paths of texts under keys named as secrets that are no references."""
    if isinstance(value, dict):
        begin = f"{path}." if path else ""
        return [
            found
            for name, item in value.items()
            for found in _plain_secrets(
                item, f"{begin}{name}", secret=is_secret_name(name)
            )
        ]
    if isinstance(value, list):
        return [
            found
            for number, item in enumerate(value)
            for found in _plain_secrets(item, f"{path}[{number}]", secret=secret)
        ]
    # Settings are shown, shared and backed up as they are; a secret must stand
    # elsewhere.
    if secret and isinstance(value, str) and value and _REFERENCE not in value:
        return [path]
    return []


def _without_nulls(values: JSONObject) -> JSONObject:
    """Leave out what a scope takes away from the weaker ones."""
    return {
        name: _without_nulls(value) if isinstance(value, dict) else value
        for name, value in values.items()
        if value is not None
    }
