"""The one cattrs converter: strict when it reads, exact when it writes.

cattrs chooses the hooks, makes the readers of classes, and lets authors add hooks of their own. Single values,
arrays and unions are read by the readers that tools' arguments use, so that both have one strictness and one
wording.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Final, TypeAlias, Union, get_args, get_origin

import attrs
from cattrs import BaseValidationError, ClassValidationError, Converter, transform_error
from cattrs.gen import make_dict_structure_fn_from_attrs, override
from cattrs.types import SimpleStructureHook

from amplifier_sdk._annotations import UnsupportedAnnotationError, annotation_name, is_named_alias
from amplifier_sdk._constraints import read_constrained
from amplifier_sdk._readers import MisfitError, Reader, make_record, read_fixed_array, read_object, read_union
from amplifier_sdk._records import Field, fields_of, is_record
from amplifier_sdk._shapes import ARRAYS, OBJECTS, QUALIFIERS, ShapeBuilder, array_reader
from amplifier_sdk._wording import Path as Place
from amplifier_sdk._wording import any_of, unknown_key
from amplifier_sdk._writing import add_writers, refuse
from amplifier_sdk.content import NO_EXTRAS, ContentBlock, VendorBlock, block_from_dict
from amplifier_sdk.events import Event
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import Message

__all__ = ["shared_converter"]

StructureHook: TypeAlias = Callable[[object, object], object]
"""What cattrs calls with a value and the annotation it is read for."""

_BLOCKS: Final = frozenset(get_args(ContentBlock))


@cache
def shared_converter() -> Converter:
    """Return the process's converter; whoever adds hooks takes a copy."""
    converter = Converter(unstructure_fallback_factory=lambda _: refuse)
    _add_readers(converter)
    add_writers(converter)
    return converter


def _add_readers(converter: Converter) -> None:
    """Register what reads; what comes later is asked first."""
    converter.register_structure_hook_factory(lambda _: True, _single)
    converter.register_structure_hook_factory(_is_class_with_fields, _record)
    converter.register_structure_hook_factory(_is_array, _array)
    converter.register_structure_hook_factory(_is_object, _object)
    converter.register_structure_hook_factory(_is_union, _union)
    converter.register_structure_hook_factory(_is_wrapped, _wrapped)
    converter.register_structure_hook_factory(_BLOCKS.__contains__, _block)
    converter.register_structure_hook_func(_is_message, lambda value, _: _read_message(value))
    converter.register_structure_hook_func(_is_event, lambda value, _: _read_event(value))
    for cls in (str, bool, int, float, bytes, Path, Enum):  # cattrs knows these by class, and bends them
        converter.register_structure_hook(cls, lambda value, kind: _reader_of(kind)(value))
    converter.register_structure_hook(Event, lambda value, _: _read_event(value))


def _is_class_with_fields(annotation: object) -> bool:
    return isinstance(annotation, type) and is_record(annotation)


def _is_array(annotation: object) -> bool:
    return (get_origin(annotation) or annotation) in ARRAYS


def _is_object(annotation: object) -> bool:
    return (get_origin(annotation) or annotation) in OBJECTS


def _is_union(annotation: object) -> bool:
    return get_origin(annotation) in (Union, UnionType)


def _is_wrapped(annotation: object) -> bool:
    return _inner(annotation) is not None


def _is_message(annotation: object) -> bool:
    return annotation is Message


def _is_event(annotation: object) -> bool:
    return get_origin(annotation) is Event


def _hook(read: Reader) -> StructureHook:
    return lambda value, _: read(value)


def _single(annotation: object) -> StructureHook:
    return _hook(_reader_of(annotation))


@cache
def _reader_of(annotation: object) -> Reader:
    """Return the reader of a value that holds no other ones."""
    return ShapeBuilder().shape(annotation).read


def _late(converter: Converter, annotation: object) -> Reader:
    """Return a reader that asks for its hook when it reads first: a class may hold itself.

    The converter's cache is left out, since to it `str | Path` equals `Path | str`.
    """

    @cache
    def hook() -> StructureHook:
        return converter.get_structure_hook(annotation, cache_result=False)

    def read(value: object) -> object:
        try:
            return hook()(value, annotation)
        except (MisfitError, UnsupportedAnnotationError):
            raise
        except BaseValidationError as error:  # of a hook that an author made with cattrs
            raise MisfitError([((), "; ".join(transform_error(error)))]) from error
        except (TypeError, ValueError) as error:
            raise MisfitError([((), str(error))]) from error

    return read


def _inner(annotation: object) -> object | None:
    """Return what an annotation stands for that only names or marks another one."""
    origin = get_origin(annotation)
    inner: object = None
    if origin is Annotated or getattr(origin, "_name", None) in QUALIFIERS:
        inner = get_args(annotation)[0]
    elif is_named_alias(annotation):
        inner = getattr(annotation, "__value__", None)
    else:
        inner = getattr(annotation, "__supertype__", None)  # of a NewType
    return inner


def _wrapped(annotation: object, converter: Converter) -> StructureHook:
    read = _late(converter, _inner(annotation))
    if get_origin(annotation) is Annotated:
        read = read_constrained(read, get_args(annotation)[1:])
    return _hook(read)


def _array(annotation: object, converter: Converter) -> StructureHook:
    origin = get_origin(annotation)
    items = get_args(annotation)
    if origin is tuple and items[1:] != (Ellipsis,):
        return _hook(read_fixed_array([_late(converter, item) for item in items]))
    return _hook(array_reader(origin or annotation, _late(converter, items[0] if items else object)))


