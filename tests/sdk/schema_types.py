"""Types that tool signatures in these tests use: annotations need names that a module has."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Annotated, NamedTuple, NotRequired, Required, TypedDict

import attrs

from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "Bounds",
    "Color",
    "Elsewhere",
    "Empty",
    "Level",
    "Linked",
    "Movie",
    "Options",
    "Point",
    "Sequel",
    "Size",
    "Span",
    "Tree",
    "Window",
]


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Size(enum.Enum):
    """One of its values is no JSON scalar."""

    SMALL = (1, 1)


@attrs.frozen(kw_only=True)
class Bounds:
    """What stands in `Annotated` to constrain, with the attributes that the annotated-types package uses."""

    ge: object = None
    gt: object = None
    le: object = None
    lt: object = None
    multiple_of: object = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: object = None


@attrs.frozen
class Point:
    """A place.

    Args:
        x: to the right
        y: upwards
    """

    x: int
    y: int = 0


@attrs.define
class Tree:
    """A tree of names."""

    name: str
    children: list[Tree] = attrs.field(factory=list)
    _hidden: str = attrs.field(default="h", alias="shown")
    made: int = attrs.field(default=1, init=False)


@dataclasses.dataclass
class Window:
    width: int
    title: str = "untitled"
    tags: list[str] = dataclasses.field(default_factory=list)
    area: int = dataclasses.field(default=0, init=False)


@dataclasses.dataclass
class Linked:
    """A list."""

    value: int
    next: Linked | None = None


class Movie(TypedDict):
    """A film."""

    title: str
    year: NotRequired[int]


class Sequel(Movie, total=False):
    part: Annotated[Required[int], "which one"]
    rating: float


@attrs.frozen(kw_only=True)
class Options:
    when: datetime
    days: Sequence[date] = ()
    open: Mapping[str, JSONValue] = attrs.field(factory=dict)


class Span(NamedTuple):
    """From where, in which color."""

    start: int
    color: Color = Color.RED


class Empty(NamedTuple):
    """No fields at all."""


class Elsewhere:
    """A class without a JSON form."""
