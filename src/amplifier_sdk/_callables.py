"""The one place that names a callable of any signature, and remembers what plain ones are given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

__all__ = ["AnyCallable", "attributes_of", "parameters_of"]

AnyCallable: TypeAlias = Callable[..., object]  # type: ignore[explicit-any]  # what authors write has any signature

_KNOWN: Final[WeakKeyDictionary[FunctionType, tuple[inspect.Parameter, ...]]] = (
    WeakKeyDictionary()
)


def parameters_of(function: AnyCallable) -> tuple[inspect.Parameter, ...]:
    """Return the parameters of a callable without the instance that a method is bound to.

    Raises:
        TypeError: it has no signature, as some built-ins do.
        ValueError: likewise.
    """
    plain = function
    if isinstance(function, MethodType):
        plain = function.__func__
    # other callables may have no weak references, or signatures that change
    if not isinstance(plain, FunctionType):
        return tuple(inspect.signature(function).parameters.values())
    known = _KNOWN.get(plain)
    # to read them takes longer than all else that is asked of a module that is mounted
    if known is None:
        known = _KNOWN[plain] = tuple(inspect.signature(plain).parameters.values())
    if plain is function or (
        known and known[0].kind is inspect.Parameter.VAR_POSITIONAL
    ):
        return known
    return known[1:]


def attributes_of(instance: object) -> Iterator[tuple[str, object]]:
    """Yield the names and values that an instance's classes define: the bases' first, in the order of each class.

    One that is overridden keeps its place. The class is asked, since a property of the instance would run.
    """
    cls = type(instance)
    for name in dict.fromkeys(
        name for base in reversed(cls.__mro__) for name in vars(base)
    ):
        yield name, getattr(cls, name, None)
