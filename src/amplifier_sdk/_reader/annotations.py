"""Annotations as types: text is evaluated with the names of the module it was written in."""

from __future__ import annotations

import builtins
import inspect
import sys
import typing
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from amplifier_sdk import jsontypes

__all__ = [
    "UnsupportedAnnotationError",
    "annotation_name",
    "is_named_alias",
    "resolve",
    "resolve_class",
]

_SUPPORTED: Final = (
    "str, int, float, bool, None, Path, datetime, date, time, timedelta, Decimal, UUID, Enum, Literal, unions, list, "
    "tuple, NamedTuple, set, frozenset, dict with string keys, TypedDict, attrs classes, dataclasses, Secret and "
    "JSONValue"
)

# They mean this even where a module imports them for type checkers only.
_KNOWN_NAMES: Final[Mapping[str, object]] = {
    "JSONValue": jsontypes.JSONValue,
    "JSONObject": jsontypes.JSONObject,
    "Mapping": Mapping,
    "Sequence": Sequence,
}


def resolve(
    annotations: Mapping[str, object], names: dict[str, object], **own: object
) -> dict[str, object]:
    """Turn annotations into types.

    Args:
        annotations: what stands behind each name: types, or text.
        names: the module's names, in which text is evaluated.
        **own: names that hold where the module has none, for example a class's own.

    Raises:
        NameError: text uses a name that the module does not have at run time.
    """
    local = _Names(names, own)
    # Most are a class or its name. `get_type_hints`, which compiles and evaluates
    # text, is for the others.
    types = {name: _known(value, local) for name, value in annotations.items()}
    others = {name: value for name, value in annotations.items() if types[name] is None}
    if others:
        return types | typing.get_type_hints(
            _Holder(others), names, local, include_extras=True
        )
    return types


def resolve_class(cls: type, wanted: Collection[str]) -> dict[str, object]:
    """Turn the annotations of a class and its bases into types, for the wanted names only.

    Raises:
        NameError: text uses a name that the class's module does not have at run time.
    """
    types: dict[str, object] = {}
    for base in reversed(cls.__mro__):
        annotations = {
            name: value
            for name, value in inspect.get_annotations(base).items()
            if name in wanted
        }
        if annotations:
            # a class that a program made may name a module that was never imported
            module = sys.modules.get(base.__module__)
            types |= resolve(
                annotations,
                vars(module) if module else {},
                # a class in a function is not among the names of its module
                **{cls.__name__: cls, base.__name__: base},
            )
    return types


def _known(annotation: object, names: _Names) -> object:
    """Return the class that an annotation plainly is or names; `None` for all that must be evaluated."""
    if isinstance(annotation, str) and annotation.isidentifier():
        annotation = names.find(annotation)
    if isinstance(annotation, type):
        return annotation
    return None


class _Holder:
    """An object with annotations, as `typing.get_type_hints` wants one."""

    def __init__(self, annotations: Mapping[str, object]) -> None:
        self.__annotations__ = dict(annotations)


class _Names(dict[str, object]):
    """A module's names, then those that hold where the module has none."""

    def __init__(self, names: Mapping[str, object], own: Mapping[str, object]) -> None:
        super().__init__()
        self._names = names
        self._own = own

    def find(self, name: str) -> object:
        """Return what a name stands for, a builtin at last; `None` when nothing has that name."""
        try:
            return self[name]
        except KeyError:
            return getattr(builtins, name, None)

    def __missing__(self, name: str) -> object:
        for source in (self._names, self._own, _KNOWN_NAMES):
            if name in source:
                return source[name]
        raise KeyError(name)


class UnsupportedAnnotationError(TypeError):
    """An annotation has no JSON form; `path` names the class fields that lead to it."""

    def __init__(
        self, annotation: object, path: tuple[str, ...] = (), reason: str = ""
    ) -> None:
        self.annotation = annotation
        self.path = path
        self.reason = reason
        where = ""
        if path:
            where = f" (at {'.'.join(path)})"
        super().__init__(
            f"{annotation_name(annotation)}{where} {reason or 'has no JSON form; use ' + _SUPPORTED}"
        )

    def in_field(self, cls: type, name: str) -> UnsupportedAnnotationError:
        """Return the error as seen from the class whose field leads to the annotation."""
        path = (cls.__name__, name, *self.path[1:])
        return UnsupportedAnnotationError(self.annotation, path, self.reason)


def annotation_name(annotation: object) -> str:
    """Return an annotation as its author would write it."""
    if isinstance(annotation, type):
        return annotation.__qualname__
    if is_named_alias(annotation):
        return str(getattr(annotation, "__name__", ""))
    return repr(annotation)


def is_named_alias(annotation: object) -> bool:
    """Tell whether an annotation is an alias with a name of its own."""
    # By name: `type X = …` makes one from Python 3.12 on, and typing_extensions makes its own.
    return type(annotation).__name__ == "TypeAliasType" and hasattr(
        annotation, "__value__"
    )
