"""Arguments made up from a tool's schema: the smallest object that should fit it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from amplifier_sdk.jsontypes import JSONObject, JSONValue

DEEPEST: Final = 8


def example_arguments(schema: Mapping[str, JSONValue]) -> JSONObject:
    """Make an object with every required argument of an object schema."""
    value = _example(schema, schema, 0)
    if isinstance(value, dict):
        return value
    return {}


def properties_of(
    schema: Mapping[str, JSONValue],
) -> dict[str, Mapping[str, JSONValue]]:
    """Return an object schema's properties, each with what a reference in it refers to."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    return {
        name: _resolved(part, schema, 0) if isinstance(part, Mapping) else {}
        for name, part in properties.items()
    }


def required_of(schema: Mapping[str, JSONValue]) -> list[str]:
    required = schema.get("required")
    if isinstance(required, (list, tuple)):
        return [str(name) for name in required]
    return []


def types_of(schema: Mapping[str, JSONValue]) -> set[str]:
    """Return the types that a property's schema names, also those of its alternatives; none when any will do."""
    found: set[str] = set()
    kind = schema.get("type")
    found.update(
        [kind]
        if isinstance(kind, str)
        else map(str, kind)
        if isinstance(kind, (list, tuple))
        else ()
    )
    for key in ("anyOf", "oneOf"):
        parts = schema.get(key)
        for part in parts if isinstance(parts, (list, tuple)) else ():
            found |= types_of(part) if isinstance(part, Mapping) else set()
    return found


def _resolved(
    part: Mapping[str, JSONValue], root: Mapping[str, JSONValue], depth: int
) -> Mapping[str, JSONValue]:
    reference = part.get("$ref")
    if (
        not isinstance(reference, str)
        or not reference.startswith("#/")
        or depth > DEEPEST
    ):
        return part
    target: JSONValue = root
    for key in reference[2:].split("/"):
        if isinstance(target, Mapping):
            target = target.get(key)
        else:
            target = None
    if isinstance(target, Mapping):
        # what stands beside a reference counts, as in JSON Schema from 2019 on
        return {**_resolved(target, root, depth + 1), **part}
    return part


def _example(
    schema: Mapping[str, JSONValue], root: Mapping[str, JSONValue], depth: int
) -> JSONValue:
    schema = _resolved(schema, root, 0)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("enum", "examples"):
        values = schema.get(key)
        if isinstance(values, (list, tuple)) and values:
            first: JSONValue = values[0]
            return first
    for key in ("anyOf", "oneOf", "allOf"):
        parts = schema.get(key)
        if (
            isinstance(parts, (list, tuple))
            and parts
            and isinstance(parts[0], Mapping)
            and depth < DEEPEST
        ):
            return _example(parts[0], root, depth + 1)
    kinds = types_of(schema)
    if "object" in kinds and depth < DEEPEST:
        properties = properties_of(schema)
        return {
            name: _example(properties.get(name, {}), root, depth + 1)
            for name in required_of(schema)
        }
    return _plain(schema, kinds, root, depth)


def _plain(
    schema: Mapping[str, JSONValue],
    kinds: set[str],
    root: Mapping[str, JSONValue],
    depth: int,
) -> JSONValue:
    minimum = schema.get("minimum", schema.get("exclusiveMinimum"))
    number: int | float
    if isinstance(minimum, (int, float)):
        # above an exclusive bound as well
        number = minimum + 1
    else:
        number = 1
    # anything fits where no type is named, and a text is what models send most
    if "string" in kinds or not kinds:
        shortest = schema.get("minLength")
        if not isinstance(shortest, int):
            return "example"
        return "example".ljust(shortest, "x")
    if "integer" in kinds:
        return int(number)
    if "number" in kinds:
        return number
    if "boolean" in kinds:
        return True
    if "array" in kinds:
        items, fewest = schema.get("items"), schema.get("minItems")
        if isinstance(items, Mapping) and depth < DEEPEST:
            item = _example(items, root, depth + 1)
        else:
            item = "example"
        return [item] * (fewest if isinstance(fewest, int) else 1)
    if "object" in kinds:
        return {}
    return None
