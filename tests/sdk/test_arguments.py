"""A model's argument text is read strictly, repaired when it has one reading, and else explained."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import jsonschema_rs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from amplifier_sdk._reader.json_text import MAX_DEPTH
from amplifier_sdk.arguments import Arguments, ArgumentSchema, read_arguments
from amplifier_sdk.events import TOOL_PRE
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.sdk.json_samples import REFUSED, REPAIRED, VALID
from tests.timing import takes_at_most

TEXT: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
    ),
    max_leaves=12,
)
OBJECTS: Final = st.dictionaries(TEXT, JSON, max_size=5)


def shown(text: str) -> str:
    return ascii(text[:30])


@pytest.mark.parametrize(
    ("text", "values"), VALID, ids=lambda v: shown(v) if isinstance(v, str) else ""
)
def test_json_objects_are_read_as_they_are(text: str, values: JSONObject) -> None:
    assert read_arguments(text) == Arguments(values=values)
    assert read_arguments(text.encode()) == Arguments(values=values)


@pytest.mark.parametrize(
    ("text", "values"), REPAIRED, ids=lambda v: shown(v) if isinstance(v, str) else ""
)
def test_text_with_one_reading_is_repaired_and_says_so(
    text: str, values: JSONObject
) -> None:
    assert read_arguments(text) == Arguments(values=values, repaired=True)


@pytest.mark.parametrize(
    ("text", "detail"), REFUSED, ids=lambda v: shown(v) if isinstance(v, str) else ""
)
def test_text_without_one_reading_is_explained(text: str, detail: str) -> None:
    read = read_arguments(text)

    assert read.problem is not None
    assert detail in read.problem
    assert read.problem.startswith("The arguments could not be read: ")
    assert read.problem.endswith(". Send one JSON object.")
    assert len(read.problem) < 400
    assert read.values == {}
    assert not read.repaired


@pytest.mark.parametrize("nothing", ["", b"", {}])
def test_exactly_nothing_is_an_empty_object(nothing: str | bytes | JSONObject) -> None:
    assert read_arguments(nothing) == Arguments(values={})


def test_bytes_that_are_not_utf8_are_explained() -> None:
    assert read_arguments(b'{"a":"\xff"}').problem == (
        "The arguments could not be read: byte 6 is not UTF-8. Send one JSON object."
    )


def test_an_object_is_copied_as_plain_json() -> None:
    inner = {"b": (1, 2.5, None, True), "c": TOOL_PRE}
    read = read_arguments(
        MappingProxyType({"a": MappingProxyType(inner), "n": _Number.ONE})
    )

    assert read == Arguments(
        values={"a": {"b": [1, 2.5, None, True], "c": "tool:pre"}, "n": 1}
    )
    assert type(read.values["n"]) is int
    assert type(read.values["a"]["c"]) is str  # type: ignore[index, call-overload]  # an object, as just compared


class _Number(enum.IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        ({"a": [float("nan")]}, "a[0] is nan, and JSON's numbers are finite"),
        ({"a": {1: 2}}, "a has the key 1, and JSON's keys are strings"),
        ({"a": b"x"}, "a is a Python bytes (b'x'), which JSON cannot hold"),
        (
            {"a": "\ud800"},
            "a holds half of a surrogate pair, \\ud800; write the character whole",
        ),
    ],
)
def test_an_object_that_is_not_json_is_explained(
    value: Mapping[str, JSONValue], detail: str
) -> None:
    assert read_arguments(value) == Arguments(
        problem=f"The arguments could not be read: {detail}. Send one JSON object."
    )


def test_an_object_that_nests_too_deep_is_explained() -> None:
    value: JSONObject = {}
    for _ in range(MAX_DEPTH + 1):
        value = {"a": value}

    assert "nest more than 128 deep" in str(read_arguments(value).problem)


def test_nesting_up_to_the_limit_is_read() -> None:
    text = '{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH

    assert read_arguments(text).problem is None


def test_breadth_has_no_limit() -> None:
    wide: JSONObject = {
        "rows": [{"cells": [[], {}, i]} for i in range(200)],
        "text": "[{" * 200,
    }

    assert read_arguments(json.dumps(wide)) == Arguments(values=wide)
    assert read_arguments(json.dumps(json.dumps(wide))) == Arguments(
        values=wide, repaired=True
    )
    assert "expected an object, got a string" in str(
        read_arguments(json.dumps("[" * 200)).problem
    )


@given(OBJECTS)
def test_every_json_object_reads_as_itself(value: JSONObject) -> None:
    assert read_arguments(json.dumps(value)) == Arguments(values=value)
    assert read_arguments(json.dumps(value, ensure_ascii=False)) == Arguments(
        values=value
    )
    assert read_arguments(value) == Arguments(values=value)


@given(OBJECTS)
def test_an_object_encoded_twice_reads_as_itself(value: JSONObject) -> None:
    assert read_arguments(json.dumps(json.dumps(value))) == Arguments(
        values=value, repaired=True
    )


@given(OBJECTS)
def test_a_fenced_object_reads_as_itself(value: JSONObject) -> None:
    text = f"```json\n{json.dumps(value, indent=2)}\n```"

    assert read_arguments(text) == Arguments(values=value, repaired=True)


@given(OBJECTS.filter(bool), st.data())
def test_a_cut_object_is_never_read(value: JSONObject, data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]

    read = read_arguments(cut)

    assert "was cut off" in str(read.problem)
    assert read.values == {}


PYTHON_TEXT: Final = st.text(st.sampled_from("ab'\"\\ {}[],:\né"), max_size=8)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | PYTHON_TEXT,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(PYTHON_TEXT, inner, max_size=3)
        ),
        max_leaves=8,
    ).filter(lambda value: isinstance(value, dict))
)
@example({"a": "it's"})
@example({"'": '"'})
@example({"a": "True, None"})
def test_object_in_pythons_spelling_reads_as_itself_or_not(
    value: JSONObject,
) -> None:
    read = read_arguments(repr(value))

    assert read.problem is None
    assert read.values == value


@given(
    st.text(st.sampled_from("{}[]\"':,\\ abTrueNone`\n1.e-\ufeff\ud800"), max_size=40)
    | st.text()
    | st.binary()
)
def test_any_text_reads_as_an_object_or_a_problem(text: str | bytes) -> None:
    read = read_arguments(text)

    assert (read.problem is None) or (read.values == {} and not read.repaired)
    json.dumps(read.values, allow_nan=False, ensure_ascii=False).encode()


@pytest.mark.figures
@pytest.mark.parametrize(
    "text",
    [
        '{"a":"' + "x" * 9_000_000 + '"}',
        '{"a":"' + "é" * 4_000_000 + '"}',
        '{"a":"' + '\\"' * 4_000_000,
        "{" + "'a':1," * 1_000_000,
        "```" + "\n" * 5_000_000 + "x",
        '"' * 60_000,
        "'" + '\\"' * 30_000,
        '{"a":' + " " * 60_000 + ",",
        "a" * 60_000 + " " * 3_000,
    ],
    ids=shown,
)
def test_a_long_text_takes_time_in_proportion(text: str) -> None:
    assert takes_at_most(3, lambda: read_arguments(text))


SCHEMA: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^[a-z]"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 2},
        "ratio": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2, "uniqueItems": True},
        "mode": {"enum": ["read", "write"]},
        "fixed": {"const": {"a": 1}},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "place": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]},
        "shape": {"oneOf": [{"$ref": "#/$defs/Circle"}, {"$ref": "#/$defs/Square"}]},
        "pair": {"type": "array", "prefixItems": [{"type": "integer"}], "items": False},
        "extra": {"type": "object", "minProperties": 1, "maxProperties": 1, "propertyNames": {"pattern": "^x"}},
        "never": {"not": {}},
        "either": {"type": ["string", "integer"]},
        "open": {"unevaluatedProperties": False, "allOf": [{"properties": {"known": {}}}]},
    },
    "required": ["path"],
    "additionalProperties": False,
    "$defs": {
        "Place": {
            "type": "object",
            "properties": {"x": {"type": "integer"}, "inner": {"$ref": "#/$defs/Place"}},
            "required": ["x"],
            "additionalProperties": False,
        },
        "Circle": {"type": "object", "properties": {"radius": {"type": "number"}}, "required": ["radius"]},
        "Square": {"type": "object", "properties": {"side": {"type": "number"}}, "required": ["side"]},
    },
}  # fmt: skip


def problems_of(arguments: JSONObject) -> list[str]:
    text = ArgumentSchema(SCHEMA, "read_file").problem({"path": "a", **arguments})
    assert text is not None
    first, *lines = text.splitlines()
    assert first == "The arguments of 'read_file' do not fit its schema:"
    return [line.removeprefix("- ") for line in lines]


def test_arguments_that_fit_are_no_problem() -> None:
    schema = ArgumentSchema(SCHEMA, "read_file")

    assert (
        schema.problem({"path": "a", "limit": 2, "place": {"x": 1, "inner": {"x": 2}}})
        is None
    )
    assert schema.problem({"path": "b"}) is None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"path": 3}, "path: expected a string, got an integer (3)"),
        (
            {"path": ""},
            (
                'path: expected at least 1 character, got a string ("")\n'
                'path: expected text that matches the pattern ^[a-z], got a string ("")'
            ),
        ),
        (
            {"path": "abcdef"},
            'path: expected at most 5 characters, got a string ("abcdef")',
        ),
        (
            {"path": "A"},
            'path: expected text that matches the pattern ^[a-z], got a string ("A")',
        ),
        ({"limit": "2"}, 'limit: expected an integer, got a string ("2")'),
        ({"limit": True}, "limit: expected an integer, got a boolean (true)"),
        ({"limit": 0}, "limit: expected at least 1, got an integer (0)"),
        ({"limit": 10}, "limit: expected at most 9, got an integer (10)"),
        ({"limit": 3}, "limit: expected a multiple of 2, got an integer (3)"),
        ({"ratio": 0}, "ratio: expected more than 0, got an integer (0)"),
        ({"ratio": 1}, "ratio: expected less than 1, got an integer (1)"),
        ({"tags": "a"}, 'tags: expected an array, got a string ("a")'),
        ({"tags": []}, "tags: expected at least 1 item, got an array with 0 items"),
        (
            {"tags": ["a", "b", "c"]},
            "tags: expected at most 2 items, got an array with 3 items",
        ),
        (
            {"tags": ["a", "a"]},
            "tags: expected items that all differ, got an array with 2 items",
        ),
        ({"tags": ["a", 1]}, "tags[1]: expected a string, got an integer (1)"),
        ({"mode": "reed"}, 'mode: expected "read" or "write", got a string ("reed")'),
        ({"fixed": 1}, 'fixed: expected {"a": 1}, got an integer (1)'),
        ({"maybe": "x"}, 'maybe: expected an integer or null, got a string ("x")'),
        ({"either": None}, "either: expected an integer or a string, got null"),
        ({"place": 3}, "place: expected an object or null, got an integer (3)"),
        ({"place": {"x": "1"}}, 'place.x: expected an integer, got a string ("1")'),
        ({"place": {}}, "place.x: missing; expected an integer"),
        (
            {"place": {"x": 1, "inner": {"x": 1, "y": 2}}},
            "place.inner.y: unknown; the known keys are inner, x",
        ),
        ({"shape": {}}, "shape: expected one of 2 forms, got an object with 0 keys"),
        (
            {"shape": {"radius": 1, "side": 1}},
            "shape: expected one of 2 forms, got an object with 2 keys",
        ),
        (
            {"shape": {"radius": "x"}},
            'shape.radius: expected a number, got a string ("x")',
        ),
        ({"pair": [1, 2]}, "pair[1]: expected nothing here, got an integer (2)"),
        ({"extra": {}}, "extra: expected at least 1 key, got an object with 0 keys"),
        (
            {"extra": {"x": 1, "xx": 2}},
            "extra: expected at most 1 key, got an object with 2 keys",
        ),
        (
            {"extra": {"y": 1}},
            "extra: expected a value that satisfies 'propertyNames', got an object with 1 key",
        ),
        (
            {"never": 1},
            "never: expected a value that satisfies 'not', got an integer (1)",
        ),
        ({"open": {"knwn": 1}}, "open.knwn: unknown; no keys are expected here"),
        ({"limt": 3}, "limt: unknown; did you mean 'limit'?"),
    ],
    ids=str,
)
def test_misfit_names_place_expectation_and_value(
    arguments: JSONObject, problem: str
) -> None:
    assert problems_of(arguments) == problem.splitlines()


def test_a_missing_argument_is_named() -> None:
    assert ArgumentSchema(SCHEMA, "read_file").problem({}) == (
        "The arguments of 'read_file' do not fit its schema:\n- path: missing; expected a string"
    )


def test_a_missing_argument_of_an_open_type_is_named() -> None:
    schema = ArgumentSchema({"required": ["a", "b"], "properties": {"a": {}}}, "t")

    assert str(schema.problem({})).splitlines()[1:] == ["- a: missing", "- b: missing"]


def test_arguments_as_a_whole_may_be_wrong() -> None:
    schema = ArgumentSchema({"minProperties": 1}, "t")

    assert schema.problem({}) == (
        "The arguments of 't' do not fit its schema:\n"
        "- the arguments: expected at least 1 key, got an object with 0 keys"
    )


def test_a_place_inside_an_allof_is_found() -> None:
    schema = ArgumentSchema(
        {"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}]}, "t"
    )

    assert str(schema.problem({})).endswith("- a: missing; expected a string")


NAMED: Final[JSONObject] = {"properties": {"name": {}}, "required": ["name"]}


@pytest.mark.parametrize(
    "part",
    [
        {**NAMED, "additionalProperties": False},
        {"allOf": [{}, {**NAMED, "additionalProperties": False}]},
    ],
    ids=["keyword", "path"],
)
def test_part_with_own_address_gets_no_hints_of_another(part: JSONObject) -> None:
    schema = ArgumentSchema(
        {
            "allOf": [{"properties": {"names": {"$ref": "https://a.example/b"}}}],
            "$defs": {"b": {"$id": "https://a.example/b", **part}},
        },
        "t",
    )

    assert schema.problem({"names": {"nam": 1}}) == (
        "The arguments of 't' do not fit its schema:\n"
        "- names.nam: unknown\n"
        "- names.name: missing"
    )


def test_all_problems_are_told_at_once_up_to_five() -> None:
    assert problems_of({"path": 3, "limit": "x", "limt": 1}) == [
        "path: expected a string, got an integer (3)",
        'limit: expected an integer, got a string ("x")',
        "limt: unknown; did you mean 'limit'?",
    ]
    many = problems_of({f"unknown{i}": i for i in range(50)})
    assert len(many) == 6
    assert many[-1] == "… and more"
    assert len(problems_of({"tags": list(range(100))})) == 6


def test_one_problem_is_told_once() -> None:
    schema = ArgumentSchema({"allOf": [{"required": ["a"]}, {"required": ["a"]}]}, "t")

    assert str(schema.problem({})).splitlines()[1:] == ["- a: missing"]


def test_kinds_of_str_and_mappings_checked_as_what_they_hold() -> None:
    schema = ArgumentSchema(
        {"properties": {"a": {"type": "string", "maxLength": 3}}}, "t"
    )

    assert schema.problem(MappingProxyType({"a": "abc"})) is None
    assert "at most 3 characters" in str(schema.problem({"a": TOOL_PRE}))


def test_values_that_are_not_json_are_named() -> None:
    schema = ArgumentSchema({"properties": {"a": {"type": "string"}}}, "t")

    assert schema.problem({"a": b"x"}) == (
        "The arguments of 't' are not JSON: a is a Python bytes (b'x'), which JSON cannot hold."
    )
    assert "half of a surrogate pair" in str(schema.problem({"\ud800": 1}))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "strng"}, "'t' is not valid JSON Schema: \"strng\" is not"),
        ({"$ref": "#/$defs/Missing"}, "'/\\$defs/Missing' does not exist"),
        ({"$ref": "http://example.com/schema.json"}, "Retrieval is"),
        ({"$ref": "file:///etc/hostname"}, "Retrieval is"),
        ({"properties": {"a": {"pattern": "["}}}, "is not a"),
        ({"default": float("nan")}, "default is nan, and JSON's numbers are finite"),
    ],
    ids=str,
)
def test_schema_that_cannot_be_used_is_error_that_names_tool(
    schema: JSONObject, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        ArgumentSchema(schema, "t").problem({})

    assert str(caught.value).startswith(
        "The schema of tool 't' is not valid JSON Schema: "
    )


def test_a_schema_of_an_older_draft_is_read_as_such() -> None:
    schema: JSONObject = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"items": [{"type": "string"}]}},
    }

    assert "a[0]: expected a string" in str(
        ArgumentSchema(schema, "t").problem({"a": [1]})
    )


def test_schema_may_refer_to_document_that_validator_knows() -> None:
    schema = ArgumentSchema(
        {"$ref": "https://json-schema.org/draft/2020-12/schema"}, "t"
    )

    assert schema.problem({"type": "string"}) is None
    assert "type: expected" in str(schema.problem({"type": 3}))
    assert "required" in str(schema.problem({"required": 3}))


def test_a_schema_is_compiled_once() -> None:
    schema = ArgumentSchema(MappingProxyType(SCHEMA), "t")

    assert schema.compile() is schema.compile()
    assert isinstance(schema.compile(), jsonschema_rs.Draft202012Validator)


@given(
    st.dictionaries(st.sampled_from([*SCHEMA["properties"], "limt"]), JSON, max_size=4)  # type: ignore[misc]  # an object
)
def test_the_wording_covers_whatever_a_model_sends(arguments: JSONObject) -> None:
    valid = jsonschema_rs.validator_for(SCHEMA, offline=True).is_valid(arguments)

    problem = ArgumentSchema(SCHEMA, "t").problem(arguments)

    assert (problem is None) is valid
    assert problem is None or len(problem) < 2500


def doubling(name: str, reference: str, root: JSONObject | None = None) -> JSONObject:
    """A schema of forty levels, each of which says twice the next; `name` is the keyword by which one says its own."""
    levels = 40
    parts: dict[str, JSONValue] = {
        f"d/{level}": {
            **({name: f"d{level}"} if name else {}),
            "allOf": [{"$ref": reference.format(level + 1)}] * 2,
        }
        for level in range(levels)
    }
    last: JSONValue = {"type": "object", **({name: f"d{levels}"} if name else {})}
    return {
        **(root or {}),
        "$defs": {**parts, f"d/{levels}": last},
        "$ref": reference.format(0),
    }


def test_forty_levels_of_references_are_refused() -> None:
    schemas: tuple[JSONObject, ...] = (
        doubling("", "#/$defs/d~1{}"),
        doubling("", "#/%24defs/d~1{}"),
        doubling("$anchor", "#d{}"),
        doubling("$dynamicAnchor", "#d{}"),
        doubling("$id", "d{}"),
        doubling("$id", "http://x.example/d{}", {"$id": "http://x.example/top"}),
        doubling("id", "d{}", {"$schema": "http://json-schema.org/draft-04/schema#"}),
        {"items": doubling("", "#/items/$defs/d~1{}")},
        {"allOf": [True, {"not": doubling("", "#/allOf/1/not/$defs/d~1{}")}]},
        {"properties": {"const": doubling("", "#/properties/const/$defs/d~1{}")}},
    )
    for schema in schemas:
        with pytest.raises(
            ValueError,
            match="its references make it a schema of more than 1,000,000 schemas",
        ):
            ArgumentSchema(schema, "t").compile()


def test_kinds_that_hold_each_other_are_as_large_as_they_are() -> None:
    kinds = [f"Kind{number}" for number in range(30)]
    any_kind: JSONObject = {"anyOf": [{"$ref": f"#/$defs/{kind}"} for kind in kinds]}
    parts: JSONObject = {
        kind: {
            "properties": {
                "kind": {"const": kind},
                "left": any_kind,
                "right": any_kind,
            },
            "required": ["kind"],
        }
        for kind in kinds
    }
    schema = ArgumentSchema(
        {"$defs": parts, "properties": {"tree": any_kind, "other": any_kind}}, "t"
    )

    assert (
        schema.problem({"tree": {"kind": "Kind7", "left": {"kind": "Kind29"}}}) is None
    )
    assert (
        schema.problem({"tree": {"kind": "Kind7", "left": {"kind": "Kind30"}}})
        is not None
    )


def test_references_that_lead_on_and_on_are_refused() -> None:
    parts: dict[str, JSONValue] = {
        str(level): {"not": {"$ref": f"#/$defs/{level + 1}"}} for level in range(5000)
    }

    with pytest.raises(ValueError, match="its references lead on and on"):
        ArgumentSchema(
            {"$defs": {**parts, "5000": True}, "$ref": "#/$defs/0"}, "t"
        ).compile()


def test_references_are_shared_as_people_share_them() -> None:
    address: JSONObject = {
        "type": "object",
        "properties": {"street": {"type": "string"}},
    }
    schema: JSONObject = {
        "$defs": {
            "address": address,
            "node": {"properties": {"children": {"items": {"$ref": "#/$defs/node"}}}},
        },
        "properties": {
            **{f"p{number}": {"$ref": "#/$defs/address"} for number in range(100)},
            "tree": {
                "anyOf": [
                    {"$ref": "#/$defs/node"},
                    {"$dynamicRef": "#/$defs/node"},
                    True,
                ]
            },
            "told": {
                "const": {"$ref": "#/nowhere"},
                "x-notes": [{"$ref": "#/allOf/7"}, {"$ref": "#/title/x"}],
            },
        },
        "allOf": [{"$ref": "#/allOf/1"}, {"maxProperties": 9}],
        "title": "t",
    }

    assert ArgumentSchema(schema, "t").problem({"p1": {"street": "x"}}) is None
    assert "street" in str(ArgumentSchema(schema, "t").problem({"p99": {"street": 1}}))
    assert "9" in str(
        ArgumentSchema(schema, "t").problem(dict.fromkeys(map(str, range(10))))
    )


@pytest.mark.figures
def test_a_hostile_pattern_ends_in_time() -> None:
    schema = ArgumentSchema({"properties": {"a": {"pattern": "^(a+)+$(?!x)"}}}, "t")
    arguments: JSONObject = {"a": "a" * 5000 + "b"}

    assert schema.problem(arguments) is not None
    assert takes_at_most(3, lambda: schema.problem(arguments))
