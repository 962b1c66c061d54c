"""Readers: each takes a JSON value, refuses what does not fit, and returns the Python value it stands for.

A reader is strict (`True` is no number, `"1"` is no integer, 3.0 is the integer 3) and reports every
misfit below it at once, each with its path. A value that already is of the wanted Python type passes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Final, NoReturn, Self, TypeAlias

from amplifier_sdk._reader.problems import (
    Path,
    any_of,
    path_text,
    type_text,
    value_text,
)

__all__ = [
    "BoundMisfitError",
    "MisfitError",
    "Part",
    "Reader",
    "Tags",
    "anything",
    "read_array",
    "read_boolean",
    "read_choice",
    "read_constructed",
    "read_decimal",
    "read_integer",
    "read_null",
    "read_number",
    "read_object",
    "read_places",
    "read_secret",
    "read_string",
    "read_union",
    "refuse_parts",
]

Reader: TypeAlias = Callable[[object], object]
"""Takes a JSON value and returns the Python value, or raises `MisfitError`."""

Part: TypeAlias = "tuple[str | int, Reader, object]"
"""A part of a value: its key or index, its reader, and what stands there."""

Tags: TypeAlias = Callable[[], Mapping[str, object]]
"""Says which keys of an object have one of a few values, and which values."""

_DECIMAL: Final = r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?"


class MisfitError(ValueError):
    """A value does not fit; `problems` holds each misfit's path, from the value inwards, and what is wrong."""

    def __init__(self, problems: Sequence[tuple[Path, str]]) -> None:
        self.problems = tuple(problems)
        super().__init__(
            "; ".join(
                f"{path_text(path) or 'the value'}: {message}"
                for path, message in problems
            )
        )

    @classmethod
    def of(cls, expected: str, value: object) -> Self:
        """Build the misfit of one value where something else is expected."""
        return cls([((), f"expected {expected}, got {value_text(value)}")])

    @classmethod
    def missing(cls, expected: str) -> Self:
        """Build the misfit of a field that is not there."""
        return cls([((), f"missing; expected {expected}")])

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
    """Read a whole number; to JSON 3.0 is 3."""
    # the usual one; of a kind of int, such as an enum's member, a plain one is made
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
            # Python's integers have no limit, a float has one
            raise MisfitError(
                [((), "expected a number that a float can hold, got a larger one")]
            ) from None
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
            # the shortest text that reads back as this float, so that 0.1 stays 0.1
            return build(repr(value))
        if isinstance(value, str) and re.fullmatch(_DECIMAL, value):
            return build(value)
        raise MisfitError.of("a decimal number", value)

    return read


def read_constructed(
    build: Callable[[str], object], kind: type, expected: str
) -> Reader:
    """Make a reader of values that are built from text, such as paths, dates and ids."""

    def read(value: object) -> object:
        if isinstance(value, kind):
            return value
        if isinstance(value, str):
            try:
                return build(value)
            except ValueError:
                # in our words: those of the class differ between Pythons
                raise MisfitError.of(expected, value) from None
        raise MisfitError.of(expected, value)

    return read


def read_secret(build: Callable[[str], object], kind: type) -> Reader:
    """Make a reader of secrets, whose errors never show the value."""

    def read(value: object) -> object:
        if isinstance(value, kind):
            return value
        if isinstance(value, str):
            return build(value)
        raise MisfitError(
            [
                (
                    (),
                    f"expected a string, got {type_text(value)} (not shown: it may be a secret)",
                )
            ]
        )

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


def read_array(
    item: Reader,
    build: Callable[[list[object]], object] | None,
    kinds: tuple[type, ...],
) -> Reader:
    """Make a reader of arrays.

    Args:
        item: the reader of each item.
        build: makes the Python value from the items read; `None` keeps the list.
        kinds: which Python types count as an array; text never does.
    """

    def read(value: object) -> object:
        if not isinstance(value, kinds) or not isinstance(value, Iterable):
            raise MisfitError.of("an array", value)
        try:
            # What fits is read in one walk. Only where something does not, a second one
            # finds every misfit; the same holds for places, objects and records.
            items = [item(entry) for entry in value]
        except MisfitError:
            refuse_parts((index, item, entry) for index, entry in enumerate(value))
        if build is None:
            return items
        try:
            return build(items)
        except TypeError as error:
            # only a set refuses its items: those without a hash, such as lists
            raise MisfitError(
                [((), f"expected items that can stand in a set: {error}")]
            ) from None

    return read


