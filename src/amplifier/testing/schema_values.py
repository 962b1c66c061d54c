"""Values that fit a JSON Schema, the same ones for the same seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final, cast

from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["make_value"]

_FORMATS: Final[Mapping[str, str]] = {
    "date": "2024-05-17",
    "date-time": "2024-05-17T12:30:00Z",
    "duration": "PT1H",
    "email": "ada@example.org",
    "time": "12:30:00Z",
    "uri": "https://example.org/a",
    "uuid": "7f9c24e8-3b12-4fef-91e0-56a2d5a1c9b3",
}
_WORDS: Final = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove")
_MAX_DEPTH: Final = 8
"""How deep optional parts of a schema that refers to itself are made."""


def make_value(schema: Mapping[str, JSONValue], *, seed: int = 0) -> JSONValue:
    """Make a value that fits a schema.

    Args:
        schema: a JSON Schema; references lead within it.
        seed: another seed gives another value.

    Raises:
        ValueError: a part of the schema that nothing can be made of, such as a `pattern`; names its path.
    """
    random = Random(seed)  # noqa: S311  # nothing is secret with it
    return _Maker(schema, random).value(schema, "", 0)


class _Maker:
    def __init__(self, root: Mapping[str, JSONValue], random: Random) -> None:
        self.root = root
        self.random = random

    def value(self, given: JSONValue, path: str, depth: int) -> JSONValue:
        schema = self._resolved(given, path)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.random.choice(cast("Sequence[JSONValue]", schema["enum"]))
        for key in ("anyOf", "oneOf"):
            choices = schema.get(key)
            if isinstance(choices, list):
                rest = {name: part for name, part in schema.items() if name != key}
                return self.value(self._chosen(choices, rest, depth), path, depth)
        return self._make(schema, path, depth)

    def _resolved(self, given: JSONValue, path: str) -> JSONObject:
        """Return a schema with what it refers to, and all that must hold at once, in it."""
        if not isinstance(given, Mapping):
            if given is False:
                raise ValueError(f"Nothing fits the schema at {path or 'the root'}")
            return {}
        schema: JSONObject = {**given}
        parts = schema.pop("allOf", None)
        reference = schema.pop("$ref", None)
        if isinstance(reference, str):
            schema = {**self._resolved(self._target(reference), path), **schema}
        for part in parts if isinstance(parts, list) else ():
            schema = _both(schema, self._resolved(part, path))
        return schema

    def _target(self, reference: str) -> JSONValue:
        found: JSONValue = cast("JSONValue", self.root)
        for part in reference.removeprefix("#").split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            found = cast("JSONObject", found)[name]
        return found

    def _chosen(
        self, choices: list[JSONValue], rest: JSONObject, depth: int
    ) -> JSONObject:
        made = [_both(self._resolved(choice, ""), rest) for choice in choices]
        # what refers to itself ends only where its optional parts are left out
        if depth >= _MAX_DEPTH:
            return min(made, key=lambda schema: len(schema.get("properties") or ()))  # type: ignore[arg-type]  # a mapping
        return self.random.choice(made)

    def _make(self, schema: JSONObject, path: str, depth: int) -> JSONValue:
        kinds = schema.get("type")
        if isinstance(kinds, list):
            kind = self.random.choice(kinds)
        else:
            kind = kinds or ("object" if "properties" in schema else "string")
        makers: Mapping[JSONValue, Callable[[JSONObject, str, int], JSONValue]] = {
            "array": self._array,
            "boolean": lambda *_: self.random.random() < 0.5,
            "integer": self._integer,
            "null": lambda *_: None,
            "number": self._number,
            "object": self._object,
            "string": self._string,
        }
        return makers[cast("str", kind)](schema, path, depth)

    def _object(self, schema: JSONObject, path: str, depth: int) -> JSONValue:
        properties = cast("JSONObject", schema.get("properties") or {})
        required = cast("list[str]", schema.get("required") or [])
        names = [*properties] if depth < _MAX_DEPTH else required
        return {
            name: self.value(properties.get(name, {}), f"{path}.{name}", depth + 1)
            for name in dict.fromkeys([*names, *required])
        }

    def _array(self, schema: JSONObject, path: str, depth: int) -> JSONValue:
        first = cast("list[JSONValue]", schema.get("prefixItems") or [])
        minimum = cast("int", schema.get("minItems", 0 if depth >= _MAX_DEPTH else 1))
        maximum = cast("int", schema.get("maxItems", max(minimum, 2)))
        if depth >= _MAX_DEPTH:
            maximum = minimum
        count = self.random.randint(min(minimum, maximum), maximum)
        is_set = schema.get("uniqueItems") is True
        items: list[JSONValue] = []
        # a set of few possible values may never be as large as the schema wants it
        for index in range(100):
            if len(items) >= max(count, len(first)):
                break
            part = first[len(items)] if len(items) < len(first) else schema.get("items")
            item = self.value(part or {}, f"{path}[{index}]", depth + 1)
            if not is_set or item not in items:
                items.append(item)
        return items

    def _integer(self, schema: JSONObject, path: str, depth: int) -> JSONValue:
        step = schema.get("multipleOf")
        low, high = _bounds(schema, 1)
        if isinstance(step, int):
            first = -(-low // step)
            return int(step * self.random.randint(int(first), int(high // step)))
        return self.random.randint(int(-(-low // 1)), int(high // 1))

    def _number(self, schema: JSONObject, path: str, depth: int) -> JSONValue:
        if "multipleOf" in schema:
            raise ValueError(f"No number is made of 'multipleOf' (at {path})")
        low, high = _bounds(schema, 0.5)
        return round(self.random.uniform(low, high), 2) if high - low > 1 else low

    def _string(self, schema: JSONObject, path: str, depth: int) -> JSONValue:
        if "pattern" in schema:
            raise ValueError(
                f"No text is made of a 'pattern' (at {path or 'the root'}); give the values yourself"
            )
        form = _FORMATS.get(str(schema.get("format")))
        if form is not None:
            return form
        minimum = cast("int", schema.get("minLength", 1))
        maximum = cast("int", schema.get("maxLength", max(minimum, 40)))
        text = self.random.choice(_WORDS)
        return (text * (minimum // len(text) + 1) if len(text) < minimum else text)[
            :maximum
        ]


def _bounds(schema: JSONObject, step: float) -> tuple[float, float]:
    """Return the least and the greatest number that a schema takes."""
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if low is None and above is not None:
        low = cast("float", above) + step
    if high is None and below is not None:
        high = cast("float", below) - step
    if low is None:
        low = 0.0 if high is None else cast("float", high) - 10
    if high is None:
        high = cast("float", low) + 10
    return cast("float", low), cast("float", high)


def _both(one: JSONObject, other: JSONObject) -> JSONObject:
    """Return the schema of what fits two of them, as far as they speak of different things or of properties."""
    made: JSONObject = {**one, **other}
    for key in ("properties",):
        if key in one and key in other:
            made[key] = {
                **cast("JSONObject", one[key]),
                **cast("JSONObject", other[key]),
            }
    if "required" in one and "required" in other:
        made["required"] = [
            *cast("list[JSONValue]", one["required"]),
            *cast("list[JSONValue]", other["required"]),
        ]
    return made
