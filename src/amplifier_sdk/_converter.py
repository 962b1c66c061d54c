"""The cattrs converter of authors who add hooks of their own: what they say nothing of is read and written as ever.

The SDK itself reads without cattrs: to import it and to have it write its functions takes a hundred times as long as to
read a configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache, partial
from pathlib import Path
from typing import Final, TypeAlias

from cattrs import BaseValidationError, Converter, transform_error

from amplifier_sdk._reader.annotations import UnsupportedAnnotationError
from amplifier_sdk._reader.loaders import LoaderBuilder, make_loader
from amplifier_sdk._reader.readers import MisfitError, Reader
from amplifier_sdk._reader.scalars import Shape
from amplifier_sdk._writers import write_with
from amplifier_sdk.events import Event

__all__ = ["make_converter"]

StructureHook: TypeAlias = Callable[[object, object], object]
"""What cattrs calls with a value and the annotation it is read for."""

_BUILT_IN: Final = (str, bool, int, float, bytes, Path, Enum, Event)
"""What cattrs has hooks for by class, which go before those for everything."""


def make_converter() -> Converter:
    """Make a converter that reads and writes as the SDK does."""
    converter = Converter()
    converter.register_structure_hook_factory(lambda _: True, _structure_hook)
    converter.register_unstructure_hook_factory(lambda _: True, _unstructure_hook)
    for cls in (*_BUILT_IN, type(None)):
        if cls is not type(None):
            converter.register_structure_hook(
                cls, lambda value, kind: LoaderBuilder().shape(kind).read(value)
            )
        converter.register_unstructure_hook(cls, _unstructure_hook(cls, converter))
    return converter


def _structure_hook(annotation: object, converter: Converter) -> StructureHook:
    read = _HookedBuilder(converter).shape(annotation).read
    return lambda value, _: read(value)


def _unstructure_hook(_: object, converter: Converter) -> Callable[[object], object]:
    return partial(write_with, converter.unstructure)


class _HookedBuilder(LoaderBuilder):
    """Builds readers that ask a converter for the hooks of what a value is made of."""

    def __init__(self, converter: Converter) -> None:
        super().__init__()
        self._converter = converter

    def part(self, annotation: object) -> Shape:
        return (
            super().part(annotation)._replace(read=_late(self._converter, annotation))
        )

    def record(self, cls: type) -> Shape:
        return Shape({"type": "object"}, make_loader(cls, self.part), "an object")


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
            # both are errors of the last kind below, which would lose the paths in them
            raise
        except BaseValidationError as error:
            # of a hook that an author made with cattrs
            raise MisfitError([((), "; ".join(transform_error(error)))]) from error
        except (TypeError, ValueError) as error:
            raise MisfitError([((), str(error))]) from error

    return read
