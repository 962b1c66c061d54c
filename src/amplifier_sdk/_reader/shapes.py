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
from typing import Annotated, Final, Literal, Union, get_args, get_origin

from amplifier_sdk._reader.annotations import (
    UnsupportedAnnotationError,
    annotation_name,
    is_named_alias,
)
from amplifier_sdk._reader.constraints import constrained
from amplifier_sdk._reader.models import is_model, model_shape
from amplifier_sdk._reader.problems import any_of
from amplifier_sdk._reader.readers import (
    Reader,
    Tags,
    read_array,
    read_object,
    read_places,
    read_union,
)
from amplifier_sdk._reader.record_readers import FieldReader, read_record, read_tagged
from amplifier_sdk._reader.records import (
    NO_DEFAULT,
    class_docstring,
    fields_of,
    is_record,
)
from amplifier_sdk._reader.scalars import (
    ANYTHING,
    Shape,
    choices,
    is_path,
    name_of,
    plain_shape,
    shape_by_itself,
    text_shape,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.values import NO_EXTRAS

__all__ = ["ShapeBuilder", "described", "tag_of"]


_CONTENT: Final = "amplifier_sdk.content"
_MESSAGE: Final = ("amplifier_sdk.messages", "Message")
_SETS: Final = frozenset({set, frozenset, MutableSet, AbstractSet})
_ARRAYS: Final = frozenset(
    {list, Sequence, MutableSequence, Collection, Iterable, tuple, *_SETS}
)
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
            return ANYTHING
        # the most frequent ones first; the order of the others below decides nothing
        plain = plain_shape(annotation)
        if plain is not None:
            return plain
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
            return self._named(
                annotation, annotation_name(annotation), partial(self.part, value)
            )
        raise UnsupportedAnnotationError(annotation)

    def _generic(self, annotation: object, origin: object) -> Shape:
        arguments = get_args(annotation)
        if origin is Annotated:
            return self.constrained(self.part(arguments[0]), arguments[1:])
        if origin is Union or origin is types.UnionType:
            return self.union(arguments)
        if origin is Literal:
            return choices(annotation, [(value, value) for value in arguments])
        if origin is tuple:
            return self._tuple(arguments)
        if origin in _ARRAYS:
            return self._array(origin, arguments[0])
        if origin in _OBJECTS:
            return self._object(annotation, *arguments)
        text = None
        if isinstance(origin, type):
            text = text_shape(origin)
        if text is not None:
            return text
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
        # by name, since few tools take messages and the module need not be imported
        if name_of(cls) == _MESSAGE:
            return shape_by_itself(cls)
        if _is_block(cls):
            return self._blocks([cls])
        text = text_shape(cls)
        if text is not None:
            return text
        if issubclass(cls, Enum) and not issubclass(cls, Flag):
            return choices(cls, [(member.value, member) for member in cls])
        if issubclass(cls, tuple) and hasattr(cls, "_field_defaults"):
            return self._named_tuple(cls)
        if cls in _ARRAYS:
            return self._array(cls, object)
        if cls in _OBJECTS:
            return self._object(cls, str, object)
        if is_record(cls):
            return self._named(cls, cls.__name__, partial(self.record, cls))
        if is_model(cls):
            return model_shape(cls, self.definitions)
        raise UnsupportedAnnotationError(cls)

    def union(self, members: Sequence[object]) -> Shape:
        blocks = [
            member
            for member in members
            if isinstance(member, type) and _is_block(member)
        ]
        others = [member for member in members if member not in blocks]
        parts = [self.part(member) for member in others]
        tags: list[Tags] = [
            partial(self.tags, *each) for each in zip(others, parts, strict=True)
        ]
        if blocks:
            shapes, tags = [self._blocks(blocks), *parts], [dict, *tags]
        else:
            shapes = parts
        # an empty schema takes everything, whatever stands beside it
        if any(not shape.schema for shape in shapes):
            return ANYTHING
        schemas: list[JSONValue] = []
        for shape in shapes:
            # a union in a union is one: a model need not read two levels
            nested = shape.schema.get("anyOf")
            schemas += (
                nested
                if isinstance(nested, list) and len(shape.schema) == 1
                else [shape.schema]
            )
        return Shape(
            {"anyOf": schemas},
            read_union(
                [(shape.read, shape.expected) for shape in shapes],
                tags,
            ),
            any_of([shape.expected for shape in shapes]),
            plain=all(shape.plain for shape in shapes),
        )

    def tags(self, _: object, shape: Shape) -> JSONObject:
        """Return the keys of a union's member that must have one of a few values, with these."""
        # a class that holds itself is a definition
        label = str(shape.schema.get("$ref")).removeprefix("#/$defs/")
        return _tags(self.definitions.get(label, shape.schema))

    def _array(self, origin: object, item: object) -> Shape:
        shape = self.part(item)
        schema: JSONObject = {"type": "array"}
        if shape.schema:
            schema["items"] = shape.schema
        if origin in _SETS:
            schema["uniqueItems"] = True
        # JSON has lists alone: the others must be made even of items that fit
        plain = shape.plain and origin is not tuple and origin not in _SETS
        return Shape(schema, _array_reader(origin, shape.read), "an array", plain)

    def _tuple(self, members: tuple[object, ...]) -> Shape:
        if len(members) == 2 and members[1] is Ellipsis:
            return self._array(tuple, members[0])
        shapes = [self.part(member) for member in members]
        items = [(shape.schema, shape.read) for shape in shapes]
        return _places(items, tuple, len(items))

    def _named_tuple(self, cls: type) -> Shape:
        """Build the shape of a NamedTuple: an array, as JSON writes it; the items of fields with defaults may lack."""
        items: list[tuple[JSONObject, Reader]] = []
        required = 0
        for name, annotation, is_required, default in fields_of(cls):
            shape = self._field(cls, name, annotation)
            titled = {"title": name, **described(shape.schema, None, default)}
            items.append((titled, shape.read))
            required += is_required
        return _places(items, partial(_make_tuple, cls), required)

    def _object(
        self, annotation: object, key: object = str, value: object = object
    ) -> Shape:
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
            raise UnsupportedAnnotationError(
                annotation, reason="has keys that JSON cannot write; keys must be str"
            )
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
        # two classes of one name are two definitions
        taken = {*self._open.values(), *self.definitions}
        self._open[key] = next(
            n
            for n in (name, *(f"{name}_{i}" for i in range(2, len(taken) + 3)))
            if n not in taken
        )
        shape = build()
        label = self._open.pop(key)
        self._readers[key] = shape.read
        if key in self._recursive:
            # a definition is for what refers to itself; all else stands in its place
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
                shapes[None] = shape_by_itself(cls)
                schemas.append(shapes[None].schema)
        expected = f"a content block of type {any_of([tag or '' for tag in shapes])}"
        if None in shapes:  # it takes every other type
            expected = "a content block"
        readers = {tag: shape.read for tag, shape in shapes.items()}
        return Shape(
            {"anyOf": schemas}, read_tagged(readers, tuple(classes), expected), expected
        )

    def record(self, cls: type) -> Shape:
        texts = class_docstring(cls)
        properties: JSONObject = {}
        readers: dict[str, FieldReader] = {}
        required: list[JSONValue] = []
        extras: str | None = None
        for name, annotation, is_required, default in fields_of(cls):
            if default is NO_EXTRAS:
                # no key of its own: it takes those that the class does not know
                extras = name
                continue
            shape = self._field(cls, name, annotation)
            properties[name] = described(
                shape.schema, texts.arguments.get(name), default
            )
            readers[name] = FieldReader(
                cls, name, partial(_itself, shape), required=is_required
            )
            if is_required:
                required.append(name)
        schema: JSONObject = {"type": "object", "properties": properties}
        if texts.summary:
            schema["description"] = texts.summary
        if required:
            schema["required"] = required
        schema["additionalProperties"] = extras is not None
        return Shape(
            schema,
            read_record(readers, cls, extras=extras, tag=tag_of(cls)),
            "an object",
        )

    def _field(self, cls: type, name: str, annotation: object) -> Shape:
        try:
            return self.shape(annotation)
        except UnsupportedAnnotationError as error:
            raise error.in_field(cls, name) from None


def _places(
    items: Sequence[tuple[JSONObject, Reader]],
    build: Callable[[list[object]], object],
    required: int,
) -> Shape:
    """Return the shape of an array in which each place has a schema and a reader of its own."""
    schema: JSONObject = {
        "type": "array",
        "minItems": required,
        "maxItems": len(items),
    }
    if items:
        schema["prefixItems"] = [item for item, _ in items]
    read = read_places([read for _, read in items], build, required)
    return Shape(schema, read, "an array")


def _tags(schema: JSONValue) -> JSONObject:
    """Return the required keys of an object's schema that may have a few values alone."""
    match schema:
        case {"properties": Mapping() as properties, "required": list() as required}:
            pass
        case _:
            return {}
    return {
        key: allowed["enum"]
        for key, allowed in properties.items()
        if key in required and isinstance(allowed, Mapping) and "enum" in allowed
    }


def _itself(shape: Shape) -> Shape:
    return shape


def _make_tuple(cls: Callable[..., object], items: list[object]) -> object:  # type: ignore[explicit-any]  # of any fields
    return cls(*items)


def _array_reader(origin: object, item: Reader) -> Reader:
    """Return the reader of an array; only a set is also read from a set."""
    # an application that calls a tool itself may have a set at hand
    if origin in _SETS:
        return read_array(
            item,
            frozenset if origin is frozenset else set,
            (list, tuple, set, frozenset),
        )
    return read_array(item, tuple if origin is tuple else None, (list, tuple))


def _is_block(cls: type) -> bool:
    return cls.__module__ == _CONTENT and is_record(cls)


def tag_of(cls: type) -> str | None:
    """Return what stands under `type` in the objects of a class that differs from others by it."""
    tag: object = getattr(cls, "type", None)
    if isinstance(tag, str) and _is_block(cls):
        return tag
    return None


def _tagged(schema: JSONObject, tag: str) -> JSONObject:
    """Return the schema of a record that its `type` names."""
    properties, required = schema.get("properties"), schema.get("required")
    return schema | {
        "properties": {
            "type": {"const": tag},
            **(properties if isinstance(properties, Mapping) else {}),
        },
        "required": ["type", *(required if isinstance(required, list) else [])],
    }


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
    if extra:
        return schema | extra
    return schema


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
    if is_path(type(value)):
        return str(value)
    raise ValueError(f"JSON cannot write {value!r:.80}")
