"""Readers of flat configurations: those that give single values and arrays of them.

They are made of the same readers as the converter's, without cattrs: importing that costs a process more than its
first turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from types import UnionType
from typing import Final, Literal, Union, get_args, get_origin

from amplifier_sdk._readers import FieldReader, Reader, anything, read_record
from amplifier_sdk._records import fields_of
from amplifier_sdk._shapes import ARRAYS, ShapeBuilder

__all__ = ["flat_reader"]

_SINGLE: Final = frozenset({str, bool, int, float, type(None)})
_UNREAD: Final = FieldReader(anything, "anything", required=False)


def flat_reader(cls: type, given: Iterable[str]) -> Reader | None:
    """Return the reader of a class with fields; `None` where the converter must read what is given.

    Args:
        cls: an attrs class or a dataclass.
        given: the keys that the reader will find.
    """
    return _reader(cls, frozenset(given))


@lru_cache(maxsize=128)  # each session reads the same ones, and to make one takes twenty times as long as to read
def _reader(cls: type, given: frozenset[str]) -> Reader | None:
    builder = ShapeBuilder()
    readers: dict[str, FieldReader] = {}
    for name, annotation, is_required, _ in fields_of(cls):
        if name not in given and not is_required:
            readers[name] = _UNREAD
            continue
        if annotation is not object and not _is_flat(annotation):
            return None
        shape = builder.shape(annotation)
        readers[name] = FieldReader(shape.read, shape.expected, is_required)
    return read_record(readers, cls)


def _is_flat(annotation: object) -> bool:
    """Tell whether an annotation stands for single values, or for arrays and choices of them."""
    if isinstance(annotation, type):
        return annotation in _SINGLE
    origin = get_origin(annotation)
    if origin is Literal:
        return True
    is_made_of_others = origin in ARRAYS or origin is Union or origin is UnionType
    return is_made_of_others and all(part is Ellipsis or _is_flat(part) for part in get_args(annotation))
