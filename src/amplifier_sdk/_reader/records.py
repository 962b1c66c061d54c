"""Records: the fields of attrs classes, dataclasses, TypedDicts and NamedTuples, in one form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, TypeAlias, get_args, get_origin

import attrs

from amplifier_sdk._reader.annotations import UnsupportedAnnotationError, resolve_class
from amplifier_sdk._reader.docstrings import Docstring, parse

__all__ = [
    "NO_DEFAULT",
    "Field",
    "RawField",
    "class_docstring",
    "fields_of",
    "is_record",
    "raw_fields",
]

Field: TypeAlias = "tuple[str, object, bool, object]"
"""A record's field: its key, its annotation, whether it is required, its default or `NO_DEFAULT`."""

RawField: TypeAlias = "tuple[str, str, object, object]"
"""A class's field: its name, its key, its annotation, its default or a mark that it has none."""

NO_DEFAULT: Final = object()
_REQUIRED: Final = object()
# attrs' types call Factory a function: its class is that of one which was made
_FACTORY: Final[object] = attrs.Factory(list)


def is_record(cls: type) -> bool:
    """Tell whether a class has fields that can be read."""
    return attrs.has(cls) or hasattr(cls, "__dataclass_fields__") or _is_typed_dict(cls)


def _is_typed_dict(cls: type) -> bool:
    # By its attributes, since `typing.is_typeddict` does not know those of typing_extensions.
    return issubclass(cls, dict) and hasattr(cls, "__required_keys__")


def class_docstring(cls: type) -> Docstring:
    """Return the parts of what the author wrote about the class."""
    doc = cls.__doc__
    # A dataclass without a docstring gets its signature for one.
    return parse(None if doc is None or doc.startswith(f"{cls.__name__}(") else doc)


def fields_of(cls: type) -> list[Field]:
    """Return the fields that are given when a record is made, in their order.

    Raises:
        UnsupportedAnnotationError: an annotation names something that does not exist at run time.
    """
    # these two first: to attrs and dataclasses they are a dict and a tuple
    if _is_typed_dict(cls):
        return _typed_dict_fields(cls)
    if issubclass(cls, tuple):
        return _named_tuple_fields(cls)
    fields = raw_fields(cls)
    types = _resolved(cls, [name for name, *_ in fields])
    return [
        (
            key,
            types.get(name, annotation),
            default is _REQUIRED,
            NO_DEFAULT if default is _REQUIRED else default,
        )
        for name, key, annotation, default in fields
    ]


def _resolved(cls: type, names: Sequence[str]) -> dict[str, object]:
    try:
        return resolve_class(cls, names)
    except NameError as error:
        raise UnsupportedAnnotationError(
            cls, reason=f"has annotations that cannot be resolved: {error}"
        ) from error


def raw_fields(cls: type) -> list[RawField]:
    """Return the same of an attrs class or a dataclass, without a look at any annotation."""
    if attrs.has(cls):
        return [
            (field.name, str(field.alias), field.type, _attrs_default(field.default))
            for field in attrs.fields(cls)
            if field.init
        ]
    from dataclasses import MISSING, fields  # whoever has a dataclass has it imported

    found: list[RawField] = []
    for field in fields(cls):
        default: object = field.default
        if default is MISSING:
            default = _REQUIRED if field.default_factory is MISSING else NO_DEFAULT
        if field.init:
            found.append((field.name, field.name, field.type, default))
    return found


def _attrs_default(default: object) -> object:
    if default is attrs.NOTHING:
        return _REQUIRED
    if type(default) is type(_FACTORY):
        return NO_DEFAULT
    return default


def _named_tuple_fields(cls: type) -> list[Field]:
    names: tuple[str, ...] = getattr(cls, "_fields", ())
    defaults: dict[str, object] = getattr(cls, "_field_defaults", {})
    types = _resolved(cls, names)
    return [
        (
            name,
            types.get(name, object),
            name not in defaults,
            defaults.get(name, NO_DEFAULT),
        )
        for name in names
    ]


def _typed_dict_fields(cls: type) -> list[Field]:
    # With annotations as text, `__required_keys__` overlooks the qualifiers: they are read from the types.
    keys: frozenset[str] = getattr(cls, "__required_keys__", frozenset())
    types = _resolved(cls, list(cls.__annotations__))
    return [
        (name, kind, _is_required(kind, name in keys), NO_DEFAULT)
        for name, kind in types.items()
    ]


def _is_required(annotation: object, default: bool) -> bool:
    origin = get_origin(annotation)
    name = getattr(origin, "_name", None)
    if name == "NotRequired":
        return False
    if name == "Required":
        return True
    if origin is Annotated or name == "ReadOnly":
        return _is_required(get_args(annotation)[0], default)
    return default
