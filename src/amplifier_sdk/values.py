"""The base of frozen values that a process defines before its first turn.

attrs writes and compiles `__eq__`, `__hash__` and `__repr__` for every class while it is imported: two thirds of
what defining a small value costs. A value with this base is declared with `eq=False, repr=False` and has
the three from here, the same to whoever uses it, worked out when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Final, TypeAlias

import attrs

from amplifier_sdk.jsontypes import JSONValue

__all__ = ["NO_EXTRAS", "Value"]

NO_EXTRAS: Final[Mapping[str, JSONValue]] = MappingProxyType({})
"""The extras of a value that has none. A field with this default takes the keys that its class does not know."""

_Getter: TypeAlias = Callable[[object], object]


class Value:
    """A frozen value: equal to another of its class with equal fields, hashed by them, shown with them.

    Fields that `attrs.field` takes out of the comparison, the hash or the text are left out as usual.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Compare the fields with those of another value of the same class."""
        if other.__class__ is not self.__class__:
            return NotImplemented
        compared = _getters(self.__class__).compared
        return bool(compared(self) == compared(other))

    def __hash__(self) -> int:
        """Hash the fields.

        Raises:
            TypeError: a field's value has no hash.
        """
        return hash((self.__class__, _getters(self.__class__).hashed(self)))

    def __repr__(self) -> str:
        """Write the value as the call that makes it."""
        cls = self.__class__
        fields = ", ".join(
            f"{name}={write(getattr(self, name))}"
            for name, write in _getters(cls).shown
        )
        # as attrs writes it, without the function in which a class was defined
        return f"{cls.__qualname__.rpartition('>.')[2]}({fields})"


class _Getters:
    """What is read of the values of one class to compare, hash and show them."""

    def __init__(self, cls: type[attrs.AttrsInstance]) -> None:
        fields = attrs.fields(cls)
        self.compared = _getter(field.name for field in fields if field.eq)
        self.hashed = _getter(
            field.name
            for field in fields
            if (field.eq if field.hash is None else field.hash)
        )
        self.shown = [
            (field.name, field.repr if callable(field.repr) else repr)
            for field in fields
            if field.repr
        ]


# for each class once, when the first of its values is compared or shown
_GETTERS: Final[dict[type, _Getters]] = {}


def _getters(cls: type) -> _Getters:
    getters = _GETTERS.get(cls)
    if getters is None:
        getters = _GETTERS[cls] = _Getters(cls)
    return getters


def _getter(names: Iterable[str]) -> _Getter:
    """Return what reads the named attributes of a value; none are read as `()`."""
    known = tuple(names)
    if known:
        return attrgetter(*known)
    return lambda _: ()
