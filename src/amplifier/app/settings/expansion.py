"""References to the environment: `${NAME}`, `${NAME:default}`, and `${NAME:-default}` as shells write it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["Lookup", "expand", "literally"]

Lookup: TypeAlias = Callable[[str], str | None]
"""Returns the value of a name; `None` when it has none."""

# `$$` is part of the pattern, so that `$${NAME}` is read from the left and stays text.
_REFERENCE: Final = re.compile(
    r"\$(?:\$|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-?(?P<default>[^}]*))?\})"
)


def expand(
    value: JSONValue, lookup: Lookup, *, path: str, subject: str = "settings"
) -> JSONValue:
    """Return a value with its references filled in; `$$` is a dollar sign. Keys are left as they are.

    Args:
        value: JSON data; it is not changed.
        lookup: returns what a name stands for.
        path: where the value stands, for the message.
        subject: what it is part of, likewise.

    Raises:
        ConfigError: names without a value and without a default, each with its place.
    """
    problems: list[Problem] = []
    expanded = _expanded(value, lookup, path, problems)
    if problems:
        raise ConfigError(problems, subject=subject)
    return expanded


def literally(text: str) -> str:
    """Write a text so that it stands for itself, whatever dollar signs it has."""
    # Other dollar signs begin no reference, and stay legible.
    return re.sub(r"\$(?=[${])", "$$", text)


def _expanded(
    value: JSONValue, lookup: Lookup, path: str, problems: list[Problem]
) -> JSONValue:
    if isinstance(value, str):
        return _filled(value, lookup, path, problems)
    if isinstance(value, dict):
        return {
            name: _expanded(item, lookup, f"{path}.{name}", problems)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [
            _expanded(item, lookup, f"{path}[{number}]", problems)
            for number, item in enumerate(value)
        ]
    return value


def _filled(text: str, lookup: Lookup, path: str, problems: list[Problem]) -> str:
    def pieces() -> Iterator[str]:
        end = 0
        for match in _REFERENCE.finditer(text):
            yield text[end : match.start()]
            yield _value_of(match, lookup, path, problems)
            end = match.end()
        yield text[end:]

    return "".join(pieces())


def _value_of(
    match: re.Match[str], lookup: Lookup, path: str, problems: list[Problem]
) -> str:
    name = match["name"]
    if name is None:
        return "$"
    for found in (lookup(name), match["default"]):
        if found is not None:
            return found
    remedy = f"set it, write ${{{name}:default}}, or keep it with 'amplifier config secret set {name}'"
    problems.append(Problem(path, f"the variable {name} is not set; {remedy}"))
    # Every missing name is reported at once, not one for each attempt.
    return ""
