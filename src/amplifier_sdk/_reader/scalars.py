"""Shapes of single values: JSON's own, choices, what is written as text, and classes that read themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from os import PathLike
from typing import Final, NamedTuple, Protocol

from amplifier_sdk._reader.annotations import UnsupportedAnnotationError
from amplifier_sdk._reader.constraints import DECIMAL_FORMS
from amplifier_sdk._reader.problems import any_of
from amplifier_sdk._reader.readers import (
    MisfitError,
    Reader,
    anything,
    read_boolean,
    read_choice,
    read_constructed,
    read_decimal,
    read_integer,
    read_null,
    read_number,
    read_secret,
    read_string,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "ANYTHING",
    "Shape",
    "choices",
    "is_path",
    "name_of",
    "plain_shape",
    "shape_by_itself",
    "text_shape",
]


class Shape(NamedTuple):
    """How values of one annotation look in JSON and how they are read.

    `plain` values need no reading once their schema accepted them; `expected` names them with an article.
    """

    schema: JSONObject
    read: Reader
    expected: str
    plain: bool = False


ANYTHING: Final = Shape({}, anything, "any JSON value", plain=True)
_SIMPLE: Final[Mapping[object, tuple[str, Reader, str, bool]]] = {
    str: ("string", read_string, "a string", True),
    bool: ("boolean", read_boolean, "a boolean", True),
    # to a schema 3.0 is an integer and 3 a number: what it accepted must still be read
    int: ("integer", read_integer, "an integer", False),
    float: ("number", read_number, "a number", False),
    # an annotation says None, and the members of a union are classes
    type(None): ("null", read_null, "null", True),
    None: ("null", read_null, "null", True),
}


def plain_shape(annotation: object) -> Shape | None:
    """Return the shape of JSON's own scalars; `None` for any other annotation."""
    simple = None
    if annotation is None or isinstance(annotation, type):
        simple = _SIMPLE.get(annotation)
    if simple is None:
        return None
    name, read, expected, plain = simple
    return Shape({"type": name}, read, expected, plain)


def text_shape(cls: type) -> Shape | None:
    """Return the shape of a class whose values are written as text; `None` for any other."""
    build = _TEXTS.get(name_of(cls))
    if build is not None:
        return build(cls)
    if is_path(cls):
        return _path(cls)
    return None


def name_of(cls: object) -> tuple[str, str]:
    """Return where a class is defined and what it is called there."""
    return getattr(cls, "__module__", ""), getattr(cls, "__qualname__", "")


class _ReadsItself(Protocol):
    """A class of ours that reads objects of more than one form."""

    @classmethod
    def from_dict(cls, data: Mapping[str, JSONValue]) -> object:
        """Read an object."""


def shape_by_itself(cls: type[_ReadsItself]) -> Shape:
    return Shape({"type": "object"}, partial(_read_from_dict, cls), "an object")


def _read_from_dict(cls: type[_ReadsItself], value: object) -> object:
    if isinstance(value, cls):
        return value
    if not isinstance(value, Mapping):
        raise MisfitError.of("an object", value)
    try:
        return cls.from_dict(value)
    except ValueError as error:
        raise MisfitError([((), str(error))]) from error


def _event(cls: type) -> Shape:
    return Shape({"type": "string"}, partial(_read_event, cls), "an event's name")


def _read_event(cls: object, value: object) -> object:
    if isinstance(value, str) and isinstance(cls, type):
        if isinstance(value, cls):
            return value
        return cls(value)
    raise MisfitError.of("an event's name", value)


def _secret(cls: type) -> Shape:
    schema: JSONObject = {"type": "string", "format": "password", "writeOnly": True}
    return Shape(schema, read_secret(cls, cls), "a string")


def _decimal(cls: type) -> Shape:
    return Shape({"anyOf": DECIMAL_FORMS}, read_decimal(cls, cls), "a decimal number")


def _formatted(name: str, expected: str, cls: type) -> Shape:
    # a UUID is read by its class itself
    build: Callable[[str], object] = getattr(cls, "fromisoformat", cls)
    return _constructed(name, build, cls, expected)


def _duration(cls: type) -> Shape:
    from amplifier_sdk._reader.durations import (
        read_duration,  # few tools take durations
    )

    return _constructed("duration", read_duration, cls, "a duration such as PT1H30M")


def _constructed(
    name: str, build: Callable[[str], object], cls: type, expected: str
) -> Shape:
    schema: JSONObject = {"type": "string", "format": name}
    return Shape(schema, read_constructed(build, cls, expected), expected)


# By name: importing these modules only to compare would cost every process some
# milliseconds.
_TEXTS: Final[Mapping[tuple[str, str], Callable[[type], Shape]]] = {
    ("amplifier_sdk.events", "Event"): _event,
    ("amplifier_sdk.secret", "Secret"): _secret,
    ("datetime", "date"): partial(_formatted, "date", "a date such as 2030-01-31"),
    ("datetime", "datetime"): partial(
        _formatted, "date-time", "a date and time such as 2030-01-31T09:30:00Z"
    ),
    ("datetime", "time"): partial(_formatted, "time", "a time such as 09:30:00"),
    ("datetime", "timedelta"): _duration,
    ("decimal", "Decimal"): _decimal,
    ("uuid", "UUID"): partial(_formatted, "uuid", "a UUID"),
}


def is_path(cls: type) -> bool:
    """Tell whether a class is one of pathlib's, without importing pathlib for those who never do."""
    if not issubclass(cls, PathLike):
        return False
    from pathlib import PurePath  # whoever has such a class has most likely imported it

    return issubclass(cls, PurePath)


def _path(cls: type) -> Shape:
    from pathlib import Path, PurePath  # whoever has such a class has it imported

    return _constructed("path", Path if cls is PurePath else cls, cls, "a path")


def choices(annotation: object, choices: Sequence[tuple[object, object]]) -> Shape:
    """Return the shape of an Enum's or a Literal's values."""
    pairs = [
        (value.value if isinstance(value, Enum) else value, result)
        for value, result in choices
    ]
    values = [
        value
        for value, _ in pairs
        if value is None or isinstance(value, (str, int, float))
    ]
    if not values or len(values) != len(pairs):
        raise UnsupportedAnnotationError(
            annotation, reason="has values that are not text, numbers, booleans or null"
        )
    schema: JSONObject = {"enum": [_scalar(value) for value in values]}
    kinds = {_SIMPLE[type(value)][0] for value in values if type(value) in _SIMPLE}
    if len(kinds) == 1:
        schema["type"] = kinds.pop()
    expected = any_of(
        [repr(_scalar(value)) if value is not None else "null" for value in values]
    )
    # The number 1.0 is the integer 1 in JSON, so numbers are looked up even when they stand for themselves.
    plain = all(
        result is value and isinstance(value, (str, bool, type(None)))
        for value, result in pairs
    )
    return Shape(schema, read_choice(pairs, expected), expected, plain)


def _scalar(value: str | float | None) -> JSONValue:
    """Return the value as JSON's own type: members of a `StrEnum` are more than text."""
    if isinstance(value, str):
        return str.__str__(value)
    return value
