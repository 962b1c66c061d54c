"""Values as plain JSON data: what handlers of the original receive, and what anybody gives the session.

A pydantic model or a dataclass inside a value would be opaque to whoever redacts, logs or stores it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from operator import attrgetter, methodcaller
from typing import Final, TypeAlias, cast, get_args

import attrs
from pydantic import BaseModel

from amplifier.compat.original import content_models, models
from amplifier_sdk.content import ContentBlock, block_to_dict
from amplifier_sdk.convert import to_json
from amplifier_sdk.messages import Message
from amplifier_sdk.results import ToolResult
from amplifier_sdk.secret import Secret

__all__ = ["native_result", "plain", "plain_copy", "plain_object"]

_Write: TypeAlias = Callable[[object, int], object]

MAX_DEPTH: Final = 100
"""How deep a value may nest; one that holds itself ends there."""

_AS_THEY_ARE: Final = frozenset({str, int, float, bool, type(None)})


def plain(value: object, depth: int = 0) -> object:
    """Return a value without foreign models in it: itself where it has none, so that its identity shows that."""
    if type(value) in _AS_THEY_ARE:
        return value
    if depth > MAX_DEPTH:
        return plain_copy(value, depth)
    if isinstance(value, models.ToolResult):
        return value.native or native_result(value)
    if type(value) is dict:
        entries = {key: plain(item, depth + 1) for key, item in value.items()}
        return value if _same(entries.values(), value.values()) else entries
    if type(value) in (list, tuple):
        items = [plain(item, depth + 1) for item in cast("Sequence[object]", value)]
        return value if _same(items, cast("Sequence[object]", value)) else items
    if isinstance(value, (BaseModel, models.HookResult, content_models.ContentBlock)):
        return plain_copy(value)
    return value


def plain_object(value: Mapping[str, object] | None) -> dict[str, object]:
    """Return the data of an event without foreign models in it."""
    return {key: plain(item) for key, item in (value or {}).items()}


def native_result(result: ToolResult) -> ToolResult:
    """Return a result that nobody can change any more, of plain data alone."""
    error = None
    if result.error is not None:
        error = plain_copy(result.error)
        if not isinstance(error, dict):
            error = {"message": str(error)}
    content = [_block(block) for block in result.content or ()]
    return ToolResult(
        success=result.success is True,
        output=plain_copy(result.output),  # type: ignore[arg-type]  # plain data
        error=error,  # type: ignore[arg-type]  # likewise
        content=content or None,
    )


def _block(block: object) -> ContentBlock:
    """Return a block of the SDK, whether it is one or the original's model or a dict."""
    from amplifier_sdk.content import block_from_dict  # few results have blocks

    if isinstance(block, _BLOCKS):
        return cast("ContentBlock", block)
    return block_from_dict(plain_copy(block))  # type: ignore[arg-type]  # plain data


def plain_copy(value: object, depth: int = 0) -> object:
    """Copy a value as plain JSON data; what has no JSON form becomes its text."""
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    # whoever handed it in is foreign, and Python's own limit would end the session
    if depth > MAX_DEPTH:
        return f"[a {kind.__name__} that nests deeper than {MAX_DEPTH}]"
    write = _WRITERS.get(kind)
    if write is None:
        write = _WRITERS[kind] = _writer_of(kind)
    return write(value, depth + 1)


def _writer_of(kind: type) -> _Write:
    for kinds, write in _BY_BASE:
        if issubclass(kind, kinds):
            return write
    if attrs.has(kind):
        return _attrs
    if is_dataclass(kind):
        return _dataclass
    return _other


def _mapping(value: object, depth: int) -> object:
    entries = cast("Mapping[object, object]", value)
    return {str(key): plain_copy(entries[key], depth) for key in entries}


def _sequence(value: object, depth: int) -> object:
    return [plain_copy(item, depth) for item in cast("Sequence[object]", value)]


def _set(value: object, depth: int) -> object:
    items = cast("AbstractSet[object]", value)
    return [plain_copy(item, depth) for item in sorted(items, key=repr)]


def _model(value: object, depth: int) -> object:
    model = cast("BaseModel", value)
    try:
        dumped: object = model.model_dump(mode="json", exclude_none=True)
    except ValueError:  # it holds what has no JSON form
        dumped = dict(model)
    return plain_copy(dumped, depth)


def _attrs(value: object, depth: int) -> object:
    names = attrs.fields_dict(cast("type[attrs.AttrsInstance]", type(value)))
    written = {
        name: plain_copy(getattr(value, name), depth)
        for name in names
        if not name.startswith("_")
    }
    extras = written.pop("extras", None)
    # values of the SDK keep there what they do not know, which is a field elsewhere
    if isinstance(extras, dict):
        written = {**extras, **written}
    return written


def _dataclass(value: object, depth: int) -> object:
    return {
        entry.name: plain_copy(getattr(value, entry.name), depth)
        for entry in fields(value)  # type: ignore[arg-type]  # asked before
    }


def _after(convert: Callable[..., object]) -> _Write:  # type: ignore[explicit-any]  # of any class
    """Write what a conversion makes of a value."""

    def write(value: object, depth: int) -> object:
        return plain_copy(convert(value), depth)

    return write


def _result(value: object, depth: int) -> object:
    result = cast("ToolResult", value)
    written = {
        name: plain_copy(getattr(result, name), depth)
        for name in ("success", "output", "error", "content")
    }
    if written["content"] is None:
        del written["content"]
    return written


def _text(value: object, _: int) -> object:
    return str(value)


def _string(value: object, _: int) -> object:
    return str.__str__(cast("str", value))


def _other(value: object, _: int) -> object:
    try:
        return to_json(value)
    except (TypeError, ValueError):
        return str(value)


_BLOCKS: Final = get_args(ContentBlock)
_BY_BASE: Final[tuple[tuple[tuple[type, ...], _Write], ...]] = (
    ((Secret,), _other),
    ((Enum,), _after(attrgetter("value"))),
    ((str,), _string),
    ((Decimal,), _text),
    ((int, float), _other),
    ((models.HookResult,), _after(methodcaller("model_dump"))),
    ((ToolResult,), _result),
    ((Message,), _after(methodcaller("to_dict"))),
    (_BLOCKS, _after(block_to_dict)),
    ((content_models.ContentBlock,), _after(methodcaller("to_dict"))),
    ((BaseModel,), _model),
    ((Mapping,), _mapping),
    ((bytes, bytearray), _other),
    ((Sequence,), _sequence),
    ((AbstractSet,), _set),
)
"""What writes the instances of a class and its subclasses; the first that fits."""

_WRITERS: Final[dict[type, _Write]] = {
    dict: _mapping,
    list: _sequence,
    tuple: _sequence,
}


def _same(made: object, given: object) -> bool:
    pairs = zip(
        cast("Sequence[object]", made), cast("Sequence[object]", given), strict=True
    )
    return all(left is right for left, right in pairs)
