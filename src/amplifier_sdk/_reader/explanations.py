"""Explanations: what a validator found, in words that a model can act on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from amplifier_sdk._reader.problems import (
    PHRASES,
    Path,
    any_of,
    unknown_key,
    value_text,
)
from amplifier_sdk.jsontypes import JSONValue

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

__all__ = ["explain"]


def explain(
    error: ValidationError, schema: Mapping[str, JSONValue]
) -> list[tuple[Path, str]]:
    """Word one validation error, a place and a message each; a union's error is that of the member that was meant."""
    path: Path = tuple(error.instance_path)
    details = error.kind.as_dict()
    match error.kind.name:
        case "required":
            name = str(details["property"])
            return [((*path, name), f"missing{_wanted(error, schema, name)}")]
        case "additionalProperties" | "unevaluatedProperties":
            known = _properties(error, schema)
            return [
                (
                    (*path, str(name)),
                    "unknown" if known is None else unknown_key(name, list(known)),
                )
                for name in details["unexpected"]
            ]
        case "anyOf" | "oneOf" if details.get("context"):
            return _explain_union(error, details["context"], schema)
        case _:
            return [
                (
                    path,
                    f"expected {_expectation(error)}, got {value_text(error.instance)}",
                )
            ]


def _explain_union(
    error: ValidationError,
    members: Sequence[Sequence[ValidationError]],
    schema: Mapping[str, JSONValue],
) -> list[tuple[Path, str]]:
    path = tuple(error.instance_path)
    # A member that took the outer form and refused only a part is the one meant; of several the one that took most.
    inside = [
        errors for errors in members if all(_is_about_parts(e, path) for e in errors)
    ]
    # several may fit as well as each other: to name one of them would mislead
    ranks = [_rank(errors, path) for errors in inside]
    if ranks and ranks.count(min(ranks)) == 1:
        return [
            line for e in inside[ranks.index(min(ranks))] for line in explain(e, schema)
        ]
    outer = [
        _expectation(e)
        for errors in members
        for e in errors[:1]
        if not _is_about_parts(e, path)
    ]
    if outer and not inside:
        expected = any_of(outer)
    else:
        expected = f"one of {len(members)} forms"
    return [(path, f"expected {expected}, got {value_text(error.instance)}")]


def _rank(errors: Sequence[ValidationError], path: Path) -> tuple[int, int]:
    """Count how many keys a member of a union misses or does not know, and all that is wrong."""
    return sum(tuple(error.instance_path) == path for error in errors), len(errors)


def _is_about_parts(error: ValidationError, path: Path) -> bool:
    # a missing or unknown key is reported at its object, and is about what is in it
    return tuple(error.instance_path) != path or error.kind.name in (
        "required",
        "additionalProperties",
    )


def _expectation(error: ValidationError) -> str:
    """Say what a keyword asks for, as the object of `expected`."""
    keyword, value = error.kind.name, error.kind.value
    match keyword:
        case "type":
            return any_of([_ARTICLES.get(name, name) for name in value])
        case "enum":
            return any_of([json.dumps(option) for option in value])
        case "const":
            return json.dumps(value)
        case _ if keyword in PHRASES:
            phrase = PHRASES[keyword].format(value)
            # the noun of each phrase that can be said of one stands at its end
            if value == 1:
                return phrase.removesuffix("s")
            return phrase
        case _:
            return f"a value that satisfies {keyword!r}"


def _properties(
    error: ValidationError, schema: Mapping[str, JSONValue]
) -> Mapping[str, JSONValue] | None:
    """Return the properties of the object schema whose keyword failed; `None` where it is not in this document."""
    # of a part with an address of its own the path begins at that part
    *parts, keyword = error.schema_path
    place: JSONValue = schema
    for part in parts:
        place = _part(place, part)
    if not isinstance(place, Mapping) or str(keyword) not in place:
        return None
    properties = place.get("properties")
    if isinstance(properties, Mapping):
        return properties
    return {}


def _part(value: JSONValue, key: str | int) -> JSONValue:
    """Return what stands under a key or an index of JSON data; `None` where nothing does."""
    if isinstance(value, Mapping):
        return value.get(str(key))
    if isinstance(value, Sequence) and isinstance(key, int) and key < len(value):
        return value[key]
    return None


def _wanted(error: ValidationError, schema: Mapping[str, JSONValue], name: str) -> str:
    """Say what a missing property should be, where its schema says so in one word."""
    wanted = (_properties(error, schema) or {}).get(name)
    kind = None
    if isinstance(wanted, Mapping):
        kind = wanted.get("type")
    if isinstance(kind, str):
        return f"; expected {_ARTICLES.get(kind, kind)}"
    return ""


_ARTICLES: Final[Mapping[str, str]] = {
    "array": "an array",
    "boolean": "a boolean",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}
