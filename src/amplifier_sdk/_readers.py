"""Readers: each takes a JSON value, refuses what does not fit, and returns the Python value it stands for.

A reader is strict (`True` is no number, `"1"` is no integer, 3.0 is the integer 3) and reports every
misfit below it at once, each with its path. A value that already is of the wanted Python type passes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Final, NamedTuple, Self, TypeAlias, TypeVar

import attrs

from amplifier_sdk._wording import Path, any_of, path_text, type_text, unknown_key, value_text

__all__ = [
    "BoundMisfitError",
    "FieldReader",
    "MisfitError",
    "Reader",
    "anything",
    "make_record",
    "read_array",
    "read_boolean",
    "read_choice",
    "read_constructed",
    "read_decimal",
    "read_fixed_array",
    "read_integer",
    "read_named_tuple",
    "read_null",
    "read_number",
    "read_object",
    "read_record",
    "read_secret",
    "read_string",
    "read_union",
]

R = TypeVar("R")

Reader: TypeAlias = Callable[[object], object]
"""Takes a JSON value and returns the Python value, or raises `MisfitError`."""

_DECIMAL: Final = r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?"


class MisfitError(ValueError):
    """A value does not fit; `problems` holds each misfit's path, from the value inwards, and what is wrong."""

    def __init__(self, problems: Sequence[tuple[Path, str]]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{path_text(path) or 'the value'}: {message}" for path, message in problems))

    @classmethod
    def of(cls, expected: str, value: object) -> Self:
        """Build the misfit of one value where something else is expected."""
        return cls([((), f"expected {expected}, got {value_text(value)}")])

    def under(self, part: str | int) -> list[tuple[Path, str]]:
        """Return the problems as seen from the value that holds this one under `part`."""
        return [((part, *path), message) for path, message in self.problems]


class BoundMisfitError(MisfitError):
    """A value is of the right form and beyond what stands beside its type."""


def anything(value: object) -> object:
    """Return the value as it is."""
    return value


def read_null(value: object) -> object:
    """Read null."""
    if value is None:
        return None
    raise MisfitError.of("null", value)


def read_boolean(value: object) -> object:
    """Read true or false."""
    if isinstance(value, bool):
        return value
    raise MisfitError.of("a boolean", value)


def read_integer(value: object) -> object:
    """Read a whole number; JSON does not tell 3.0 from 3."""
    if type(value) is int:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise MisfitError.of("an integer", value)


def read_number(value: object) -> object:
    """Read a number as a float."""
    if isinstance(value, float):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise MisfitError([((), "expected a number that a float can hold, got a larger one")]) from None
    raise MisfitError.of("a number", value)


def read_string(value: object) -> object:
    """Read text."""
    if isinstance(value, str):
        return value
    raise MisfitError.of("a string", value)


def read_decimal(build: Callable[[str], object], kind: type) -> Reader:
    """Make a reader of exact numbers, written as JSON numbers or as text."""

    def read(value: object) -> object:
        if isinstance(value, kind):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return build(str(value))
        if isinstance(value, float) and isfinite(value):
            return build(repr(value))
        if isinstance(value, str) and re.fullmatch(_DECIMAL, value):
            return build(value)
        raise MisfitError.of("a decimal number", value)

    return read


def read_constructed(build: Callable[[str], object], kind: type, expected: str) -> Reader:
    """Make a reader of values that are built from text, such as paths, dates and ids."""

    def read(value: object) -> object:
        if isinstance(value, kind):
            return value
        if isinstance(value, str):
            try:
                return build(value)
            except ValueError:
                raise MisfitError.of(expected, value) from None
        raise MisfitError.of(expected, value)

    return read


def read_secret(build: Callable[[str], object], kind: type) -> Reader:
    """Make a reader of secrets, which tells nothing of a value that does not fit."""

    def read(value: object) -> object:
        if isinstance(value, kind):
            return value
        if isinstance(value, str):
            return build(value)
        raise MisfitError([((), f"expected a string, got {type_text(value)} (not shown: it may be a secret)")])

    return read


def read_choice(choices: Sequence[tuple[object, object]], expected: str) -> Reader:
    """Make a reader that maps one of a few JSON values to the Python value it stands for."""
    results = [result for _, result in choices]

    def read(value: object) -> object:
        for choice, result in choices:
            # True == 1 in Python, though not in JSON.
            if value == choice and isinstance(value, bool) is isinstance(choice, bool):
                return result
        if any(value is result for result in results):
            return value
        raise MisfitError.of(expected, value)

    return read


def read_array(item: Reader, build: Callable[[list[object]], object] | None, kinds: tuple[type, ...]) -> Reader:
    """Make a reader of arrays.

    Args:
        item: the reader of each item.
        build: makes the Python value from the items read; `None` keeps the list.
        kinds: which Python types count as an array; text never does.
    """

    def read(value: object) -> object:
        if not isinstance(value, kinds) or not isinstance(value, Iterable):
            raise MisfitError.of("an array", value)
        items = _read_items(value, item)
        if build is None:
            return items
        try:
            return build(items)
        except TypeError as error:
            raise MisfitError([((), f"expected items that can stand in a set: {error}")]) from None

    return read


def _read_items(values: Iterable[object], item: Reader) -> list[object]:
    items: list[object] = []
    problems: list[tuple[Path, str]] = []
    for index, value in enumerate(values):
        try:
            items.append(item(value))
        except MisfitError as misfit:
            problems += misfit.under(index)
    if problems:
        raise MisfitError(problems)
    return items


def read_fixed_array(items: Sequence[Reader]) -> Reader:
    """Make a reader of arrays of a fixed length, each place with a reader of its own."""
    expected = f"an array of {len(items)} item{'s' if len(items) != 1 else ''}"

    def read(value: object) -> object:
        if not isinstance(value, (list, tuple)) or len(value) != len(items):
            raise MisfitError.of(expected, value)
        return tuple(_read_places(value, items))

    return read


def read_named_tuple(kind: Callable[..., object], items: Sequence[Reader], required: int) -> Reader:  # type: ignore[explicit-any]  # of any fields
    """Make a reader of arrays whose places have names; those after the required ones may lack."""
    least, most = required, len(items)
    expected = f"an array of {most if least == most else f'{least} to {most}'} item{'s' if most != 1 else ''}"

    def read(value: object) -> object:
        if not isinstance(value, (list, tuple)) or not least <= len(value) <= most:
            raise MisfitError.of(expected, value)
        return kind(*_read_places(value, items))

    return read


def _read_places(values: Sequence[object], items: Sequence[Reader]) -> list[object]:
    """Read each value with the reader of its place."""
    results: list[object] = []
    problems: list[tuple[Path, str]] = []
    for index, (value, read) in enumerate(zip(values, items, strict=False)):
        try:
            results.append(read(value))
        except MisfitError as misfit:
            problems += misfit.under(index)
    if problems:
        raise MisfitError(problems)
    return results


def read_object(item: Reader, key: Reader | None = None) -> Reader:
    """Make a reader of objects whose keys are open; `key` reads the keys when they are not plain text."""

    def read(value: object) -> object:
        if not isinstance(value, Mapping):
            raise MisfitError.of("an object", value)
        result: dict[object, object] = {}
        problems: list[tuple[Path, str]] = []
        for name, entry in value.items():
            try:
                if not isinstance(name, str):
                    raise MisfitError.of("a string as key", name)
                result[name if key is None else key(name)] = item(entry)
            except MisfitError as misfit:
                problems += misfit.under(str(name))
        if problems:
            raise MisfitError(problems)
        return result

    return read


def read_union(members: Sequence[tuple[Reader, str]]) -> Reader:
    """Make a reader of the first member that fits; each member comes with its words."""
    expected = any_of([words for _, words in members])

    def read(value: object) -> object:
        inside: list[MisfitError] = []
        for member, _ in members:
            try:
                return member(value)
            except MisfitError as misfit:
                if isinstance(misfit, BoundMisfitError) or all(path for path, _ in misfit.problems):
                    inside.append(misfit)
        # One member took the value's outer form and only its parts or bounds are wrong: that is the one meant.
        raise inside[0] if len(inside) == 1 else MisfitError.of(expected, value)

    return read


class FieldReader(NamedTuple):
    """One field of a record: its reader, its words, and whether it must be given."""

    read: Reader
    expected: str
    required: bool


def read_record(fields: Mapping[str, FieldReader], kind: type) -> Reader:
    """Make a reader of objects with known keys; others are refused.

    Args:
        fields: each key's reader.
        kind: the class, called with the fields by keyword; an instance of it passes as it is.
    """
    known = tuple(fields)
    # A TypedDict has no instances to test for.
    ready: type | tuple[()] = () if issubclass(kind, dict) else kind

    def read(value: object) -> object:
        if isinstance(value, ready):
            return value
        if not isinstance(value, Mapping):
            raise MisfitError.of("an object", value)
        values, problems = _read_fields(value, fields)
        problems += [((str(name),), unknown_key(name, known)) for name in value if name not in fields]
        if problems:
            raise MisfitError(problems)
        return make_record(kind, values)

    return read


def _read_fields(
    value: Mapping[object, object], fields: Mapping[str, FieldReader]
) -> tuple[dict[str, object], list[tuple[Path, str]]]:
    """Read the fields that are given, in the order of the class; report those that are missing."""
    values: dict[str, object] = {}
    problems: list[tuple[Path, str]] = []
    for name, field in fields.items():
        if name in value:
            try:
                values[name] = field.read(value[name])
            except MisfitError as misfit:
                problems += misfit.under(name)
        elif field.required:
            problems.append(((name,), f"missing; expected {field.expected}"))
    return values, problems


def make_record(kind: type, values: Mapping[str, object]) -> object:
    """Make a record of its fields' values.

    Raises:
        MisfitError: the class refuses them; every field whose own validator refuses is named.
    """
    if issubclass(kind, dict):
        return dict(values)
    record: object = None
    try:
        # As `kind(**values)` does, in two steps: a refused record is asked what refused it.
        record = kind.__new__(kind, **values)
        record.__init__(**values)  # type: ignore[misc]
    except (TypeError, ValueError) as error:
        raise MisfitError(_refusals(record, error)) from error
    return record


def _refusals(record: object, error: Exception) -> list[tuple[Path, str]]:
    """Find the fields whose converter or validators refused; else the record as a whole is refused."""
    problems: list[tuple[Path, str]] = []
    kind = type(record)
    for attribute in attrs.fields(kind) if attrs.has(kind) else ():
        name = str(attribute.alias)
        if not hasattr(record, attribute.name):  # fields are set in their order, and validated at last
            return [((name,), _message(error, name))] if attribute.converter is not None else [((), str(error))]
        try:
            if attribute.validator is not None:
                attribute.validator(record, attribute, getattr(record, attribute.name))
        except (TypeError, ValueError) as refusal:
            problems.append(((name,), _message(refusal, name)))
    return problems or [((), _message(error))]


def _message(error: Exception, name: str = "") -> str:
    # attrs' own validators carry the text as the first of several arguments.
    text = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
    if not name:
        return text
    # The problem's path names the field already: sentences that begin with it, or speak "of" it, need not.
    shorter = re.sub(rf"^('?){re.escape(name)}\1 +| of '{re.escape(name)}'(?= )", "", text, count=1)
    return shorter if shorter == text or not shorter.startswith("Length ") else f"l{shorter[1:]}"
