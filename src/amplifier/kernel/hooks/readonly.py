"""Read-only views: what handlers get of data that a session continues to use.

A view is a `dict` or a `list` in every respect but one: it cannot be changed. What it holds is seen through views too,
made when it is read. A copy such as `dict(view)` or `[*view]` can be changed, but what it holds cannot;
`copy.deepcopy` copies all of it.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence, ValuesView
from copy import deepcopy
from decimal import Decimal
from operator import is_
from typing import (
    Final,
    NoReturn,
    SupportsIndex,
    TypeAlias,
    TypeVar,
    cast,
    final,
    overload,
)

import attrs

from amplifier_sdk.values import Value

__all__ = [
    "ReadOnlyDict",
    "ReadOnlyList",
    "ReadOnlySequence",
    "read_only",
    "read_only_entries",
    "writable",
]

T = TypeVar("T")

_Slice: TypeAlias = "slice[int | None, int | None, int | None]"

_View: TypeAlias = Callable[[object], object]

_PLAIN: Final = frozenset({str, int, float, bool, bytes, type(None)})
_FIELDS: Final[dict[type, tuple[str, ...]]] = {}
"""The fields of values by their classes."""


def _refuse(*_: object, **__: object) -> NoReturn:
    """Raise a `TypeError`: a view cannot be changed."""
    raise TypeError(
        "What a handler receives cannot be changed in place; a change is made with HookResult.modify"
    )


@final
class ReadOnlyDict(dict[str, object]):
    """A dict that cannot be changed."""

    __slots__ = ()

    def __getitem__(self, key: str, /) -> object:
        """Return a value, seen through a view."""
        return read_only(dict.__getitem__(self, key))

    def __iter__(self) -> Iterator[str]:
        """Yield the keys; where this is defined, `dict(view)` asks `__getitem__` for what they hold."""
        return dict.__iter__(self)

    def get(self, key: str, default: object = None, /) -> object:
        """Return a value, seen through a view, or the default."""
        return read_only(dict.get(self, key, default))

    def values(self) -> ValuesView[object]:  # type: ignore[override]  # dict's own shows what it holds
        """Return the values, seen through views."""
        return ValuesView(self)

    def items(self) -> ItemsView[str, object]:  # type: ignore[override]  # likewise
        """Return the keys and the values, seen through views."""
        return ItemsView(self)

    def copy(self) -> dict[str, object]:
        """Return a dict that can be changed."""
        return dict(self)

    def __copy__(self) -> dict[str, object]:
        """Return a dict that can be changed."""
        return dict(self)

    def __deepcopy__(self, memo: dict[int, object]) -> dict[str, object]:
        """Return a copy of all of it that can be changed."""
        return {key: deepcopy(dict.__getitem__(self, key), memo) for key in self}

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as a dict."""
        # a view means nothing in another process, and `_refuse` would keep it from
        # loading
        return dict, (dict(dict.items(self)),)

    def __or__(self, other: Mapping[str, object], /) -> dict[str, object]:  # type: ignore[override]
        """Return a dict with what another mapping has besides."""
        return {**self, **other}


