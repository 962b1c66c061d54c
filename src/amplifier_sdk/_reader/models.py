"""pydantic's models as annotations: their schema and their validation are pydantic's own.

pydantic need not be installed: a class is one of its models when it has what they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, Protocol, TypeGuard, cast

from amplifier_sdk._reader.problems import Path
from amplifier_sdk._reader.readers import MisfitError
from amplifier_sdk._reader.scalars import Shape
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["is_model", "model_shape", "written_model"]

_METHODS: Final = ("model_dump", "model_json_schema", "model_validate")


class _Model(Protocol):
    """A model, as far as it is used here."""

    @classmethod
    def model_json_schema(cls, *, ref_template: str) -> dict[str, JSONValue]: ...

    @classmethod
    def model_validate(cls, value: object, /) -> object: ...

    def model_dump(self, *, mode: str) -> object: ...


class _Problem(Protocol):
    """What is wrong with a value in one place."""

    def __getitem__(self, key: str, /) -> object: ...


def is_model(cls: type) -> TypeGuard[type[_Model]]:
    """Tell whether a class is a model."""
    # by what it has: to import pydantic would cost a process more than all the SDK
    return all(callable(getattr(cls, method, None)) for method in _METHODS)


def model_shape(cls: type[_Model], definitions: JSONObject) -> Shape:
    """Return the shape of a model.

    Args:
        cls: the model.
        definitions: what the schema is to find under `$defs`; what the model refers to is added, under names that
            begin with the model's.
    """
    prefix, number = cls.__name__, 1
    while True:
        schema: JSONObject = cls.model_json_schema(
            ref_template=f"#/$defs/{prefix}.{{model}}"
        )
        own = cast("JSONObject", schema.pop("$defs", None) or {})
        named = {f"{prefix}.{name}": part for name, part in own.items()}
        if all(definitions.get(name, part) == part for name, part in named.items()):
            break
        # another model of this name, which has parts of other names
        number += 1
        prefix = f"{cls.__name__}_{number}"
    definitions.update(named)
    return Shape(schema, partial(_read, cls), f"a value for {cls.__name__}")


def written_model(value: _Model, _: object) -> object:
    """Write a model as JSON data, as pydantic does."""
    return value.model_dump(mode="json")


def _read(cls: type[_Model], value: object) -> object:
    try:
        return cls.model_validate(value)
    except ValueError as error:  # pydantic's own, which lists what is wrong
        raise MisfitError(_problems(error)) from error


def _problems(error: ValueError) -> list[tuple[Path, str]]:
    """Return what is wrong with a value, each with its path."""
    errors: object = getattr(error, "errors", None)
    if not callable(errors):
        return [((), str(error))]
    listed = cast("Sequence[_Problem]", errors())
    return [
        (tuple(cast("Sequence[str | int]", each["loc"])), str(each["msg"]))
        for each in listed
    ]
