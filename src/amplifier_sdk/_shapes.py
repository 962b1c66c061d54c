"""Shapes: for an annotation, the JSON Schema of its values and the reader that turns them into Python values.

One table of annotations serves tool signatures and module configurations, so that both accept the same types
with the same strictness.
"""

from __future__ import annotations

import types
import typing
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Mapping,
    MutableMapping,
    MutableSequence,
    MutableSet,
    Sequence,
)
from collections.abc import (
    Set as AbstractSet,
)
from contextlib import suppress
from enum import Enum, Flag
from functools import partial
from os import PathLike
from typing import Annotated, Final, Literal, NamedTuple, NoReturn, Protocol, Union, get_args, get_origin

from amplifier_sdk._annotations import UnsupportedAnnotationError, annotation_name, is_named_alias
from amplifier_sdk._constraints import DECIMAL_FORMS, constrained
from amplifier_sdk._problems import any_of
from amplifier_sdk._readers import (
    FieldReader,
    MisfitError,
    Reader,
    anything,
    read_array,
    read_boolean,
    read_choice,
    read_constructed,
    read_decimal,
    read_integer,
    read_null,
    read_number,
    read_object,
    read_places,
    read_record,
    read_secret,
    read_string,
    read_tagged,
    read_union,
)
from amplifier_sdk._records import NO_DEFAULT, class_docstring, fields_of, is_record
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.values import NO_EXTRAS

__all__ = ["Shape", "ShapeBuilder", "described", "tag_of"]


class Shape(NamedTuple):
    """How values of one annotation look in JSON and how they are read.

    `plain` values need no reading once their schema accepted them; `expected` names them with an article.
    """

    schema: JSONObject
    read: Reader
    expected: str
    plain: bool = False


class Field:
    """A field of a record, as its reader wants it."""

    def __init__(self, shape: Shape, required: bool) -> None:
        self.required = required
        self.read = shape.read
        self._expected = shape.expected

    def refuse_missing(self, _: object, /) -> NoReturn:
        """Say that the field is missing, and what is expected."""
        raise MisfitError.missing(self._expected)


_ANYTHING: Final = Shape({}, anything, "any JSON value", plain=True)
_SIMPLE: Final[Mapping[object, tuple[str, Reader, str, bool]]] = {
    str: ("string", read_string, "a string", True),
    bool: ("boolean", read_boolean, "a boolean", True),
    int: ("integer", read_integer, "an integer", False),
    float: ("number", read_number, "a number", False),
    type(None): ("null", read_null, "null", True),
    None: ("null", read_null, "null", True),
}
# Compared by name: importing these modules only to compare would cost every process some milliseconds.
_FORMATS: Final[Mapping[tuple[str, str], tuple[str, str]]] = {
    ("datetime", "datetime"): ("date-time", "a date and time such as 2030-01-31T09:30:00Z"),
    ("datetime", "date"): ("date", "a date such as 2030-01-31"),
    ("datetime", "time"): ("time", "a time such as 09:30:00"),
    ("uuid", "UUID"): ("uuid", "a UUID"),
}
_DURATION: Final = ("datetime", "timedelta")
_DECIMAL: Final = ("decimal", "Decimal")
_CONTENT: Final = "amplifier_sdk.content"
_MESSAGE: Final = ("amplifier_sdk.messages", "Message")
_EVENT: Final = ("amplifier_sdk.events", "Event")
_SECRET: Final = ("amplifier_sdk.secret", "Secret")
_SETS: Final = frozenset({set, frozenset, MutableSet, AbstractSet})
_ARRAYS: Final = frozenset({list, Sequence, MutableSequence, Collection, Iterable, tuple, *_SETS})
_OBJECTS: Final = frozenset({dict, Mapping, MutableMapping})
# They mark a key of a TypedDict, and say nothing about its values.
_QUALIFIERS: Final = frozenset({"Required", "NotRequired", "ReadOnly"})