@final
class ReadOnlyList(list[object]):
    """A list that cannot be changed."""

    __slots__ = ()

    def __getitem__(self, index: SupportsIndex | slice, /) -> object:  # type: ignore[override, explicit-any]  # one for both
        """Return an item, seen through a view, or a list of such."""
        if isinstance(index, slice):
            return [*map(read_only, list.__getitem__(self, index))]
        return read_only(list.__getitem__(self, index))

    def __iter__(self) -> Iterator[object]:
        """Yield the items, seen through views."""
        return map(read_only, list.__iter__(self))

    def __reversed__(self) -> Iterator[object]:
        """Yield the items from the end, seen through views."""
        return map(read_only, list.__reversed__(self))

    def __add__(self, other: list[object], /) -> list[object]:  # type: ignore[override]
        """Return a list with the items of another behind these."""
        return [*self, *other]

    def copy(self) -> list[object]:
        """Return a list that can be changed."""
        return [*self]

    def __copy__(self) -> list[object]:
        """Return a list that can be changed."""
        return [*self]

    def __deepcopy__(self, memo: dict[int, object]) -> list[object]:
        """Return a copy of all of it that can be changed."""
        return [deepcopy(item, memo) for item in list.__iter__(self)]

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as a list."""
        return list, ([*list.__iter__(self)],)


_CHANGES: Final[Mapping[type, tuple[str, ...]]] = {
    ReadOnlyDict: (
        "__setitem__",
        "__delitem__",
        "__ior__",
        "clear",
        "pop",
        "popitem",
        "setdefault",
        "update",
    ),
    ReadOnlyList: (
        *(
            "__setitem__",
            "__delitem__",
            "__iadd__",
            "__imul__",
            "append",
            "clear",
            "extend",
            "insert",
            "pop",
            "remove",
        ),
        *("reverse", "sort"),
    ),
}
for _view, _names in _CHANGES.items():
    for _name in _names:
        setattr(_view, _name, _refuse)


@final
class ReadOnlySequence(Sequence[object]):  # noqa: PLW1641  # what it shows may hold dicts, so it has no hash
    """A sequence of another kind than a list, without a copy of it."""

    __slots__ = ("_seen",)

    def __init__(self, seen: Sequence[object]) -> None:
        self._seen = seen

    def __len__(self) -> int:
        return len(self._seen)

    def __iter__(self) -> Iterator[object]:
        return map(read_only, self._seen)

    @overload
    def __getitem__(self, index: int) -> object: ...
    @overload
    def __getitem__(self, index: _Slice) -> Sequence[object]: ...
    def __getitem__(self, index: int | _Slice) -> object:
        found = self._seen[index]
        if isinstance(index, slice):
            return list(map(read_only, cast("Sequence[object]", found)))
        return read_only(found)

    def __eq__(self, other: object) -> bool:
        return self._seen == (
            other._seen if isinstance(other, ReadOnlySequence) else other
        )

    def __repr__(self) -> str:
        return repr(self._seen)


def read_only_entries(data: dict[str, object]) -> dict[str, object]:
    """Return a dict with what another holds, as handlers see it; it can be changed itself."""
    entries = data.copy()
    made: dict[int, object] = {}  # one object under two names stays one
    for key, value in data.items():
        kind = type(value)
        if kind in _VIEWS:
            view = _VIEWS[kind]
        else:
            view = _view_of(kind)
        if view is not None:
            seen = made.get(id(value))
            if seen is None:
                seen = made[id(value)] = view(value)
            entries[key] = seen
    return entries


def read_only(value: T) -> T:
    """Return a value as handlers see it: containers as views, and values with views of what they hold.

    A copy is made of a container's own entries alone, never of what is in them.
    """
    kind = type(value)
    if kind in _VIEWS:
        view = _VIEWS[kind]
    else:
        view = _view_of(kind)
    if view is None:
        return value
    return cast("T", view(value))


def _view_of(kind: type) -> _View | None:
    """Return what makes the view of a class's instances, `None` where they are seen as they are; learnt once."""
    view: _View | None = None
    if issubclass(kind, Value):
        view = _value
    elif issubclass(kind, list) and kind is not ReadOnlyList:
        view = cast("_View", ReadOnlyList)
    elif issubclass(kind, Sequence) and not issubclass(
        kind, (list, str, bytes, tuple, ReadOnlySequence)
    ):
        view = cast("_View", ReadOnlySequence)
    # classes are few and met again with each event, so the answer is stored for good
    _VIEWS[kind] = view
    return view


def _tuple(value: object) -> object:
    items = cast("tuple[object, ...]", value)
    seen = tuple(map(read_only, items))
    if all(map(is_, seen, items)):
        return items
    return seen


def _value(value: object) -> object:
    return _changed(cast("Value", value), read_only)


_VIEWS: Final[dict[type, _View | None]] = {
    **dict.fromkeys((str, int, float, bool, bytes, type(None), Decimal, frozenset)),
    dict: cast("_View", ReadOnlyDict),
    list: cast("_View", ReadOnlyList),
    tuple: _tuple,
}
"""What makes a view of the instances of each class that was met."""


def _changed(value: Value, change: Callable[[object], object]) -> Value:
    """Return a frozen value with each field changed that holds more than a text or a number; itself where none is."""
    kind = type(value)
    names = _FIELDS.get(kind)
    if names is None:
        names = _FIELDS[kind] = tuple(
            field.name
            for field in attrs.fields(cast("type[attrs.AttrsInstance]", kind))
        )
    fields: dict[str, object] = {}
    is_same = True
    for name in names:
        each = fields[name] = getattr(value, name)
        if type(each) not in _PLAIN:
            fields[name] = changed = change(each)
            is_same = is_same and changed is each
    if is_same:
        return value
    made = object.__new__(kind)
    for name, each in fields.items():
        object.__setattr__(made, name, each)
    return made


def writable(value: object) -> object:
    """Return what a handler gave back as plain data: views in it become dicts and lists of their own."""
    if isinstance(value, ReadOnlyDict) or type(value) is dict:
        return {key: writable(item) for key, item in dict.items(value)}
    if isinstance(value, ReadOnlyList) or type(value) is list:
        return [writable(item) for item in list.__iter__(value)]
    if isinstance(value, ReadOnlySequence):
        return [*map(writable, value)]
    if type(value) is tuple:
        return tuple(map(writable, value))
    if isinstance(value, Value):
        return _changed(value, writable)
    return value
