"""What the model is asked to fill, and the examples made of it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_module_provider_local.examples import argument_examples, name_examples
from amplifier_module_provider_local.schema import sketch
from amplifier_sdk.chat import ToolSpec
from amplifier_sdk.jsontypes import JSONObject, JSONValue

NAMES = st.sampled_from(["path", "output_dir", "query", "count", "a", "b"])
LEAVES: st.SearchStrategy[JSONObject] = st.one_of(
    st.sampled_from(["string", "integer", "number", "boolean", "null"]).map(
        lambda kind: {"type": kind}
    ),
    st.lists(st.sampled_from(["x", "y", 3, None]), min_size=1, unique=True).map(
        lambda choices: {"enum": choices}
    ),
    st.sampled_from(
        [{"const": "fixed"}, {"type": ["string", "null"]}, {"$ref": "#/$defs/Word"}, {}]
    ),
)


def objects(values: st.SearchStrategy[JSONObject]) -> st.SearchStrategy[JSONObject]:
    return st.dictionaries(NAMES, values, max_size=3).flatmap(
        lambda properties: st.lists(
            st.sampled_from(sorted(properties) or ["none"]), unique=True
        ).map(
            lambda required: {
                "type": "object",
                "properties": properties,
                "required": [name for name in required if name in properties],
                "additionalProperties": False,
            }
        )
    )


VALUES = st.recursive(
    LEAVES,
    lambda values: st.one_of(
        objects(values),
        values.map(lambda items: {"type": "array", "items": items}),
        values.map(lambda value: {"anyOf": [{"type": "null"}, value]}),
    ),
    max_leaves=8,
)
SCHEMAS = objects(VALUES).map(
    lambda schema: {**schema, "$defs": {"Word": {"type": "string"}}}
)


@given(SCHEMAS)
def test_examples_fit_tools_own_schema_and_one_model_gets(
    schema: JSONObject,
) -> None:
    turns = argument_examples(ToolSpec(name="a_tool", parameters=schema))

    asked, own = (
        jsonschema_rs.validator_for(sketch(schema)),
        jsonschema_rs.validator_for(schema),
    )
    assert [turn.role for turn in turns] == ["user", "assistant"] * 3
    for turn in turns[1::2]:
        asked.validate(json.loads(turn.text))
        own.validate(json.loads(turn.text))


@given(SCHEMAS)
def test_every_text_and_list_that_the_model_writes_has_a_limit(
    schema: JSONObject,
) -> None:
    def check(value: JSONValue) -> None:
        if not isinstance(value, Mapping):
            return
        if value.get("type") == "string":
            assert value["maxLength"] == 100
        if value.get("type") == "array":
            assert value["maxItems"] == 4
            check(value["items"])
        properties = value.get("properties")
        for part in properties.values() if isinstance(properties, Mapping) else ():
            check(part)

    check(sketch(schema))


@pytest.mark.parametrize(
    ("given_", "stored"),
    [
        (
            {"type": "string", "description": "d", "pattern": "x", "minLength": 1},
            {"minLength": 1},
        ),
        ({"type": "string", "maxLength": 7}, {"maxLength": 7}),
        ({"type": "string", "maxLength": 7000}, {"maxLength": 100}),
        ({"properties": {}}, {"type": "object", "properties": {}}),
        (
            {"items": {"type": "integer"}, "maxItems": 2},
            {"items": {"type": "integer"}, "maxItems": 2},
        ),
        (
            {"type": "integer", "minimum": 1, "default": 3},
            {"type": "integer", "minimum": 1},
        ),
        ({"type": ["null"]}, {"type": "null"}),
        ({"$ref": "#/$defs/Node"}, {"type": "object"}),
        ({"$ref": "#/$defs/a~1b"}, {"type": "boolean"}),
        ({"$ref": "#/$defs/loop"}, {"type": "string"}),
        ({"$ref": "#/$defs/none/deeper"}, {"type": "string"}),
        ({"$ref": "https://example.org/schema"}, {"type": "string"}),
        ({"anyOf": [{"type": "null"}]}, {"type": "null"}),
        ({"allOf": [{"$ref": "#/$defs/a~1b"}]}, {"type": "boolean"}),
        (True, {"type": "string"}),
        ({"type": "date"}, {"type": "string"}),
        ({"type": "array", "minItems": 6}, {"minItems": 6, "maxItems": 6}),
        ({"type": "string", "minLength": 200}, {"minLength": 200, "maxLength": 200}),
        ({"type": "string", "minLength": 100_000}, {"maxLength": 100}),
        (
            {"type": "integer", "minimum": 1.5, "maximum": 3.5},
            {"minimum": 2, "maximum": 3},
        ),
        (
            {"type": "number", "minimum": 0, "maximum": 0.5},
            {"minimum": 0, "maximum": 0.5},
        ),
        (
            {"allOf": [{"$ref": "#/$defs/Node"}, {"required": ["child"]}]},
            {"type": "object", "required": ["child"]},
        ),
        (
            {
                "properties": {"a": {}, "b": {"type": "null"}},
                "anyOf": [{"required": ["b"]}, {"required": ["a"]}],
            },
            {"type": "object", "properties": {"b": {"type": "null"}}},
        ),
    ],
)
def test_a_parameter_is_cut_down_to_simple_terms(
    given_: JSONValue, stored: JSONObject
) -> None:
    definitions: JSONObject = {
        "Node": {
            "type": "object",
            "properties": {"child": {"$ref": "#/$defs/Node"}},
            "required": ["child"],
        },
        "a/b": {"type": "boolean"},
        "loop": {"$ref": "#/$defs/loop"},
    }

    cut = sketch(
        {
            "properties": {"p": given_},
            "required": ["p", "missing"],
            "$defs": definitions,
        }
    )

    properties = cut["properties"]
    assert isinstance(properties, Mapping)
    parameter = properties["p"]
    assert isinstance(parameter, Mapping)
    assert stored.items() <= parameter.items()
    assert not {"description", "default", "pattern", "$ref"} & parameter.keys()
    assert cut["required"] == ["p"]


@pytest.mark.parametrize(
    "given_",
    [
        {"type": "string", "minLength": 100_000},
        {"type": "string", "minLength": "3"},
        {"type": "integer", "minimum": 5, "maximum": 3},
        {"type": "integer", "minimum": 2.2, "maximum": 2.8},
        {"type": "integer", "maximum": 1e300},
        {"type": "integer", "minimum": "3"},
        {"type": "boolean", "minimum": 3},
        {"enum": []},
    ],
)
def test_what_the_server_has_no_grammar_for_is_left_out(given_: JSONObject) -> None:
    parameters = sketch({"properties": {"p": given_}, "required": ["p"]})["properties"]

    assert isinstance(parameters, Mapping)
    assert isinstance(parameters["p"], Mapping)
    assert parameters["p"].keys() <= {"type", "maxLength"}


@pytest.mark.parametrize("key", ["$ref", "anyOf", "allOf"])
def test_parameters_themselves_may_be_reference_or_alternatives(key: str) -> None:
    reference = {"$ref": "#/$defs/Query"}
    query: JSONObject = {
        "type": "object",
        "properties": {"q": {"type": "string"}},
        "required": ["q"],
    }

    cut = sketch(
        {
            "$defs": {"Query": query},
            **(reference if key == "$ref" else {key: [reference]}),
        }
    )

    assert cut == sketch(query)


def test_a_tool_may_need_one_of_its_parameters() -> None:
    schema: JSONObject = {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "integer"},
            "c": {"type": "null"},
        },
        "required": ["c"],
        "anyOf": [{"required": ["b"]}, {"required": ["a"]}],
    }

    assert sketch(schema)["required"] == ["c", "b"]


def test_of_tool_without_required_parameters_first_may_be_given() -> None:
    schema: JSONObject = {
        "type": "object",
        "properties": {"path": {"type": "string"}, "depth": {"type": "integer"}},
    }

    assert sketch(schema)["properties"] == {
        "path": {"type": "string", "maxLength": 100}
    }
    assert sketch(schema)["required"] == []


def test_a_tool_without_parameters_takes_none() -> None:
    assert sketch({"type": "object"}) == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


def test_an_example_speaks_as_the_description_begins() -> None:
    described = ToolSpec(
        name="list_directory",
        description="List what is in a directory: names,\ntypes, sizes.",
        parameters={
            "type": "object",
            "properties": {"output_dir": {"type": "string"}, "tags": {"type": "array"}},
        },
    )

    turns = name_examples([described, ToolSpec(name="run_all", parameters={})])

    assert [(turn.role, turn.text) for turn in turns[:4]] == [
        ("user", "List what is in a directory: alpha"),
        ("assistant", "list_directory"),
        ("user", "run all"),
        ("assistant", "run_all"),
    ]
