"""A tool's schema, cut down to what a small model can fill.

Only required parameters are asked for; of a tool without any, the first one may be given. References are
replaced by what they refer to, of alternatives the first that is not null is taken, and every text, list and
object has a small limit, so that an answer cannot run on. What this leaves is a schema whose values the tool's
own schema accepts wherever it can be said in these terms; the rest is found when the arguments are checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["is_path", "required_parameters", "sketch"]

_LONGEST_TEXT: Final = 100
_LONGEST_LIST: Final = 4
_DEPTH: Final = 5  # references followed one inside another: only they can go on for ever
_STEPS: Final = 10  # references and alternatives from one place to a schema that says something
_KEPT: Final = ("enum", "const", "minimum", "maximum", "minLength", "minItems")
_PATH_WORDS: Final = ("path", "file", "dir", "folder")


def is_path(name: str) -> bool:
    """Tell whether a parameter's name says that it takes a path."""
    return any(word in name.lower() for word in _PATH_WORDS)


def required_parameters(schema: Mapping[str, JSONValue]) -> list[tuple[str, Mapping[str, JSONValue]]]:
    """Return the parameters that the model is asked for, each with its cut-down schema."""
    properties = sketch(schema)["properties"]
    assert isinstance(properties, Mapping)
    return [(name, value) for name, value in properties.items() if isinstance(value, Mapping)]


def sketch(schema: Mapping[str, JSONValue]) -> JSONObject:
    """Return the cut-down schema of a tool's arguments, an object schema."""
    return _object(schema, schema, _DEPTH)


def _object(schema: Mapping[str, JSONValue], root: Mapping[str, JSONValue], depth: int) -> JSONObject:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {"type": "object", "properties": {}, "additionalProperties": False}
    required = schema.get("required")
    listed = required if isinstance(required, Sequence) else ()
    names = [name for name in listed if isinstance(name, str) and name in properties]
    return {
        "type": "object",
        "properties": {name: _value(properties[name], root, depth) for name in names or list(properties)[:1]},
        "required": names,
        "additionalProperties": False,
    }


def _value(schema: JSONValue, root: Mapping[str, JSONValue], depth: int) -> JSONObject:
    schema, followed = _resolved(schema, root)
    depth -= followed
    if depth <= 0 or not schema:
        return {"type": "string", "maxLength": _LONGEST_TEXT}
    kept: JSONObject = {name: schema[name] for name in _KEPT if name in schema}
    match _type(schema):
        case "object":
            return _object(schema, root, depth)
        case "array":
            most = _smaller(schema.get("maxItems"), _LONGEST_LIST)
            return {"type": "array", "items": _value(schema.get("items"), root, depth), "maxItems": most, **kept}
        case "string":
            return {"type": "string", "maxLength": _smaller(schema.get("maxLength"), _LONGEST_TEXT), **kept}
        case None:
            return kept
        case kind:
            return {"type": kind, **kept}


def _type(schema: Mapping[str, JSONValue]) -> str | None:
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind
    if isinstance(kind, Sequence):
        return next((name for name in kind if isinstance(name, str) and name != "null"), "null")
    if "enum" in schema or "const" in schema:
        return None
    return "object" if "properties" in schema else "array" if "items" in schema else "string"


def _resolved(schema: JSONValue, root: Mapping[str, JSONValue]) -> tuple[Mapping[str, JSONValue], int]:
    """Follow references and take one of the alternatives, a few steps at most; count the references."""
    followed = 0
    for _ in range(_STEPS):
        if not isinstance(schema, Mapping):
            return {}, followed
        if isinstance(reference := schema.get("$ref"), str):
            schema = _referred(reference, root)
            followed += 1
            continue
        alternatives = next((v for key in ("anyOf", "oneOf", "allOf") if isinstance(v := schema.get(key), list)), None)
        if not alternatives:
            return schema, followed
        schema = next((each for each in alternatives if not _is_null(each)), alternatives[0])
    return {}, followed


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


def _smaller(given: JSONValue, limit: int) -> int:
    return min(given, limit) if isinstance(given, int) else limit
