"""Values to JSON data and back: messages, requests, responses, results, and whatever a tool returns.

Fields keep their names. A field that is `None` and defaults to it is left out; `extras` stand among the other
fields. Decimals become text, enums their values, paths, dates and ids their text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import Enum
from math import isfinite
from pathlib import PurePath
from typing import Final, TypeVar

import attrs

from amplifier_sdk._readers import MisfitError
from amplifier_sdk._shapes import read_as
from amplifier_sdk._wording import Path, path_text
from amplifier_sdk.content import NO_EXTRAS, ContentBlock, block_to_dict
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message

__all__ = ["from_json", "to_json"]

C = TypeVar("C")

_TEXTS: Final = frozenset({("datetime", "datetime"), ("datetime", "date"), ("datetime", "time"), ("uuid", "UUID")})


def to_json(value: object) -> JSONValue:
    """Turn a value into JSON data; what it holds is copied.

    Raises:
        TypeError: something in it has no JSON form; the message names its path and type.
        ValueError: it holds a number that is not finite, or it holds itself.
    """
    try:
        return _write(value, ())
    except RecursionError:
        raise ValueError(f"A {type(value).__name__} that holds itself, or nests too deep, has no JSON form") from None


def from_json(data: JSONValue, cls: type[C]) -> C:
    """Turn JSON data into a value of a class that `to_json` wrote.

    Fields that the class does not know go into its `extras` when it has them.

    Args:
        data: the object, as JSON reads it.
        cls: an attrs class or a dataclass.

    Raises:
        ValueError: the data does not fit the class; the message names every problem's path.
        TypeError: the class has an annotation without a JSON form.
    """
    try:
        return read_as(cls, data)
    except MisfitError as misfit:
        problems = "; ".join(f"{path_text(path) or 'the value'}: {message}" for path, message in misfit.problems)
        raise ValueError(f"This is no {cls.__name__}: {problems}") from misfit.__cause__


def _write(value: object, path: Path) -> JSONValue:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return _write(value.value, path)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if isfinite(value):
            return float(value)
        raise ValueError(f"{_at(path)} is {value}, and JSON's numbers are finite")
    if isinstance(value, Mapping):
        return {_key(key, path): _write(item, (*path, str(key))) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [_write(item, (*path, index)) for index, item in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        return [_write(item, path) for item in sorted(value, key=repr)]  # a set's own order differs between runs
    return _write_object(value, path)


def _write_object(value: object, path: Path) -> JSONValue:
    cls = type(value)
    if isinstance(value, (Decimal, PurePath)):
        return str(value)
    if isinstance(value, Message):
        return value.to_dict()
    if isinstance(value, ContentBlock):
        return block_to_dict(value)
    if attrs.has(cls):
        return _write_fields(value, {f.name: (str(f.alias), f.default) for f in attrs.fields(cls) if f.init}, path)
    if hasattr(cls, "__dataclass_fields__"):
        return _write_fields(value, _dataclass_fields(cls), path)
    if any((base.__module__, base.__qualname__) in _TEXTS for base in cls.__mro__):
        return str(getattr(value, "isoformat", value.__str__)())
    raise TypeError(f"{_at(path)} is a {cls.__module__}.{cls.__qualname__}, which has no JSON form")


def _dataclass_fields(cls: type) -> dict[str, tuple[str, object]]:
    from dataclasses import fields  # whoever has a dataclass has it imported

    return {field.name: (field.name, field.default) for field in fields(cls) if field.init}


def _write_fields(value: object, fields: Mapping[str, tuple[str, object]], path: Path) -> JSONObject:
    data: JSONObject = {}
    extras: object = NO_EXTRAS
    for name, (key, default) in fields.items():
        item: object = getattr(value, name)
        if default is NO_EXTRAS:
            extras = item
        elif item is not None or default is not None:
            data[key] = _write(item, (*path, key))
    more = _write(extras, path)
    return {**more, **data} if isinstance(more, Mapping) else data


def _key(key: object, path: Path) -> str:
    if isinstance(key, Enum):
        return _key(key.value, path)
    if isinstance(key, str):
        return str.__str__(key)
    raise TypeError(f"{_at(path)} has the key {key!r:.40}, and JSON's keys are strings")


def _at(path: Path) -> str:
    return path_text(path) or "The value"
