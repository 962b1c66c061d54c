"""Words for what is wrong with a value: where it stands, what it is, what was expected.

One wording serves a model's arguments and a module's configuration alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from amplifier_sdk.errors import did_you_mean

__all__ = [
    "PHRASES",
    "Path",
    "any_of",
    "path_text",
    "type_text",
    "unknown_key",
    "value_text",
]

Path: TypeAlias = "tuple[str | int, ...]"
"""Where a value stands inside a JSON value: keys and indexes from the outside in."""

PHRASES: Final[Mapping[str, str]] = {
    "exclusiveMaximum": "less than {}",
    "exclusiveMinimum": "more than {}",
    "falseSchema": "nothing here",
    "format": "text of the format {}",
    "maxItems": "at most {} items",
    "maxLength": "at most {} characters",
    "maxProperties": "at most {} keys",
    "maximum": "at most {}",
    "minItems": "at least {} items",
    "minLength": "at least {} characters",
    "minProperties": "at least {} keys",
    "minimum": "at least {}",
    "multipleOf": "a multiple of {}",
    "pattern": "text that matches the pattern {}",
    "uniqueItems": "items that all differ",
}
"""What the keywords of a schema ask for, as the object of `expected`."""

_PLAIN_KEY: Final = r"[A-Za-z_][\w-]*"
_SHOWN: Final = 60


def path_text(path: Iterable[str | int]) -> str:
    """Write a path as `servers[0].name`; keys that would not read well are quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif re.fullmatch(_PLAIN_KEY, part):
            text += f".{part}" if text else part
        else:
            # a key is any text: it may be long, or hold what a terminal obeys
            text += f"[{json.dumps(_cut(part))}]"
    return text


def value_text(value: object) -> str:
    """Say what a value is, in JSON's words, with the value itself cut to a readable length."""
    kind = type_text(value)
    if value is None:
        return kind
    # its size alone: what is inside may be long, and may be a secret
    if isinstance(value, (Mapping, list, tuple)):
        return f"{kind} with {len(value)} {_entries(value)}"
    return f"{kind} ({_cut(json.dumps(value) if isinstance(value, (str, bool, int, float)) else repr(value))})"


def type_text(value: object) -> str:
    """Name a value's JSON type with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a number"
        case str():
            return "a string"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "an array"
        case _:
            return f"a Python {type(value).__name__}"


def any_of(options: Sequence[str]) -> str:
    """Join options as a sentence does: `a, b or c`; each is named once."""
    distinct = list(dict.fromkeys(options))
    if len(distinct) < 2:
        return "".join(distinct)
    return f"{', '.join(distinct[:-1])} or {distinct[-1]}"


def unknown_key(name: object, known: Sequence[str]) -> str:
    """Say that a key is unknown, with the nearest known one or else all of them."""
    hint = did_you_mean(str(name), known)
    if hint:
        return f"unknown{hint}"
    if known:
        return f"unknown; the known keys are {', '.join(sorted(known))}"
    return "unknown; no keys are expected here"


def _entries(value: Mapping[object, object] | list[object] | tuple[object, ...]) -> str:
    noun = ("item", "items")
    if isinstance(value, Mapping):
        noun = ("key", "keys")
    return noun[len(value) != 1]


def _cut(text: str) -> str:
    if len(text) <= _SHOWN:
        return text
    return f"{text[: _SHOWN - 1]}…"
