"""The JSON Schema of mount plans, for editors and for whoever checks a plan in another language.

It accepts what a session accepts, but for one thing that JSON Schema cannot say: a list may name a module
twice only with different `instance_id`s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from amplifier.kernel.plans.keys import (
    ENTRY_KEYS,
    PLAN_KEYS,
    SESSION_KEYS,
    SINGLE_KEYS,
    Keys,
    Shape,
)
from amplifier_sdk.hookspecs import KINDS, ModuleKind
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.limits import Limits

__all__ = ["plan_schema"]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_SHAPES: Final[Mapping[Shape, JSONObject]] = {
    "name": {"type": "string", "minLength": 1},
    "anything": {},
    "mapping": {"type": ["object", "null"]},
    "count": {"type": ["integer", "null"], "minimum": 0},
    "flag": {"type": ["boolean", "null"]},
    "limits": {"$ref": "#/$defs/limits"},
    "session": {"$ref": "#/$defs/session"},
    "system": {
        "type": ["object", "null"],
        "properties": {"instruction": {"type": ["string", "null"]}},
        "additionalProperties": False,
    },
}


def plan_schema(kinds: Sequence[ModuleKind] = KINDS) -> JSONObject:
    """Return the JSON Schema (2020-12) of the mount plans that have the sections of some module types."""
    singles = [kind for kind in kinds if kind.single]
    sections: JSONObject = {kind.section: _section(kind) for kind in kinds}
    return {
        "$schema": DIALECT,
        "title": "Amplifier mount plan",
        "description": "What a session is made of: its modules, their configuration, and its limits.",
        "type": "object",
        "required": ["session"],
        "additionalProperties": False,
        "properties": {**_properties(PLAN_KEYS), **sections},
        "$defs": {
            "module": _module("a module's id, or a mapping", ENTRY_KEYS),
            "single": _module("a module's id, or a mapping", SINGLE_KEYS),
            "session": _session(singles),
            "limits": _limits(),
        },
    }


def _section(kind: ModuleKind) -> JSONObject:
    if kind.single:
        config = _described(
            "mapping", f"the configuration of the session's {kind.name}"
        )
        return {
            "description": f"what the session's {kind.name} is given",
            "type": ["object", "null"],
            "properties": {"config": config},
            "additionalProperties": False,
        }
    return {
        "description": f"the session's {kind.section}, in the order in which they are mounted",
        "type": ["array", "null"],
        "items": {"$ref": "#/$defs/module"},
    }


def _session(singles: Sequence[ModuleKind]) -> JSONObject:
    modules: JSONObject = {}
    for kind in singles:
        modules[kind.section] = {
            "description": f"the session's {kind.name} module",
            "$ref": "#/$defs/single",
        }
        modules[f"{kind.section}_source"] = {
            "description": f"where the {kind.name} module comes from"
        }
    return {
        "type": "object",
        "required": [kind.section for kind in singles],
        "properties": {**modules, **_properties(SESSION_KEYS)},
        "additionalProperties": False,
    }


def _module(says: str, keys: Keys) -> JSONObject:
    mapping: JSONObject = {
        "type": "object",
        "required": ["module"],
        "properties": _properties(keys, required=("module",)),
        "additionalProperties": False,
    }
    return {"description": says, "anyOf": [_SHAPES["name"], mapping]}


def _properties(keys: Keys, required: Sequence[str] = ()) -> JSONObject:
    properties: JSONObject = {}
    for name, (shape, says) in keys.items():
        is_optional_name = shape == "name" and name not in required
        nullable: JSONObject
        if is_optional_name:
            nullable = {"type": ["string", "null"]}
        else:
            nullable = {}
        properties[name] = {**_described(shape, says), **nullable}
    return properties


def _described(shape: Shape, says: str) -> JSONObject:
    return {"description": says, **_SHAPES[shape]}


def _limits() -> JSONObject:
    properties: JSONObject = {
        field.name: _limit(field.name, field.default) for field in attrs.fields(Limits)
    }
    return {
        "type": ["object", "null"],
        "properties": properties,
        "additionalProperties": False,
    }


def _limit(name: str, default: JSONValue) -> JSONObject:
    """Describe one limit by what it accepts."""
    # asked of the class itself, so that the schema cannot differ from it
    if not _accepts(name, 0.5):
        minimum = 1
        if _accepts(name, 0):
            minimum = 0
        number: JSONObject = {"type": "integer", "minimum": minimum}
    else:
        number = {"type": "number", "exclusiveMinimum": 0}
    choices: list[JSONValue] = [number]
    if _accepts(name, "0.5"):
        choices.append({"type": "string", "pattern": r"^(?=.*[1-9])[0-9]+(\.[0-9]+)?$"})
    if _accepts(name, None):
        choices.append({"type": "null"})
    shape: JSONObject
    if len(choices) == 1:
        shape = number
    else:
        shape = {"anyOf": choices}
    return {**shape, "default": default}


def _accepts(name: str, value: object) -> bool:
    try:
        Limits(**{name: value})  # type: ignore[arg-type]  # whether it fits is the question
    except (TypeError, ValueError):
        return False
    return True
