"""Readers of records: objects with known keys, which become values of a class."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import NoReturn

import attrs

from amplifier_sdk._reader.annotations import UnsupportedAnnotationError
from amplifier_sdk._reader.problems import Path, unknown_key
from amplifier_sdk._reader.readers import MisfitError, Part, Reader, refuse_parts
from amplifier_sdk._reader.scalars import Shape

__all__ = ["FieldReader", "read_record", "read_tagged"]


class FieldReader:
    """One field of a record, whose shape is built when a value first has it.

    Args:
        cls: the record's class.
        name: the field's key.
        build: builds its shape.
        required: whether it must be given.
    """

    def __init__(
        self, cls: type, name: str, build: Callable[[], Shape], *, required: bool
    ) -> None:
        self.required = required
        self._cls = cls
        self._name = name
        self._build = build

    @cached_property
    def _shape(self) -> Shape:
        return self._build()

    def read(self, value: object, /) -> object:
        """Read the field's value."""
        shape = self._shape
        if shape.plain:
            self.read = shape.read  # type: ignore[method-assign]  # nothing below it can be refused by its annotation
        try:
            return shape.read(value)
        except UnsupportedAnnotationError as error:
            raise error.in_field(self._cls, self._name) from None

    def refuse_missing(self, _: object, /) -> NoReturn:
        """Say that the field is missing, and what is expected."""
        raise MisfitError.missing(self._shape.expected)


def read_record(
    fields: Mapping[str, FieldReader],
    kind: type,
    *,
    extras: str | None = None,
    tag: str | None = None,
) -> Reader:
    """Make a reader of objects with known keys.

    Args:
        fields: each key's reader.
        kind: the class, called with the fields by keyword; an instance of it passes as it is.
        extras: the field that takes unknown keys; without one they are refused.
        tag: what stands under `type`, which the class knows without being given it.
    """
    required = frozenset(name for name, field in fields.items() if field.required)
    is_typed_dict = issubclass(kind, dict)  # which has no instances to test for

    def read(value: object) -> object:
        # data is nearly always a plain dict, which is no record
        if not is_typed_dict and type(value) is not dict and isinstance(value, kind):
            return value
        if not isinstance(value, Mapping):
            raise MisfitError.of("an object", value)
        values: dict[str, object] = {}
        others: dict[str, object] = {}
        misfit = False
        for key, entry in value.items():
            field = fields.get(key)
            if field is None:
                others[key] = entry
                continue
            try:
                values[key] = field.read(entry)
            except MisfitError:
                # reported below, in the fields' order and beside what is missing
                misfit = True
        # stored blocks name their type, which the class knows and does not take
        if tag is not None:
            others.pop("type", None)
        if misfit or not required <= values.keys() or (others and extras is None):
            refuse_parts(_parts(value, fields, () if extras else others))
        if others and extras is not None:
            values[extras] = others
        return values if is_typed_dict else _make_record(kind, values)

    return read


def _parts(
    value: Mapping[object, object],
    fields: Mapping[str, FieldReader],
    unknown: Iterable[object],
) -> Iterator[Part]:
    """Yield the parts of an object with known keys: its fields in their order, then what nobody knows."""
    for name, field in fields.items():
        if name in value:
            yield name, field.read, value[name]
        elif field.required:
            yield name, field.refuse_missing, None
    for key in unknown:
        yield str(key), partial(_refuse_key, tuple(fields)), key


def _refuse_key(known: Sequence[str], key: object) -> NoReturn:
    raise MisfitError([((), unknown_key(key, known))])


def read_tagged(
    members: Mapping[str | None, Reader], kinds: tuple[type, ...], expected: str
) -> Reader:
    """Make a reader of objects that differ by their `type`, which their classes know without being given it.

    Args:
        members: the reader for each type; that of `None` takes every other one, and is given the type.
        kinds: the classes; an instance of one passes as it is.
        expected: what is expected, with an article.
    """
    other = members.get(None)

    def read(value: object) -> object:
        if isinstance(value, kinds):
            return value
        tag = None
        if isinstance(value, Mapping):
            tag = value.get("type")
        if not isinstance(value, Mapping) or not isinstance(tag, str):
            raise MisfitError.of(expected, value)
        member = members.get(tag)
        if member is not None:
            return member(value)
        if other is None:
            raise MisfitError.of(expected, value)
        return other(value)

    return read


def _make_record(kind: type, values: Mapping[str, object]) -> object:
    """Make a record of its fields' values.

    Raises:
        MisfitError: the class refuses them; every field whose own validator refuses is named.
    """
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:
        raise MisfitError(_refusals(kind, values, error)) from error


def _refusals(
    kind: type, values: Mapping[str, object], error: Exception
) -> list[tuple[Path, str]]:
    """Find the fields whose converter or validators refused; else the record as a whole is refused."""
    problems: list[tuple[Path, str]] = []
    record: object = None
    with suppress(TypeError, ValueError):
        # The class refused, so there is no record to ask which field is wrong. One that
        # is made by hand keeps the fields that were set before the refusal.
        record = kind.__new__(kind, **values)  # type: ignore[call-overload]  # of any class
        record.__init__(**values)  # type: ignore[misc]  # sets the fields until the one that is refused
    for attribute in attrs.fields(kind) if attrs.has(kind) else ():
        name = str(attribute.alias)
        # fields are set in their order, and validated at last
        if not hasattr(record, attribute.name):
            if attribute.converter is not None:
                return [((name,), _message(error, name))]
            break
        try:
            if attribute.validator is not None:
                attribute.validator(record, attribute, getattr(record, attribute.name))
        except (TypeError, ValueError) as refusal:
            problems.append(((name,), _message(refusal, name)))
    return problems or [((), _message(error))]


def _message(error: Exception, name: str = "") -> str:
    match error.args:
        # as attrs' own validators raise it
        case (str(text), attrs.Attribute(), *_):
            pass
        case _:
            text = str(error)
    if not name:
        return text
    # The problem's path names the field already: sentences that begin with it, or speak "of" it, need not.
    shorter = re.sub(
        rf"^('?){re.escape(name)}\1 +| of '{re.escape(name)}'(?= )", "", text, count=1
    )
    if shorter == text or not shorter.startswith("Length "):
        return shorter
    return f"l{shorter[1:]}"