def _object(annotation: object, converter: Converter) -> StructureHook:
    key, value = get_args(annotation) or (str, object)
    return _hook(read_object(_late(converter, value), None if key is str else _late(converter, key)))


def _union(annotation: object, converter: Converter) -> StructureHook:
    members = get_args(annotation)
    blocks = tuple(member for member in members if member in _BLOCKS)
    readers = [(_block_reader(blocks), _expected_block(blocks))] if blocks else []
    readers += [(_late(converter, m), _expected(m)) for m in members if m not in _BLOCKS]
    return _hook(read_union(readers))


def _block(cls: type) -> StructureHook:
    return _hook(_block_reader((cls,)))


def _block_reader(classes: tuple[type, ...]) -> Reader:
    """Return the reader of content blocks, which are told apart by their `type`."""

    def read(value: object) -> object:
        block = value if isinstance(value, classes) else _read_by(block_from_dict, value)
        if isinstance(block, classes):
            return block
        raise MisfitError.of(_expected_block(classes), value)

    return read


def _read_message(value: object) -> object:
    return value if isinstance(value, Message) else _read_by(Message.from_dict, value)


def _read_by(read: Callable[[Mapping[str, JSONValue]], object], value: object) -> object:
    if not isinstance(value, Mapping):
        raise MisfitError.of("an object", value)
    try:
        return read(value)
    except ValueError as error:
        raise MisfitError([((), str(error))]) from error


def _read_event(value: object) -> object:
    if isinstance(value, str):
        return value if isinstance(value, Event) else Event(value)
    raise MisfitError.of("an event's name", value)


def _expected(annotation: object) -> str:
    """Name what an annotation takes, with an article."""
    if annotation in _BLOCKS:
        return _expected_block((annotation,))
    if _is_union(annotation):
        return any_of([_expected(member) for member in get_args(annotation)])
    if get_origin(annotation) is Annotated:
        return _expected(_inner(annotation))
    try:
        return ShapeBuilder().shape(annotation).expected
    except UnsupportedAnnotationError:  # an author's hook reads it
        return f"a value for {annotation_name(annotation)}"


def _expected_block(classes: Sequence[object]) -> str:
    if VendorBlock in classes:
        return "a content block"
    return f"a content block of type {any_of([str(getattr(cls, 'type', '')) for cls in classes])}"


def _record(cls: type, converter: Converter) -> StructureHook:
    """Make the hook of a class with fields; unknown keys are refused, or kept in its `extras`."""
    fields = fields_of(cls)
    extras = next((name for name, _, _, default in fields if default is NO_EXTRAS), None)
    known = tuple(name for name, *_ in fields if name != extras)
    read = _generated(cls, fields, converter)

    def structure(value: object, _: object) -> object:
        if not issubclass(cls, dict) and isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise MisfitError.of("an object", value)
        values: dict[str, object] = {str(key): item for key, item in value.items() if key in known}
        others = {str(key): item for key, item in value.items() if key not in known}
        unknown: list[tuple[Place, str]] = []
        if extras is None:
            unknown = [((key,), unknown_key(key, known)) for key in others]
        elif others:
            values[extras] = others
        try:
            record = read(values, cls)
        except ClassValidationError as error:
            problems, cause = _problems(cls, fields, error, values)
            raise MisfitError(problems + unknown) from cause
        if unknown:
            raise MisfitError(unknown)
        return record

    return structure


def _generated(
    cls: type, fields: Sequence[Field], converter: Converter
) -> SimpleStructureHook[Mapping[str, object], object]:
    """Let cattrs write the function that reads every field and then makes the record."""

    def make(**values: object) -> object:
        return make_record(cls, values)

    make.__name__, make.__qualname__ = cls.__name__, cls.__qualname__
    # A field may have any name, so it goes by its number: its name is the key only.
    attributes = {
        f"field_{number}": attrs.field(default=attrs.NOTHING if required else None, alias=name)
        for number, (name, _, required, _) in enumerate(fields)
    }
    hooks = {
        f"field_{number}": override(struct_hook=_hook(_late(converter, annotation)))
        for number, (_, annotation, *_) in enumerate(fields)
    }
    stand_in = attrs.make_class(cls.__name__, attributes, init=False, repr=False, eq=False)
    return make_dict_structure_fn_from_attrs(
        list(attrs.fields(stand_in)),
        make,  # type: ignore[arg-type]  # it is called with the fields, as a class is
        converter,
        _cattrs_forbid_extra_keys=False,
        _cattrs_use_alias=True,
        _cattrs_detailed_validation=True,
        **hooks,  # type: ignore[arg-type]  # their names are those of fields
    )


def _problems(
    cls: type, fields: Sequence[Field], error: ClassValidationError, values: Mapping[str, object]
) -> tuple[list[tuple[Place, str]], BaseException | None]:
    """Return what is wrong with a record's fields, or with the record as a whole, and what caused it."""
    problems: list[tuple[Place, str]] = []
    causes: list[BaseException | None] = []
    noted, whole = error.group_exceptions()
    for problem, note in noted:
        name, annotation, *_ = fields[int(note.name.removeprefix("field_"))]
        if name not in values:
            problems.append(((name,), f"missing; expected {_expected(annotation)}"))
            continue
        if isinstance(problem, UnsupportedAnnotationError):
            path = (cls.__name__, name, *problem.path[1:])
            raise UnsupportedAnnotationError(problem.annotation, path, problem.reason) from None
        if not isinstance(problem, MisfitError):
            raise problem
        problems += problem.under(name)
        causes.append(problem.__cause__)
    for problem in whole:
        if not isinstance(problem, MisfitError):
            raise problem
        problems += problem.problems
        causes.append(problem.__cause__)
    return problems, next(filter(None, causes), None)