def read_places(
    items: Sequence[Reader], build: Callable[[list[object]], object], required: int
) -> Reader:
    """Make a reader of arrays in which each place has a reader of its own.

    Args:
        items: the readers, in the order of the places.
        build: makes the Python value from the items read.
        required: how many of the places must be filled.
    """
    size = len(items)
    if required == size:
        count = str(size)
    else:
        count = f"{required} to {size}"
    expected = f"an array of {count} item{'s' if size != 1 else ''}"

    def read(value: object) -> object:
        if not isinstance(value, (list, tuple)) or not required <= len(value) <= size:
            raise MisfitError.of(expected, value)
        try:
            return build(
                # the last places may be empty; the length was checked above
                [item(entry) for item, entry in zip(items, value, strict=False)]
            )
        except MisfitError:
            refuse_parts(
                (index, items[index], entry) for index, entry in enumerate(value)
            )

    return read


def read_object(item: Reader, key: Reader) -> Reader:
    """Make a reader of objects whose keys are open; `key` reads the keys."""
    is_plain = item is anything and key is read_string

    def read_key(name: object) -> object:
        if isinstance(name, str):
            return key(name)
        raise MisfitError.of("a string as key", name)

    def parts(value: Mapping[object, object]) -> Iterator[Part]:
        for name, entry in value.items():
            yield str(name), read_key, name
            yield str(name), item, entry

    def read(value: object) -> object:
        if not isinstance(value, Mapping):
            raise MisfitError.of("an object", value)
        # extras and metadata may be large, and nothing in them is read
        if is_plain and all(type(name) is str for name in value):
            return dict(value)
        try:
            return {read_key(name): item(entry) for name, entry in value.items()}
        except MisfitError:
            refuse_parts(parts(value))

    return read


def read_union(
    members: Sequence[tuple[Reader, str]], tags: Sequence[Tags] = ()
) -> Reader:
    """Make a reader of the first member that fits; each member comes with its words.

    Args:
        members: the readers.
        tags: for each member, the keys that must have one of some values: an object that has them is of that member.
            They are asked for when nothing fits.
    """
    expected = any_of([words for _, words in members])

    def read(value: object) -> object:
        inside: dict[int, MisfitError] = {}
        for number, (member, _) in enumerate(members):
            try:
                return member(value)
            except MisfitError as misfit:
                if isinstance(misfit, BoundMisfitError) or all(
                    path for path, _ in misfit.problems
                ):
                    inside[number] = misfit
        # One member took the value's outer form and only its parts or bounds are wrong: that is the one meant.
        meant = [*inside.values()]
        if len(meant) > 1 and isinstance(value, Mapping):
            meant = [
                inside[n] for n in inside if n < len(tags) and _has(value, tags[n]())
            ]
        raise meant[0] if len(meant) == 1 else MisfitError.of(expected, value)

    return read


def _has(value: Mapping[object, object], tags: Mapping[str, object]) -> bool:
    return bool(tags) and all(
        isinstance(allowed, list) and value.get(key) in allowed
        for key, allowed in tags.items()
    )


def refuse_parts(parts: Iterable[Part]) -> NoReturn:
    """Report every part of a value that does not fit.

    Raises:
        MisfitError: always; its cause is that of the first part that has one.
    """
    problems: list[tuple[Path, str]] = []
    causes: list[BaseException | None] = []
    for name, read, value in parts:
        try:
            read(value)
        except MisfitError as misfit:
            problems += misfit.under(name)
            causes.append(misfit.__cause__)
    raise MisfitError(problems) from next(filter(None, causes), None)