class ShapeBuilder:
    """Builds the shapes of one signature or configuration; `definitions` collects the recursive ones."""

    def __init__(self) -> None:
        self.definitions: JSONObject = {}
        self._done: dict[object, Shape] = {}
        self._open: dict[object, str] = {}
        self._recursive: set[object] = set()
        self._readers: dict[object, Reader] = {}

    def shape(self, annotation: object) -> Shape:
        """Return the shape of an annotation.

        Raises:
            UnsupportedAnnotationError: it has no JSON form.
        """
        if annotation is object or annotation is typing.Any:
            return _ANYTHING
        simple = _SIMPLE.get(annotation) if annotation is None or isinstance(annotation, type) else None
        if simple is not None:
            name, read, expected, plain = simple
            return Shape({"type": name}, read, expected, plain)
        origin = get_origin(annotation)
        if origin is not None:
            return self._generic(annotation, origin)
        if isinstance(annotation, type):
            return self._class(annotation)
        supertype: object = getattr(annotation, "__supertype__", None)
        if supertype is not None:
            return self.part(supertype)
        if is_named_alias(annotation):
            value: object = getattr(annotation, "__value__", None)
            return self._named(annotation, annotation_name(annotation), partial(self.part, value))
        raise UnsupportedAnnotationError(annotation)

    def _generic(self, annotation: object, origin: object) -> Shape:
        arguments = get_args(annotation)
        if origin is Annotated:
            return self.constrained(self.part(arguments[0]), arguments[1:])
        if origin is Union or origin is types.UnionType:
            return self.union(arguments)
        if origin is Literal:
            return _choices(annotation, [(value, value) for value in arguments])
        if origin is tuple:
            return self._tuple(arguments)
        if origin in _ARRAYS:
            return self._array(origin, arguments[0])
        if origin in _OBJECTS:
            return self._object(annotation, *arguments)
        if _name_of(origin) == _EVENT:
            return Shape({"type": "string"}, partial(_read_event, origin), "an event's name")
        if getattr(origin, "__name__", getattr(origin, "_name", None)) in _QUALIFIERS:
            return self.part(arguments[0])
        raise UnsupportedAnnotationError(annotation)

    def part(self, annotation: object) -> Shape:
        """Return the shape of an annotation that is a part of another one."""
        return self.shape(annotation)

    def constrained(self, shape: Shape, metadata: Sequence[object]) -> Shape:
        """Return a shape with what stands beside its type in `Annotated`."""
        return shape._replace(schema=constrained(shape.schema, metadata))

    def _class(self, cls: type) -> Shape:
        if _name_of(cls) == _MESSAGE:
            return _given_by_itself(cls)
        if _is_block(cls):
            return self._blocks([cls])
        text = self._text_class(cls)
        if text is not None:
            return text
        if issubclass(cls, Enum) and not issubclass(cls, Flag):
            return _choices(cls, [(member.value, member) for member in cls])
        if issubclass(cls, tuple) and hasattr(cls, "_field_defaults"):
            return self._named_tuple(cls)
        if cls in _ARRAYS:
            return self._array(cls, object)
        if cls in _OBJECTS:
            return self._object(cls, str, object)
        if is_record(cls):
            return self._named(cls, cls.__name__, partial(self.record, cls))
        raise UnsupportedAnnotationError(cls)

    def _text_class(self, cls: type) -> Shape | None:
        """Return the shape of a class whose values are written as text; `None` for any other."""
        name = _name_of(cls)
        if name == _EVENT:
            return Shape({"type": "string"}, partial(_read_event, cls), "an event's name")
        named = _FORMATS.get(name)
        if named is not None:
            return _formatted(cls, *named)
        if name == _DURATION:
            return _duration(cls)
        if name == _SECRET:
            form: JSONObject = {"type": "string", "format": "password", "writeOnly": True}
            return Shape(form, read_secret(cls, cls), "a string")
        if name == _DECIMAL:
            return Shape({"anyOf": DECIMAL_FORMS}, read_decimal(cls, cls), "a decimal number")
        return _path(cls) if _is_path(cls) else None

    def union(self, members: Sequence[object]) -> Shape:
        blocks = [member for member in members if isinstance(member, type) and _is_block(member)]
        shapes = [self._blocks(blocks)] if blocks else []
        shapes += [self.part(member) for member in members if member not in blocks]
        if any(not shape.schema for shape in shapes):
            return _ANYTHING
        schemas: list[JSONValue] = []
        for shape in shapes:
            nested = shape.schema.get("anyOf")
            schemas += nested if isinstance(nested, list) and len(shape.schema) == 1 else [shape.schema]
        return Shape(
            {"anyOf": schemas},
            read_union([(shape.read, shape.expected) for shape in shapes]),
            any_of([shape.expected for shape in shapes]),
            plain=all(shape.plain for shape in shapes),
        )

    def _array(self, origin: object, item: object) -> Shape:
        shape = self.part(item)
        schema: JSONObject = {"type": "array"}
        if shape.schema:
            schema["items"] = shape.schema
        if origin in _SETS:
            schema["uniqueItems"] = True
        plain = shape.plain and origin is not tuple and origin not in _SETS
        return Shape(schema, _array_reader(origin, shape.read), "an array", plain)

    def _tuple(self, members: tuple[object, ...]) -> Shape:
        if len(members) == 2 and members[1] is Ellipsis:
            return self._array(tuple, members[0])
        shapes = [self.part(member) for member in members]
        items: list[JSONValue] = [shape.schema for shape in shapes]
        schema: JSONObject = {"type": "array", "minItems": len(shapes), "maxItems": len(shapes)}
        if items:
            schema["prefixItems"] = items
        return Shape(schema, read_places([shape.read for shape in shapes], tuple, len(shapes)), "an array")

    def _named_tuple(self, cls: type) -> Shape:
        """Build the shape of a NamedTuple: an array, as JSON writes it; the items of fields with defaults may lack."""
        items: list[JSONValue] = []
        readers: list[Reader] = []
        required = 0
        for name, annotation, is_required, default in fields_of(cls):
            shape = self._field(cls, name, annotation)
            items.append({"title": name, **described(shape.schema, None, default)})
            readers.append(shape.read)
            required += is_required
        schema: JSONObject = {"type": "array", "minItems": required, "maxItems": len(items)}
        if items:
            schema["prefixItems"] = items
        return Shape(schema, read_places(readers, partial(_make_tuple, cls), required), "an array")

    def _object(self, annotation: object, key: object = str, value: object = object) -> Shape:
        schema: JSONObject = {"type": "object"}
        keys = self.keys(annotation, key)
        names = keys.schema.get("enum")
        if names is not None:
            schema["propertyNames"] = {"enum": names}
        values = self.part(value)
        if values.schema:
            schema["additionalProperties"] = values.schema
        plain = keys.plain and values.plain
        return Shape(schema, read_object(values.read, keys.read), "an object", plain)

    def keys(self, annotation: object, key: object) -> Shape:
        """Return the shape of an object's keys.

        Raises:
            UnsupportedAnnotationError: a schema cannot say which keys there may be.
        """
        keys = self.part(key)
        is_text = keys.schema.get("type") == "string" and "format" not in keys.schema
        if not is_text:
            raise UnsupportedAnnotationError(annotation, reason="has keys that JSON cannot write; keys must be str")
        return keys

    def _named(self, key: object, name: str, build: Callable[[], Shape]) -> Shape:
        """Build the shape of something that has a name and may hold itself."""
        if key in self._done:
            return self._done[key]
        if key in self._open:
            self._recursive.add(key)
            # The reader is not made yet: it is looked up when a value is read.
            read = partial(_read_later, self._readers, key)
            return Shape({"$ref": f"#/$defs/{self._open[key]}"}, read, "an object")
        taken = {*self._open.values(), *self.definitions}
        self._open[key] = next(n for n in (name, *(f"{name}_{i}" for i in range(2, len(taken) + 3))) if n not in taken)
        shape = build()
        label = self._open.pop(key)
        self._readers[key] = shape.read
        if key in self._recursive:
            self.definitions[label] = shape.schema
            shape = Shape({"$ref": f"#/$defs/{label}"}, shape.read, shape.expected)
        self._done[key] = shape
        return shape

    def _blocks(self, classes: Sequence[type]) -> Shape:
        """Build the shape of content blocks, which differ by their `type`."""
        shapes: dict[str | None, Shape] = {}
        schemas: list[JSONValue] = []
        for cls in classes:
            tag = tag_of(cls)
            if tag is not None:
                shapes[tag] = self.record(cls)
                schemas.append(_tagged(shapes[tag].schema, tag))
            else:
                shapes[None] = _given_by_itself(cls)
                schemas.append(shapes[None].schema)
        expected = f"a content block of type {any_of([tag or '' for tag in shapes])}"
        if None in shapes:  # it takes every other type
            expected = "a content block"
        readers = {tag: shape.read for tag, shape in shapes.items()}
        return Shape({"anyOf": schemas}, read_tagged(readers, tuple(classes), expected), expected)

    def record(self, cls: type) -> Shape:
        texts = class_docstring(cls)
        properties: JSONObject = {}
        readers: dict[str, FieldReader] = {}
        required: list[JSONValue] = []
        extras: str | None = None
        for name, annotation, is_required, default in fields_of(cls):
            if default is NO_EXTRAS:
                extras = name
                continue
            shape = self._field(cls, name, annotation)
            properties[name] = described(shape.schema, texts.arguments.get(name), default)
            readers[name] = Field(shape, is_required)
            if is_required:
                required.append(name)
        schema: JSONObject = {"type": "object", "properties": properties}
        if texts.summary:
            schema["description"] = texts.summary
        if required:
            schema["required"] = required
        schema["additionalProperties"] = extras is not None
        return Shape(schema, read_record(readers, cls, extras=extras, tag=tag_of(cls)), "an object")

    def _field(self, cls: type, name: str, annotation: object) -> Shape:
        try:
            return self.shape(annotation)
        except UnsupportedAnnotationError as error:
            path = (cls.__name__, name, *error.path[1:])
            raise UnsupportedAnnotationError(error.annotation, path, error.reason) from None


