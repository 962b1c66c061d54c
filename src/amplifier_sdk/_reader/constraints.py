"""Constraints: what stands in `Annotated` beside a type, as JSON Schema and as checks of Python values.

Objects are recognised by their attributes, so that those of `annotated_types`, of msgspec and of an author's
own serve alike. A text, or an object with one, describes.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sized
from typing import Final

from amplifier_sdk._reader.annotations import UnsupportedAnnotationError
from amplifier_sdk._reader.problems import PHRASES, value_text
from amplifier_sdk._reader.readers import BoundMisfitError, Reader
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["DECIMAL_FORMS", "constrained", "read_constrained"]

DECIMAL_FORMS: Final[list[JSONValue]] = [
    {"type": "number"},
    {"type": "string", "format": "decimal"},
]
"""How a decimal may be written."""

_BOUNDS: Final = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_LENGTHS: Final = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}


def constrained(schema: JSONObject, metadata: Iterable[object]) -> JSONObject:
    """Return a schema with what stands beside its type.

    Raises:
        UnsupportedAnnotationError: a bound is no number.
    """
    schema = dict(schema)
    for item in metadata:
        text = (
            item
            if isinstance(item, str)
            else getattr(item, "description", getattr(item, "documentation", None))
        )
        if isinstance(text, str) and text:
            schema["description"] = text
        if not isinstance(item, str):
            schema = _with_bounds(schema, item)
            schema |= _lengths(schema, item)
            pattern = _pattern(item)
            if pattern is not None:
                schema["pattern"] = pattern
    return schema


def _pattern(item: object) -> str | None:
    pattern = getattr(item, "pattern", None)
    # some authors compile theirs
    if isinstance(pattern, re.Pattern):
        pattern = pattern.pattern
    if isinstance(pattern, str):
        return pattern
    return None


def _with_bounds(schema: JSONObject, item: object) -> JSONObject:
    for name, keyword in _BOUNDS.items():
        bound = getattr(item, name, None)
        if bound is None:
            continue
        if isinstance(bound, bool) or not isinstance(bound, (int, float)):
            raise UnsupportedAnnotationError(
                item,
                reason=f"bounds by {value_text(bound)}; JSON Schema bounds numbers only",
            )
        if schema.get("anyOf") == DECIMAL_FORMS:
            # Text escapes a schema's numeric bounds, so a bounded decimal is written as a number.
            schema = {key: value for key, value in schema.items() if key != "anyOf"} | {
                "type": "number"
            }
        schema[keyword] = bound
    return schema


def _lengths(schema: JSONObject, item: object) -> JSONObject:
    found: JSONObject = {}
    members = schema.get("anyOf")
    kinds = [schema, *(members if isinstance(members, list) else ())]
    for name, place in (("min_length", 0), ("max_length", 1)):
        length = getattr(item, name, None)
        # a minimum of 0 refuses nothing; the fewer keywords the better for a model
        if length is None or (place == 0 and length == 0):
            continue
        for kind in kinds:
            if isinstance(kind, Mapping) and kind.get("type") in _LENGTHS:
                found[_LENGTHS[str(kind["type"])][place]] = length
    return found


_WORDS: Final[Mapping[str, str]] = {
    **{name: PHRASES[keyword] for name, keyword in _BOUNDS.items()},
    "min_length": "a length of at least {}",
    "max_length": "a length of at most {}",
}


def read_constrained(read: Reader, metadata: Iterable[object]) -> Reader:
    """Make a reader that holds what it read against the constraints beside its type; null is held against none."""
    metadata = [item for item in metadata if not isinstance(item, str)]
    tests = [
        (name, bound, words.format(bound))
        for item in metadata
        for name, words in _WORDS.items()
        if (bound := getattr(item, name, None)) is not None
    ]
    patterns = [pattern for item in metadata if (pattern := _pattern(item)) is not None]
    if not tests and not patterns:
        return read

    def read_and_test(value: object) -> object:
        result = read(value)
        # the bounds of `int | None` are about the int
        if result is None:
            return None
        for name, bound, words in tests:
            if not _holds(name, result, bound):
                raise BoundMisfitError.of(words, value)
        for pattern in patterns:
            if not isinstance(result, str) or re.search(pattern, result) is None:
                raise BoundMisfitError.of(PHRASES["pattern"].format(pattern), value)
        return result

    return read_and_test


def _holds(name: str, value: object, bound: object) -> bool:
    """Hold a value against one bound; what cannot be compared does not fit."""
    try:
        if name == "multiple_of":
            return bool(operator.mod(value, bound) == 0)
        if name.endswith("_length"):
            name, value = (
                ("ge" if name == "min_length" else "le"),
                len(value) if isinstance(value, Sized) else None,
            )
        # bounds are called like Python's operators
        compare: Callable[[object, object], object] = getattr(operator, name)
        return bool(compare(value, bound))
    except TypeError:
        return False
