"""Loaders: readers of whole classes, whose fields are worked out when a value first has them.

A class may have fields that no JSON can fill, as long as nobody gives them; and a process pays for those fields alone
that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Final, Literal, NoReturn, get_args, get_origin

from amplifier_sdk._reader.annotations import (
    UnsupportedAnnotationError,
    annotation_name,
)
from amplifier_sdk._reader.constraints import read_constrained
from amplifier_sdk._reader.readers import Reader
from amplifier_sdk._reader.record_readers import FieldReader, read_record
from amplifier_sdk._reader.records import fields_of
from amplifier_sdk._reader.scalars import Shape
from amplifier_sdk._reader.shapes import ShapeBuilder, tag_of
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.values import NO_EXTRAS

__all__ = ["LoaderBuilder", "loader_of", "make_loader"]

# no schema is wanted here, but an empty one would make a union take everything
_OBJECT: Final[JSONObject] = {"type": "object"}


class LoaderBuilder(ShapeBuilder):
    """Builds shapes that are read and whose schemas nobody asks for."""

    def part(self, annotation: object) -> Shape:
        """Return the shape of a part; one without a JSON form is refused when a value has it."""
        try:
            return self.shape(annotation)
        except UnsupportedAnnotationError as error:
            name = annotation_name(annotation)
            return Shape(
                # not empty either, for the same reason
                {"title": name},
                partial(_refuse, error),
                f"a value for {name}",
            )

    def constrained(self, shape: Shape, metadata: Sequence[object]) -> Shape:
        """Check values against what stands beside their type: no schema has done that before."""
        return shape._replace(read=read_constrained(shape.read, metadata))

    def keys(self, _: object, key: object) -> Shape:
        """Return the shape of an object's keys, whatever is made of their text."""
        return self.part(key)

    def record(self, cls: type) -> Shape:
        """Build the shape of a class with fields."""
        return Shape(_OBJECT, loader_of(cls), "an object")

    def tags(self, member: object, shape: Shape) -> JSONObject:
        """Return them of a class's fields: there is no schema that says them."""
        if shape.schema is not _OBJECT or not isinstance(member, type):
            return {}
        return {
            name: list(get_args(annotation))
            for name, annotation, is_required, _ in fields_of(member)
            if is_required and get_origin(annotation) is Literal
        }


def loader_of(cls: type) -> Reader:
    """Return the reader of a class with fields."""
    return _loader_of(cls)


# each session reads the same classes; some are made anew for each
@lru_cache(maxsize=256)
def _loader_of(cls: type) -> Reader:
    return make_loader(cls, LoaderBuilder().part)


def make_loader(cls: type, build: Callable[[object], Shape]) -> Reader:
    """Make the reader of a class with fields.

    Args:
        cls: the class.
        build: builds the shape of a field's annotation.
    """
    fields: dict[str, FieldReader] = {}
    extras: str | None = None
    for name, annotation, is_required, default in fields_of(cls):
        if default is NO_EXTRAS:
            extras = name
        else:
            fields[name] = FieldReader(
                cls, name, partial(build, annotation), required=is_required
            )
    return read_record(fields, cls, extras=extras, tag=tag_of(cls))


def _refuse(error: UnsupportedAnnotationError, _: object) -> NoReturn:
    # a new one each time: an exception collects the tracebacks of all its raises
    raise UnsupportedAnnotationError(error.annotation, error.path, error.reason)