def _make_tuple(cls: Callable[..., object], items: list[object]) -> object:  # type: ignore[explicit-any]  # of any fields
    return cls(*items)


def _array_reader(origin: object, item: Reader) -> Reader:
    """Return the reader of an array; only a set is also read from a set."""
    if origin in _SETS:
        return read_array(item, frozenset if origin is frozenset else set, (list, tuple, set, frozenset))
    return read_array(item, tuple if origin is tuple else None, (list, tuple))


def _name_of(cls: object) -> tuple[str, str]:
    return getattr(cls, "__module__", ""), getattr(cls, "__qualname__", "")


def _is_block(cls: type) -> bool:
    return cls.__module__ == _CONTENT and is_record(cls)


def tag_of(cls: type) -> str | None:
    """Return what stands under `type` in the objects of a class that differs from others by it."""
    tag: object = getattr(cls, "type", None)
    return tag if isinstance(tag, str) and _is_block(cls) else None


def _tagged(schema: JSONObject, tag: str) -> JSONObject:
    """Return the schema of a record that its `type` names."""
    properties, required = schema.get("properties"), schema.get("required")
    return schema | {
        "properties": {"type": {"const": tag}, **(properties if isinstance(properties, Mapping) else {})},
        "required": ["type", *(required if isinstance(required, list) else [])],
    }


