"""A tool's schema, cut down to what a small model can fill.

Only required parameters are asked for; of a tool without any, the first one may be given. References are
replaced by what they refer to, of alternatives the first that is not null is taken, and every text, list and
object has a small limit, so that an answer cannot run on. What this leaves is a schema whose values the tool's
own schema accepts wherever it can be said in these terms; the rest is found when the arguments are checked.

Nothing goes on that the server has no grammar for: it refuses some of it, and one that nothing can satisfy keeps it
busy for ever.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from math import ceil, floor
from typing import Final

from amplifier_kit.open_data import as_list
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["is_path", "required_parameters", "sketch"]

_LONGEST_TEXT: Final = 100
_LONGEST_LIST: Final = 4
# references followed one inside another: only they can go on for ever
_DEPTH: Final = 5
# references and alternatives from one place to a schema that says something
_STEPS: Final = 10
_RAISED: Final = 10  # times: so far a limit is raised to what the tool needs at least
_LARGEST: Final = 2**53  # what JSON can say exactly
_PATH_WORDS: Final = ("path", "file", "dir", "folder")


def is_path(name: str) -> bool:
    """Tell whether a parameter's name says that it takes a path."""
    return any(word in name.lower() for word in _PATH_WORDS)


def required_parameters(
    schema: Mapping[str, JSONValue],
) -> list[tuple[str, Mapping[str, JSONValue]]]:
    """Return the parameters that the model is asked for, each with its cut-down schema."""
    properties = sketch(schema)["properties"]
    assert isinstance(properties, Mapping)
    return [
        (name, value)
        for name, value in properties.items()
        if isinstance(value, Mapping)
    ]


def sketch(schema: Mapping[str, JSONValue]) -> JSONObject:
    """Return the cut-down schema of a tool's arguments, an object schema."""
    whole, followed = _resolved(schema, schema)
    return _object(whole, schema, _DEPTH - followed)


def _object(
    schema: Mapping[str, JSONValue], root: Mapping[str, JSONValue], depth: int
) -> JSONObject:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {"type": "object", "properties": {}, "additionalProperties": False}
    names = [
        name
        for name in as_list(schema.get("required"))
        if isinstance(name, str) and name in properties
    ]
    return {
        "type": "object",
        "properties": {
            name: _value(properties[name], root, depth)
            for name in names or list(properties)[:1]
        },
        "required": names,
        "additionalProperties": False,
    }


def _value(schema: JSONValue, root: Mapping[str, JSONValue], depth: int) -> JSONObject:
    schema, followed = _resolved(schema, root)
    depth -= followed
    if depth <= 0 or not schema:
        return {"type": "string", "maxLength": _LONGEST_TEXT}
    chosen: JSONObject = {
        name: schema[name] for name in ("enum", "const") if schema.get(name, []) != []
    }
    match _type(schema):
        case None:
            return chosen
        case "object":
            return _object(schema, root, depth)
        case "array":
            items = _value(schema.get("items"), root, depth)
            return {
                "type": "array",
                "items": items,
                **_limits(schema, "Items", _LONGEST_LIST),
                **chosen,
            }
        case "integer" | "number" as kind:
            return {
                "type": kind,
                **_range(schema, is_whole=kind == "integer"),
                **chosen,
            }
        case "boolean" | "null" as kind:
            return {"type": kind, **chosen}
        case _:
            return {
                "type": "string",
                **_limits(schema, "Length", _LONGEST_TEXT),
                **chosen,
            }


def _limits(schema: Mapping[str, JSONValue], of: str, limit: int) -> JSONObject:
    """Return how long a text or a list may be and has to be; what it has to be goes before the small limit."""
    minimum, maximum = _count(schema.get(f"min{of}")), _count(schema.get(f"max{of}"))
    if maximum is None:
        maximum = limit
    else:
        maximum = min(maximum, limit)
    if not minimum or minimum > limit * _RAISED:
        return {f"max{of}": maximum}
    return {f"max{of}": max(maximum, minimum), f"min{of}": minimum}


def _count(value: JSONValue) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return None


def _range(schema: Mapping[str, JSONValue], *, is_whole: bool) -> JSONObject:
    """Return the bounds of a number, unless no number is within them."""
    low, high = _bound(schema.get("minimum")), _bound(schema.get("maximum"))
    if is_whole:
        low = None if low is None else ceil(low)
        high = None if high is None else floor(high)
    if low is not None and high is not None and low > high:
        return {}
    return {
        name: value
        for name, value in (("minimum", low), ("maximum", high))
        if value is not None
    }


def _bound(value: JSONValue) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    if abs(value) <= _LARGEST:
        return value
    return None


def _type(schema: Mapping[str, JSONValue]) -> str | None:
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind
    if isinstance(kind, Sequence):
        return next(
            (name for name in kind if isinstance(name, str) and name != "null"), "null"
        )
    if "enum" in schema or "const" in schema:
        return None
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema else "string"


def _resolved(
    schema: JSONValue, root: Mapping[str, JSONValue]
) -> tuple[Mapping[str, JSONValue], int]:
    """Join a schema with what it refers to and with one of its alternatives; count the references, one behind another.

    Few steps are taken; a schema that needs more says nothing.
    """
    whole: Mapping[str, JSONValue] = {}
    followed = 0
    waiting: deque[tuple[JSONValue, int]] = deque([(schema, 0)])
    for _ in range(_STEPS):
        if not waiting:
            return whole, followed
        part, behind = waiting.popleft()
        if not isinstance(part, Mapping):
            continue
        followed = max(followed, behind)
        whole = _joined(whole, part)
        if isinstance(reference := part.get("$ref"), str):
            waiting.append((_referred(reference, root), behind + 1))
        waiting += [(other, behind) for other in _others(part)]
    return {}, followed


def _joined(
    first: Mapping[str, JSONValue], second: Mapping[str, JSONValue]
) -> Mapping[str, JSONValue]:
    """Return what two schemas say of the same value."""
    joined: JSONObject = {**first, **second}
    some, more = first.get("properties"), second.get("properties")
    if isinstance(some, Mapping) and isinstance(more, Mapping):
        joined["properties"] = {**some, **more}
    needed, also = first.get("required"), second.get("required")
    if isinstance(needed, list) and isinstance(also, list):
        joined["required"] = [*needed, *(name for name in also if name not in needed)]
    return joined


def _others(schema: Mapping[str, JSONValue]) -> list[JSONValue]:
    """Return the further schemas of a value: all of `allOf`, and of alternatives the first that is not null."""
    others = as_list(schema.get("allOf"))
    for key in ("anyOf", "oneOf"):
        alternatives = schema.get(key)
        if isinstance(alternatives, list) and alternatives:
            others.append(
                next(
                    (each for each in alternatives if not _is_null(each)),
                    alternatives[0],
                )
            )
    return others


def _is_null(schema: JSONValue) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "null"


def _referred(reference: str, root: Mapping[str, JSONValue]) -> JSONValue:
    """Return what a reference inside the document points at; `None` for any other."""
    if not reference.startswith("#"):
        return None
    value: JSONValue = root
    for part in reference.removeprefix("#").split("/")[1:]:
        if not isinstance(value, Mapping):
            return None
        value = value.get(part.replace("~1", "/").replace("~0", "~"))
    return value
