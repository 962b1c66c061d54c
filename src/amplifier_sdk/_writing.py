"""The converter's other half: each hook turns a value of one kind into JSON data, whatever its annotation says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from enum import Enum
from math import isfinite
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar, get_args

import attrs

from amplifier_sdk._wording import Path as Place
from amplifier_sdk._wording import path_text
from amplifier_sdk.content import NO_EXTRAS, ContentBlock, block_to_dict
from amplifier_sdk.messages import Message
from amplifier_sdk.secret import Secret

if TYPE_CHECKING:
    from datetime import timedelta

    from cattrs import Converter

__all__ = ["UnwritableError", "add_writers", "refuse"]

K = TypeVar("K")
V = TypeVar("V")

# Compared by name: importing these modules only to compare would cost every process some milliseconds.
_DATES: Final = frozenset({("datetime", "datetime"), ("datetime", "date"), ("datetime", "time"), ("uuid", "UUID")})
_DURATION: Final = ("datetime", "timedelta")


class UnwritableError(Exception):
    """A value has no JSON form; `path` says where it stands."""

    def __init__(self, reason: str, path: Place = ()) -> None:
        self.reason = reason
        self.path = path
        super().__init__(f"{path_text(path) or 'The value'} {reason}")

    def under(self, part: str | int) -> UnwritableError:
        """Return the error as seen from the value that holds this one under `part`."""
        return type(self)(self.reason, (part, *self.path))


class NoFormError(UnwritableError, TypeError):
    """JSON has nothing for values of this type."""


class NotFiniteError(UnwritableError, ValueError):
    """A number is not finite, and JSON's numbers are."""


def refuse(value: object) -> NoReturn:
    """Refuse a value.

    Raises:
        NoFormError: always.
    """
    raise NoFormError(f"is a {type(value).__module__}.{type(value).__qualname__}, which has no JSON form")


def add_writers(converter: Converter) -> None:
    """Register the hooks by what a value is; of two that fit, the one registered later is taken."""
    _add(converter, _is_text, _text)
    _add(converter, _is_duration, _duration)
    _add(converter, _is_record, _fields)
    _add(converter, _is(*get_args(ContentBlock)), _block)
    _add(converter, _is(Message), _message)
    _add(converter, _is(AbstractSet), _set)
    _add(converter, _is(Sequence), _array)
    _add(converter, _is(bytearray, memoryview), _refused)
    _add(converter, _is(Mapping), _object)
    _add(converter, _is(Enum), _member)
    converter.register_unstructure_hook(type(None), lambda value: value)
    converter.register_unstructure_hook(bool, bool)
    converter.register_unstructure_hook(int, int)
    converter.register_unstructure_hook(float, _number)
    converter.register_unstructure_hook(str, str.__str__)  # a kind of `str` becomes the plain text
    converter.register_unstructure_hook(bytes, refuse)
    converter.register_unstructure_hook(Secret, str)  # which is that it is withheld
    converter.register_unstructure_hook(Path, str)


def _add(converter: Converter, fits: Callable[[type], bool], write: Callable[[V, Converter], object]) -> None:
    def hook_for(_: type, used: Converter) -> Callable[[V], object]:
        return lambda value: write(value, used)

    converter.register_unstructure_hook_factory(fits, hook_for)


def _is(*kinds: type) -> Callable[[type], bool]:
    return lambda cls: issubclass(cls, kinds)


def _number(value: float) -> float:
    if isfinite(value):
        return float(value)
    raise NotFiniteError(f"is {value}, and JSON's numbers are finite")


def _array(values: Iterable[object], converter: Converter) -> list[object]:
    return [_part(item, index, converter) for index, item in enumerate(values)]


def _block(value: ContentBlock, converter: Converter) -> dict[str, object]:
    return _object(block_to_dict(value), converter)


def _message(value: Message, converter: Converter) -> dict[str, object]:
    return _object(value.to_dict(), converter)


def _member(value: Enum, converter: Converter) -> object:
    written: object = converter.unstructure(value.value)
    return written


def _refused(value: object, _: Converter) -> NoReturn:
    refuse(value)


def _set(values: Iterable[object], converter: Converter) -> list[object]:
    # A set's own order differs between runs.
    return [converter.unstructure(item) for item in sorted(values, key=repr)]


def _object(values: Mapping[K, object], converter: Converter) -> dict[str, object]:
    return {_key(key): _part(item, str(key), converter) for key, item in values.items()}


def _key(key: object) -> str:
    if isinstance(key, Enum):
        return _key(key.value)
    if isinstance(key, str):
        return str.__str__(key)
    raise NoFormError(f"has the key {key!r:.40}, and JSON's keys are strings")


def _part(value: object, part: str | int, converter: Converter) -> object:
    try:
        written: object = converter.unstructure(value)
    except UnwritableError as error:
        raise error.under(part) from None
    return written


def _is_record(cls: type) -> bool:
    return attrs.has(cls) or hasattr(cls, "__dataclass_fields__")


def _fields(value: object, converter: Converter) -> dict[str, object]:
    """Write the fields that a record is made of; `None` where it is the default is left out, extras lie flat."""
    data: dict[str, object] = {}
    extras: dict[str, object] = {}
    for name, key, default in _fields_of(type(value)):
        item: object = getattr(value, name)
        if default is NO_EXTRAS:
            extras = _object(item, converter) if isinstance(item, Mapping) else {}
        elif item is not None or default is not None:
            data[key] = _part(item, key, converter)
    return {**extras, **data}  # what the record itself says wins


def _fields_of(cls: type) -> list[tuple[str, str, object]]:
    """Return each field's name, its key and its default."""
    if attrs.has(cls):
        return [(field.name, str(field.alias), field.default) for field in attrs.fields(cls) if field.init]
    from dataclasses import fields  # whoever has a dataclass has it imported

    return [(field.name, field.name, field.default) for field in fields(cls) if field.init]


def _is_text(cls: type) -> bool:
    names = {(base.__module__, base.__qualname__) for base in cls.__mro__}
    return issubclass(cls, (Decimal, PurePath)) or not names.isdisjoint(_DATES)


def _is_duration(cls: type) -> bool:
    return any((base.__module__, base.__qualname__) == _DURATION for base in cls.__mro__)


def _duration(value: timedelta, _: Converter) -> str:
    from amplifier_sdk._durations import duration_text  # few values are durations

    return duration_text(value)


def _text(value: object, _: Converter) -> str:
    return str(getattr(value, "isoformat", value.__str__)())