class _ReadsItself(Protocol):
    """A class of ours that reads objects of more than one form."""

    @classmethod
    def from_dict(cls, data: Mapping[str, JSONValue]) -> object:
        """Read an object."""


def _given_by_itself(cls: type[_ReadsItself]) -> Shape:
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


def _read_event(cls: object, value: object) -> object:
    if isinstance(value, str) and isinstance(cls, type):
        return value if isinstance(value, cls) else cls(value)
    raise MisfitError.of("an event's name", value)


def _read_later(readers: Mapping[object, Reader], key: object, value: object) -> object:
    return readers[key](value)


def described(schema: JSONObject, text: str | None, default: object) -> JSONObject:
    """Return a schema with a description, unless it has one, and with the default that JSON can write."""
    extra: JSONObject = {}
    if text and "description" not in schema:
        extra["description"] = text
    if default is not NO_DEFAULT:
        with suppress(ValueError):
            extra["default"] = _json_default(default)
    return schema | extra if extra else schema


def _json_default(value: object) -> JSONValue:
    """Write a default as JSON.

    Raises:
        ValueError: JSON cannot write it.
    """
    if isinstance(value, Enum):
        return _json_default(value.value)
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float) and value - value == 0:
        return value
    if isinstance(value, (list, tuple)):
        return [_json_default(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _json_default(item) for key, item in value.items()}
    if _is_path(type(value)):
        return str(value)
    raise ValueError(f"JSON cannot write {value!r:.80}")


def _formatted(cls: type, name: str, expected: str) -> Shape:
    build: Callable[[str], object] = getattr(cls, "fromisoformat", cls)
    return Shape({"type": "string", "format": name}, read_constructed(build, cls, expected), expected)


def _is_path(cls: type) -> bool:
    """Tell whether a class is one of pathlib's, without importing pathlib for those who never do."""
    if not issubclass(cls, PathLike):
        return False
    from pathlib import PurePath  # whoever has such a class has most likely imported it

    return issubclass(cls, PurePath)


def _path(cls: type) -> Shape:
    from pathlib import Path, PurePath  # whoever has such a class has it imported

    build = Path if cls is PurePath else cls
    return Shape({"type": "string", "format": "path"}, read_constructed(build, cls, "a path"), "a path")


def _duration(cls: type) -> Shape:
    from amplifier_sdk._durations import read_duration  # few tools take durations

    expected = "a duration such as PT1H30M"
    return Shape({"type": "string", "format": "duration"}, read_constructed(read_duration, cls, expected), expected)


def _choices(annotation: object, choices: Sequence[tuple[object, object]]) -> Shape:
    """Return the shape of an Enum's or a Literal's values."""
    pairs = [(value.value if isinstance(value, Enum) else value, result) for value, result in choices]
    values = [value for value, _ in pairs if value is None or isinstance(value, (str, int, float))]
    if not values or len(values) != len(pairs):
        raise UnsupportedAnnotationError(annotation, reason="has values that are not text, numbers, booleans or null")
    schema: JSONObject = {"enum": [_scalar(value) for value in values]}
    kinds = {_SIMPLE[type(value)][0] for value in values if type(value) in _SIMPLE}
    if len(kinds) == 1:
        schema["type"] = kinds.pop()
    expected = any_of([repr(_scalar(value)) if value is not None else "null" for value in values])
    # The number 1.0 is the integer 1 in JSON, so numbers are looked up even when they stand for themselves.
    plain = all(result is value and isinstance(value, (str, bool, type(None))) for value, result in pairs)
    return Shape(schema, read_choice(pairs, expected), expected, plain)


def _scalar(value: str | float | None) -> JSONValue:
    """Return the value as JSON's own type: members of a `StrEnum` are more than text."""
    return str.__str__(value) if isinstance(value, str) else value
