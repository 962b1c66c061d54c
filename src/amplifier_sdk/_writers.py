"""Writers: each turns a Python value of one kind into JSON data, whatever its annotation says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from math import isfinite
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias, cast, get_args

import attrs

from amplifier_sdk._reader.models import is_model, written_model
from amplifier_sdk._reader.problems import Path, path_text
from amplifier_sdk._reader.records import raw_fields
from amplifier_sdk.content import ContentBlock, block_to_dict
from amplifier_sdk.messages import Message
from amplifier_sdk.secret import Secret
from amplifier_sdk.values import NO_EXTRAS

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = ["UnwritableError", "write", "write_with"]

Write: TypeAlias = Callable[[object], object]
"""Writes a value that stands inside another one."""

# Compared by name: importing these modules only to compare would cost every process some milliseconds.
_DATES: Final = frozenset(
    {
        ("datetime", "datetime"),
        ("datetime", "date"),
        ("datetime", "time"),
        ("uuid", "UUID"),
    }
)
_DURATION: Final = ("datetime", "timedelta")


class UnwritableError(Exception):
    """A value has no JSON form; `path` says where it stands."""

    def __init__(self, reason: str, path: Path = ()) -> None:
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


def write(value: object) -> object:
    """Turn a value into JSON data.

    Raises:
        UnwritableError: something in it has no JSON form.
    """
    return write_with(write, value)


def write_with(inner: Write, value: object) -> object:
    """Turn a value into JSON data; `inner` writes what stands inside it."""
    cls: type = type(value)
    return _writer_of(cls)(value, inner)


@lru_cache(maxsize=1024)  # classes may be made anew while a process runs
def _writer_of(cls: type) -> Callable[..., object]:  # type: ignore[explicit-any]  # each takes values of its own kind
    """Return what writes the values of a class."""
    for kinds, writer in _WRITERS:
        if issubclass(cls, kinds):
            return writer
    if attrs.has(cls) or hasattr(cls, "__dataclass_fields__"):
        return _fields
    if is_model(cls):
        return written_model
    names = {(base.__module__, base.__qualname__) for base in cls.__mro__}
    if _DURATION in names:
        return _duration
    if names.isdisjoint(_DATES):
        return _refuse
    return _date


def _refuse(value: object, _: Write) -> NoReturn:
    raise NoFormError(
        f"is a {type(value).__module__}.{type(value).__qualname__}, which has no JSON form"
    )


def _plain(value: object, _: Write) -> object:
    return value


def _text(value: object, _: Write) -> str:
    return str(value)


def _string(value: str, _: Write) -> str:
    return str.__str__(value)  # a kind of `str` becomes the plain text


def _integer(value: int, _: Write) -> int:
    return int(value)


def _number(value: float, _: Write) -> float:
    if isfinite(value):
        return float(value)
    raise NotFiniteError(f"is {value}, and JSON's numbers are finite")


def _array(values: Iterable[object], inner: Write) -> list[object]:
    return [_part(item, index, inner) for index, item in enumerate(values)]


def _block(value: ContentBlock, inner: Write) -> dict[str, object]:
    return _object(block_to_dict(value), inner)


def _message(value: Message, inner: Write) -> dict[str, object]:
    return _object(value.to_dict(), inner)


def _member(value: Enum, inner: Write) -> object:
    return inner(value.value)


def _set(values: Iterable[object], inner: Write) -> list[object]:
    # A set's own order differs between runs.
    return [inner(item) for item in sorted(values, key=repr)]


def _object(
    values: Mapping[object, object] | Mapping[str, object], inner: Write
) -> dict[str, object]:
    return {_key(key): _part(item, str(key), inner) for key, item in values.items()}


def _key(key: object) -> str:
    if isinstance(key, Enum):
        return _key(key.value)
    if isinstance(key, str):
        return str.__str__(key)
    raise NoFormError(f"has the key {key!r:.40}, and JSON's keys are strings")


def _part(value: object, part: str | int, inner: Write) -> object:
    try:
        return inner(value)
    except UnwritableError as error:
        raise error.under(part) from None


def _fields(value: object, inner: Write) -> dict[str, object]:
    """Write the fields that a record is made of; `None` where it is the default is left out, extras lie flat."""
    data: dict[str, object] = {}
    extras: dict[str, object] = {}
    for name, key, _, default in raw_fields(type(value)):
        item: object = getattr(value, name)
        if default is NO_EXTRAS:
            extras = _object(cast("Mapping[object, object]", item), inner)
        elif item is not None or default is not None:
            data[key] = _part(item, key, inner)
    return {**extras, **data}  # what the record itself says wins


def _duration(value: timedelta, _: Write) -> str:
    from amplifier_sdk._reader.durations import (
        duration_text,  # few values are durations
    )

    return duration_text(value)


def _date(value: object, _: Write) -> str:
    return str(getattr(value, "isoformat", value.__str__)())


_WRITERS: Final[Sequence[tuple[type | tuple[type, ...], Callable[..., object]]]] = (  # type: ignore[explicit-any]
    # True is an int, bytes and text are sequences, and the members of some enums are
    # ints or texts: the order decides.
    ((bool, type(None)), _plain),
    ((Secret, PurePath, Decimal), _text),  # of a secret that is that it is withheld
    (int, _integer),
    (float, _number),
    (str, _string),
    ((bytes, bytearray, memoryview), _refuse),
    (Enum, _member),
    (Mapping, _object),
    (Sequence, _array),
    (AbstractSet, _set),
    (Message, _message),
    (get_args(ContentBlock), _block),
)
"""What writes the values of which classes; the first that fits is taken."""
