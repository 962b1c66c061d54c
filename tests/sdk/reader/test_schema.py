"""A function's signature becomes a JSON Schema and a binding that keeps what its annotations promise."""

from __future__ import annotations

import enum
import json
import re
import sys
import uuid
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path, PurePath, PurePosixPath
from typing import Annotated, Any, Final, Literal, NewType, Optional, TypeAlias, Union

import attrs
import jsonschema_rs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import Doc, TypeAliasType

from amplifier_sdk import ToolContext, contracts, jsontypes, progress
from amplifier_sdk._reader.durations import duration_text, read_duration
from amplifier_sdk._reader.schema import Signature, describe
from amplifier_sdk.chat import ToolSpec
from amplifier_sdk.content import TextBlock, VendorBlock
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message
from amplifier_sdk.secret import Secret
from tests.sdk import schema_namesakes
from tests.sdk.schema_types import (
    Bounds,
    Color,
    Elsewhere,
    Empty,
    Level,
    Linked,
    Movie,
    Options,
    Point,
    Sequel,
    Size,
    Span,
    Tree,
    Window,
)

UserId = NewType("UserId", int)
Names: TypeAlias = list[str]
Rows = TypeAliasType("Rows", list[list[int]])
AT_LEAST_ONE: Final = Bounds(ge=1)
SHORT: Final = Bounds(min_length=1, max_length=3)


def signature_of(annotation: object) -> Signature:
    """Describe a function with the one parameter `value`."""

    def function(value: object) -> None: ...

    function.__annotations__ = {"value": annotation}
    return describe(function)


def schema_of(annotation: object) -> JSONValue:
    schema = signature_of(annotation).schema
    jsonschema_rs.meta.validate(schema)
    properties = schema["properties"]
    assert isinstance(properties, Mapping)
    return properties["value"]


def bound(annotation: object, value: JSONValue) -> object:
    signature = signature_of(annotation)
    assert jsonschema_rs.validator_for(signature.schema, offline=True).is_valid(
        {"value": value}
    )
    return signature.bind({"value": value})["value"]


def test_signature_gives_names_texts_defaults_and_what_required() -> None:
    def read(
        path: str, limit: int = 10, *, deep: Annotated[bool, "go on below"] = False
    ) -> str:
        """Read a file.

        Slowly.

        Args:
            path: where it is
            deep: not shown, since the annotation says it
        """
        return f"{path}{limit}{deep}"

    signature = describe(read)

    assert signature.description == "Read a file.\n\nSlowly."
    assert signature.coordinators == signature.contexts == ()
    assert signature.schema == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "where it is"},
            "limit": {"type": "integer", "default": 10},
            "deep": {"type": "boolean", "description": "go on below", "default": False},
        },
        "required": ["path"],
        "additionalProperties": False,
    }


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def now() -> str:
        return "now"

    signature = describe(now)

    assert signature.schema == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    assert signature.bind({}) == {}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (object, {}),
        (Any, {}),
        (JSONValue, {}),
        (JSONObject, {"type": "object"}),
        (list[JSONValue], {"type": "array"}),
        (Path, {"type": "string", "format": "path"}),
        (PurePath, {"type": "string", "format": "path"}),
        (datetime, {"type": "string", "format": "date-time"}),
        (date, {"type": "string", "format": "date"}),
        (time, {"type": "string", "format": "time"}),
        (timedelta, {"type": "string", "format": "duration"}),
        (Secret, {"type": "string", "format": "password", "writeOnly": True}),
        (
            Span,
            {
                "type": "array",
                "minItems": 1,
                "maxItems": 2,
                "prefixItems": [
                    {"title": "start", "type": "integer"},
                    {
                        "title": "color",
                        "enum": ["red", "blue"],
                        "type": "string",
                        "default": "red",
                    },
                ],
            },
        ),
        (Empty, {"type": "array", "minItems": 0, "maxItems": 0}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (
            Decimal,
            {"anyOf": [{"type": "number"}, {"type": "string", "format": "decimal"}]},
        ),
        (Color, {"enum": ["red", "blue"], "type": "string"}),
        (Level, {"enum": [1, 2], "type": "integer"}),
        (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}),
        (Literal["a", 1, None, True], {"enum": ["a", 1, None, True]}),  # noqa: PYI061  # null among the values
        (Literal[Color.RED], {"enum": ["red"], "type": "string"}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045  # the older spelling
        (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),  # noqa: UP007  # likewise
        (
            int | Decimal,
            {
                "anyOf": [
                    {"type": "integer"},
                    {"type": "number"},
                    {"type": "string", "format": "decimal"},
                ]
            },
        ),
        (int | object, {}),
        (list, {"type": "array"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (Sequence[int], {"type": "array", "items": {"type": "integer"}}),
        (Iterable[int], {"type": "array", "items": {"type": "integer"}}),
        (tuple, {"type": "array"}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, str],
            {
                "type": "array",
                "minItems": 2,
                "maxItems": 2,
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
            },
        ),
        (tuple[()], {"type": "array", "minItems": 0, "maxItems": 0}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (frozenset, {"type": "array", "uniqueItems": True}),
        (
            AbstractSet[str],
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        ),
        (dict, {"type": "object"}),
        (
            dict[str, int],
            {"type": "object", "additionalProperties": {"type": "integer"}},
        ),
        (Mapping[str, object], {"type": "object"}),
        (
            dict[Literal["a", "b"], int],
            {
                "type": "object",
                "propertyNames": {"enum": ["a", "b"]},
                "additionalProperties": {"type": "integer"},
            },
        ),
        (UserId, {"type": "integer"}),
        (
            Rows,
            {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        ),
        (Names, {"type": "array", "items": {"type": "string"}}),
        (Annotated[str, "a name"], {"type": "string", "description": "a name"}),
        (Annotated[str, Doc("a name")], {"type": "string", "description": "a name"}),
        (Annotated[int, AT_LEAST_ONE], {"type": "integer", "minimum": 1}),
        (
            Annotated[float, Bounds(gt=0, lt=1)],
            {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        ),
        (
            Annotated[int, Bounds(le=9, multiple_of=3)],
            {"type": "integer", "maximum": 9, "multipleOf": 3},
        ),
        (Annotated[int, Bounds(le=9)], {"type": "integer", "maximum": 9}),
        (Annotated[str, Bounds(max_length=3)], {"type": "string", "maxLength": 3}),
        (
            Annotated[str, Bounds(min_length=0, max_length=3)],
            {"type": "string", "maxLength": 3},
        ),
        (Annotated[str, SHORT], {"type": "string", "minLength": 1, "maxLength": 3}),
        (
            Annotated[list[str], SHORT],
            {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": 3,
            },
        ),
        (
            Annotated[dict[str, str], SHORT],
            {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "minProperties": 1,
                "maxProperties": 3,
            },
        ),
        (
            Annotated[str | None, SHORT],
            {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "minLength": 1,
                "maxLength": 3,
            },
        ),
        (
            Annotated[list[str], Bounds(min_length=0)],
            {"type": "array", "items": {"type": "string"}},
        ),
        (Annotated[bool, SHORT], {"type": "boolean"}),
        (Annotated[str, Bounds(pattern="^a")], {"type": "string", "pattern": "^a"}),
        (
            Annotated[str, Bounds(pattern=re.compile("^a"))],
            {"type": "string", "pattern": "^a"},
        ),
        (Annotated[Decimal, AT_LEAST_ONE], {"type": "number", "minimum": 1}),
        (
            Annotated[int, msgspec.Meta(ge=1, description="many")],
            {"type": "integer", "minimum": 1, "description": "many"},
        ),
    ],
    ids=str,
)
def test_an_annotation_becomes_a_schema(annotation: object, schema: JSONValue) -> None:
    assert schema_of(annotation) == schema


def test_an_attrs_class_becomes_an_object_with_its_texts() -> None:
    assert schema_of(Point) == {
        "type": "object",
        "properties": {
            "x": {"type": "integer", "description": "to the right"},
            "y": {"type": "integer", "description": "upwards", "default": 0},
        },
        "description": "A place.",
        "required": ["x"],
        "additionalProperties": False,
    }


def test_dataclass_becomes_object_without_generated_docstring() -> None:
    assert schema_of(Window) == {
        "type": "object",
        "properties": {
            "width": {"type": "integer"},
            "title": {"type": "string", "default": "untitled"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["width"],
        "additionalProperties": False,
    }


def test_typed_dict_requirements_survive_inheritance() -> None:
    assert schema_of(Sequel) == {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "year": {"type": "integer"},
            "part": {"type": "integer", "description": "which one"},
            "rating": {"type": "number"},
        },
        "required": ["title", "part"],
        "additionalProperties": False,
    }


def test_a_type_that_holds_itself_is_a_definition() -> None:
    schema = signature_of(Tree).schema

    jsonschema_rs.meta.validate(schema)
    assert schema["properties"] == {"value": {"$ref": "#/$defs/Tree"}}
    assert schema["$defs"] == {
        "Tree": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
                "shown": {"type": "string", "default": "h"},
            },
            "description": "A tree of names.",
            "required": ["name"],
            "additionalProperties": False,
        }
    }


def test_two_types_of_one_name_are_two_definitions() -> None:
    def function(a: object, b: object, c: object) -> None: ...

    function.__annotations__ = {"a": Linked, "b": schema_namesakes.Linked, "c": Linked}
    schema = describe(function).schema

    jsonschema_rs.meta.validate(schema)
    definitions = schema["$defs"]
    assert isinstance(definitions, dict)
    assert list(definitions) == ["Linked", "Linked_2"]
    assert schema["properties"] == {
        "a": {"$ref": "#/$defs/Linked"},
        "b": {"$ref": "#/$defs/Linked_2"},
        "c": {"$ref": "#/$defs/Linked"},
    }


@pytest.mark.skipif(sys.version_info < (3, 12), reason="needs the type statement")
def test_a_named_alias_may_hold_itself() -> None:
    names: dict[str, object] = {}
    exec("type Json = str | list[Json]", names)

    schema = signature_of(names["Json"]).schema

    assert schema["properties"] == {"value": {"$ref": "#/$defs/Json"}}
    assert bound(names["Json"], ["a", ["b"]]) == ["a", ["b"]]


WHEN: Final = "2030-01-31T09:30:00Z"
ID: Final = "12345678-1234-5678-1234-567812345678"


@pytest.mark.parametrize(
    ("annotation", "value", "result"),
    [
        (str, "x", "x"),
        (int, 3, 3),
        (int, 3.0, 3),
        (float, 3, 3.0),
        (float, 3.5, 3.5),
        (object, {"a": [1]}, {"a": [1]}),
        (None, None, None),
        (Path, "a/b", Path("a/b")),
        (PurePath, "a/b", Path("a/b")),
        (PurePosixPath, "a/b", PurePosixPath("a/b")),
        (datetime, WHEN, datetime(2030, 1, 31, 9, 30, tzinfo=UTC)),
        (date, "2030-01-31", date(2030, 1, 31)),
        (time, "09:30:00", time(9, 30)),
        (
            timedelta,
            "P1DT2H30M0.5S",
            timedelta(days=1, hours=2, minutes=30, seconds=0.5),
        ),
        (timedelta, "-PT90S", timedelta(seconds=-90)),
        (timedelta, "P2W", timedelta(weeks=2)),
        (Secret, "s", Secret("s")),
        (Span, [3], Span(3)),
        (Span, [3.0, "blue"], Span(3, Color.BLUE)),
        (Empty, [], Empty()),
        (list[Span], [[1], [2, "red"]], [Span(1), Span(2)]),
        (uuid.UUID, ID, uuid.UUID(ID)),
        (Decimal, "1.50", Decimal("1.50")),
        (Decimal, 1.5, Decimal("1.5")),
        (Decimal, 2, Decimal(2)),
        (Color, "red", Color.RED),
        (Level, 2.0, Level.HIGH),
        (Literal["a", 1], "a", "a"),
        (Literal["a", 1], 1.0, 1),
        (Literal[Color.RED], "red", Color.RED),
        (int | None, None, None),
        (int | None, 3.0, 3),
        (bool | int, True, True),
        (datetime | str, WHEN, datetime(2030, 1, 31, 9, 30, tzinfo=UTC)),
        (datetime | str, "soon", "soon"),
        (bool | Path, True, True),
        (list[int], [1, 2.0], [1, 2]),
        (Sequence[Color], ["red"], [Color.RED]),
        (tuple[int, ...], [1, 2], (1, 2)),
        (tuple[int, str], [1, "a"], (1, "a")),
        (set[str], ["a"], {"a"}),
        (set[int], [2, 1], {1, 2}),
        (frozenset[int], [1], frozenset({1})),
        (dict[str, Path], {"a": "b"}, {"a": Path("b")}),
        (dict[Color, int], {"red": 1}, {Color.RED: 1}),
        (Point, {"x": 1}, Point(1)),
        (
            Tree,
            {"name": "a", "children": [{"name": "b", "shown": "s"}]},
            Tree("a", [Tree("b", shown="s")]),
        ),
        (Linked, {"value": 1, "next": {"value": 2}}, Linked(1, Linked(2))),
        (Movie, {"title": "t", "year": 1999.0}, {"title": "t", "year": 1999}),
        (
            Options,
            {"when": WHEN, "days": ["2030-01-31"], "open": {"any": [1]}},
            Options(
                when=datetime(2030, 1, 31, 9, 30, tzinfo=UTC),
                days=[date(2030, 1, 31)],
                open={"any": [1]},
            ),
        ),
        (Point | Movie | None, {"title": "t"}, {"title": "t"}),
        (Annotated[int, AT_LEAST_ONE] | None, 4, 4),
    ],
    ids=str,
)
def test_json_values_become_what_the_annotation_promises(
    annotation: object, value: JSONValue, result: object
) -> None:
    read = bound(annotation, value)

    assert read == result
    assert type(read) is type(result)


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (
            datetime,
            "soon",
            'value: expected a date and time such as 2030-01-31T09:30:00Z, got a string ("soon")',
        ),
        (date, 3, "value: expected a date such as 2030-01-31, got an integer (3)"),
        *(
            (
                timedelta,
                text,
                f'value: expected a duration such as PT1H30M, got a string ("{text}")',
            )
            for text in (
                "",
                "P",
                "PT",
                "1h",
                "P1Y",
                "P1M",
                "PT1.1234567S",
                "P999999999999W",
                "P1DT",
                "+PT1S",
            )
        ),
        (
            Secret,
            31337,
            "value: expected a string, got an integer (not shown: it may be a secret)",
        ),
        (
            Span,
            [],
            "value: expected an array of 1 to 2 items, got an array with 0 items",
        ),
        (
            Span,
            [1, "red", 3],
            "value: expected an array of 1 to 2 items, got an array with 3 items",
        ),
        (
            Span,
            {"start": 1},
            "value: expected an array of 1 to 2 items, got an object with 1 key",
        ),
        (
            Span,
            ["a", "green"],
            (
                'value[0]: expected an integer, got a string ("a")\n'
                "value[1]: expected 'red' or 'blue', got a string (\"green\")"
            ),
        ),
        (Empty, [1], "value: expected an array of 0 items, got an array with 1 item"),
        (int, 3.5, "value: expected an integer, got a number (3.5)"),
        (int, True, "value: expected an integer, got a boolean (true)"),
        (float, "x", 'value: expected a number, got a string ("x")'),
        (float, True, "value: expected a number, got a boolean (true)"),
        (
            float,
            10**400,
            "value: expected a number that a float can hold, got a larger one",
        ),
        (Decimal, "much", 'value: expected a decimal number, got a string ("much")'),
        (Decimal, True, "value: expected a decimal number, got a boolean (true)"),
        (Decimal, float("nan"), "value: expected a decimal number, got a number (NaN)"),
        (Color, "green", "value: expected 'red' or 'blue', got a string (\"green\")"),
        (Literal[1, 2], True, "value: expected 1 or 2, got a boolean (true)"),
        (Path | None, 3, "value: expected a path or null, got an integer (3)"),
        (list[Path], "x", 'value: expected an array, got a string ("x")'),
        (
            list[Path],
            ["a", 1, 2],
            "value[1]: expected a path, got an integer (1)\nvalue[2]: expected a path, got an integer (2)",
        ),
        (
            tuple[int, Path],
            [1],
            "value: expected an array of 2 items, got an array with 1 item",
        ),
        (tuple[Path], [1], "value[0]: expected a path, got an integer (1)"),
        (
            tuple[Path],
            [],
            "value: expected an array of 1 item, got an array with 0 items",
        ),
        (
            set[list[str]],
            [["a"]],
            "value: expected items that can stand in a set: unhashable type: 'list'",
        ),
        (dict[str, Path], 3, "value: expected an object, got an integer (3)"),
        (dict[str, Path], {"a": 1}, "value.a: expected a path, got an integer (1)"),
        (
            dict[str, Path],
            {1: "a"},
            'value["1"]: expected a string as key, got an integer (1)',
        ),
        (
            dict[Color, str],
            {"pink": ""},
            "value.pink: expected 'red' or 'blue', got a string (\"pink\")",
        ),
        (
            dict[str, dict[str, Path]],
            {"a": {"b": 1}},
            "value.a.b: expected a path, got an integer (1)",
        ),
        (Point, 3, "value: expected an object, got an integer (3)"),
        (
            Point,
            {"y": "b", "z": 1},
            (
                "value.x: missing; expected an integer\n"
                'value.y: expected an integer, got a string ("b")\n'
                "value.z: unknown; the known keys are x, y"
            ),
        ),
        (Movie, 3, "value: expected an object, got an integer (3)"),
        (
            Point | Movie | None,
            {"title": 3},
            "value: expected an object or null, got an object with 1 key",
        ),
        (Point | None, {"x": "b"}, 'value.x: expected an integer, got a string ("b")'),
        (
            Linked,
            {"value": 1, "next": {"value": "b"}},
            'value.next.value: expected an integer, got a string ("b")',
        ),
        (bool | Path, 3, "value: expected a boolean or a path, got an integer (3)"),
        (
            tuple[str, None],
            [1, 2],
            "value[0]: expected a string, got an integer (1)\nvalue[1]: expected null, got an integer (2)",
        ),
    ],
    ids=str,
)
def test_a_value_that_does_not_fit_is_named_with_its_place(
    annotation: object, value: JSONValue, message: str
) -> None:
    with pytest.raises(ToolError) as caught:
        signature_of(annotation).bind({"value": value})

    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, Level.HIGH),
        (Path, Path("a")),
        (timedelta, timedelta(1)),
        (Secret, Secret("s")),
        (datetime, datetime(2030, 1, 31, tzinfo=UTC)),
        (Decimal, Decimal(1)),
        (Color, Color.RED),
        (Point, Point(1)),
        (list[Point], [Point(1)]),
        (set[str], {"a"}),
        (tuple[int, ...], (1, 2)),
    ],
    ids=str,
)
def test_a_value_of_the_wanted_type_passes(
    annotation: object, value: JSONValue
) -> None:
    assert signature_of(annotation).bind({"value": value}) == {"value": value}


def test_plain_values_are_handed_on_by_identity() -> None:
    def function(
        name: str, tags: list[str], data: JSONObject, flag: bool = False
    ) -> None: ...

    tags: list[JSONValue] = ["a"]
    arguments: JSONObject = {"name": "n", "tags": tags, "data": {}}
    bound_arguments = describe(function).bind(arguments)

    assert bound_arguments == arguments
    assert bound_arguments is not arguments
    assert bound_arguments["tags"] is tags


def test_argument_that_is_not_given_stays_functions_default() -> None:
    def function(path: Path = Path("here"), deep: bool = False) -> None: ...

    assert describe(function).bind({"deep": True}) == {"deep": True}


def test_open_keywords_take_further_arguments_of_their_type() -> None:
    def function(name: str, **others: Path) -> None: ...

    signature = describe(function)

    assert signature.schema["additionalProperties"] == {
        "type": "string",
        "format": "path",
    }
    assert signature.bind({"name": "n", "a": "b"}) == {"name": "n", "a": Path("b")}
    with pytest.raises(ToolError, match=r"a: expected a path, got an integer \(3\)"):
        signature.bind({"name": "n", "a": 3})


def test_open_keywords_of_any_type_take_anything() -> None:
    def function(**others: object) -> None: ...

    signature = describe(function)

    assert signature.schema["additionalProperties"] is True
    assert signature.bind({"a": [1]}) == {"a": [1]}


def test_a_coordinator_is_not_the_models_to_give() -> None:
    def function(
        path: str,
        coordinator: Coordinator,
        maybe: contracts.Coordinator | None = None,
        **more: str,
    ) -> None: ...

    signature = describe(function)

    assert signature.coordinators == ("coordinator", "maybe")
    assert list(signature.schema["properties"]) == ["path"]  # type: ignore[arg-type]  # an object
    with pytest.raises(ToolError, match="coordinator: this name cannot be given"):
        signature.bind({"path": "p", "coordinator": "mine"})


def test_coordinator_that_only_type_checkers_import_recognised() -> None:
    def function(path: Path, coordinator: Coordinator | None = None) -> None: ...

    function.__annotations__ = {
        "path": "Path",
        "coordinator": "unknown.Coordinator | None",
    }

    assert describe(function).coordinators == ("coordinator",)


def test_the_context_of_a_call_is_not_the_models_to_give() -> None:
    def function(
        path: str, context: ToolContext, again: progress.ToolContext | None = None
    ) -> None: ...
    def elsewhere(path: Path, context: Path) -> None: ...

    elsewhere.__annotations__ = {"path": "Path", "context": "unknown.ToolContext"}

    assert describe(function).contexts == ("context", "again")
    assert describe(function).schema["required"] == ["path"]
    assert describe(elsewhere).contexts == ("context",)


@given(st.timedeltas())
def test_a_duration_is_read_back_as_it_was_written(value: timedelta) -> None:
    assert read_duration(duration_text(value)) == value


@given(st.timedeltas(min_value=timedelta(0)))
def test_msgspec_reads_the_durations_that_are_written(value: timedelta) -> None:
    assert (
        msgspec.json.decode(json.dumps(duration_text(value)), type=timedelta) == value
    )


def test_a_mapping_of_coordinators_is_no_coordinator() -> None:
    with pytest.raises(TypeError, match="Coordinator has no JSON form"):
        signature_of(dict[str, Coordinator])


def test_the_instance_of_a_method_is_left_out() -> None:
    class Box:
        def put(self, item: str) -> None: ...
        def take(this, item: str) -> None: ...  # noqa: N805  # an odd name on purpose

    assert list(describe(Box.put).schema["properties"]) == ["item"]  # type: ignore[arg-type]  # an object
    assert list(describe(Box.take, method=True).schema["properties"]) == ["item"]  # type: ignore[arg-type]  # an object


def make(annotation: object, default: object = None) -> Signature:
    def function(value: object = default) -> None: ...

    function.__annotations__ = {"value": annotation}
    return describe(function)


@pytest.mark.parametrize(
    ("annotation", "default", "written"),
    [
        (Color, Color.RED, "red"),
        (Path, Path("a"), "a"),
        (tuple[int, ...], (1, 2), [1, 2]),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (float, 0.5, 0.5),
    ],
    ids=str,
)
def test_a_default_is_written_as_json(
    annotation: object, default: object, written: JSONValue
) -> None:
    properties = make(annotation, default).schema["properties"]

    assert isinstance(properties, dict)
    assert isinstance(properties["value"], dict)
    assert properties["value"]["default"] == written


@pytest.mark.parametrize(
    ("annotation", "default"),
    [(float, float("inf")), (object, object())],
    ids=["infinity", "object"],
)
def test_a_default_that_json_cannot_write_is_left_out(
    annotation: object, default: object
) -> None:
    schema = make(annotation, default).schema

    assert "default" not in str(schema)
    assert "required" not in schema


class Flags(enum.Flag):
    A = 1


class Nothing(enum.Enum):
    """No value at all."""


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (
            bytes,
            "parameter 'value' has the annotation bytes has no JSON form; use str, int",
        ),
        (Elsewhere, "Elsewhere has no JSON form"),
        (
            dict[int, str],
            r"dict\[int, str\] has keys that JSON cannot write; keys must be str",
        ),
        (dict[Path, str], "keys must be str"),
        (Size, "Size has values that are not text, numbers, booleans or null"),
        (Nothing, "Nothing has values that are not text"),
        (Flags, "Flags has no JSON form"),
        (type[int], r"type\[int\] has no JSON form"),
        (Annotated[int, Bounds(ge="a")], "JSON Schema bounds numbers only"),
        (Annotated[int, Bounds(ge=False)], "JSON Schema bounds numbers only"),
        (
            "Missing",
            "'Missing', which cannot be resolved: name 'Missing' is not defined. Import the name at run time",
        ),
        (list["Missing"], "which cannot be resolved"),  # type: ignore[name-defined]  # noqa: F821  # that is the point
        (Ellipsis, "Ellipsis has no JSON form"),
    ],
    ids=str,
)
def test_annotation_without_json_form_is_error_at_decoration(
    annotation: object, message: str
) -> None:
    with pytest.raises(TypeError, match=message) as caught:
        signature_of(annotation)

    assert f"{__name__}.signature_of.<locals>.function: parameter 'value'" in str(
        caught.value
    )


def test_a_field_without_a_json_form_is_named_with_its_class() -> None:
    inner = attrs.make_class("Inner", {"raw": attrs.field(type=bytes)})
    outer = attrs.make_class("Outer", {"inner": attrs.field(type=list[inner])})  # type: ignore[valid-type]  # made just above

    with pytest.raises(
        TypeError, match=r"bytes \(at Outer\.inner\.raw\) has no JSON form"
    ):
        signature_of(outer)


def test_a_class_whose_annotations_cannot_be_resolved_is_named() -> None:
    lost = type(
        "Lost",
        (dict,),
        {"__annotations__": {"a": "Missing"}, "__required_keys__": frozenset()},
    )

    with pytest.raises(
        TypeError,
        match="Lost has annotations that cannot be resolved: name 'Missing' is not defined",
    ):
        signature_of(lost)


def test_parameter_without_annotation_is_error_with_remedy() -> None:
    def function(path) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001  # that is the point

    with pytest.raises(
        TypeError,
        match="parameter 'path' has no annotation; write its type, for example `path: str`",
    ):
        describe(function)


def test_a_parameter_by_position_is_an_error_with_a_remedy() -> None:
    def some(*paths: str) -> None: ...
    def first(path: str, /) -> None: ...

    with pytest.raises(
        TypeError,
        match=r"parameter '\*paths' is given by position; take a list, `items: list\[str\]`",
    ):
        describe(some)
    with pytest.raises(
        TypeError, match=r"parameter 'path' is given by position; .* remove the `/`"
    ):
        describe(first)


def test_a_callable_object_is_described_by_its_call() -> None:
    class Adder:
        def __call__(self, left: int, right: int) -> int:
            return left + right

    assert describe(Adder()).schema["required"] == ["left", "right"]


ORACLE_TYPES: Final[list[object]] = [
    *(
        str,
        int,
        float,
        bool,
        None,
        uuid.UUID,
        datetime,
        date,
        Color,
        Level,
        Point,
        Window,
        Movie,
    ),
    *(
        list[int],
        list[str | None],
        list[Point],
        dict[str, int],
        tuple[int, ...],
        int | str,
        Literal["a", "b"],
    ),
    Annotated[int, msgspec.Meta(ge=1, le=9)],
    Annotated[str, msgspec.Meta(min_length=1, pattern="^a")],
]
KEYS: Final = st.sampled_from(["x", "y", "title", "year", "width"])
TEXTS: Final = st.sampled_from(["a", "b", "ab", "red", ID, WHEN, "2030-01-31"])


@pytest.mark.parametrize("annotation", ORACLE_TYPES, ids=str)
@settings(max_examples=50)
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers(-3, 12) | TEXTS,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
        ),
        max_leaves=6,
    )
)
def test_the_schema_accepts_what_msgspec_accepts(
    annotation: object, value: JSONValue
) -> None:
    ours = jsonschema_rs.validator_for(signature_of(annotation).schema, offline=True)
    theirs = jsonschema_rs.validator_for(msgspec.json.schema(annotation), offline=True)

    accepted = ours.is_valid({"value": value})

    if accepted:
        assert theirs.is_valid(value)
        # a schema's format is a hint, which binding checks
        if annotation not in (datetime, date, uuid.UUID):
            signature_of(annotation).bind({"value": value})
    elif not _has_unknown_keys(annotation, value):
        assert not theirs.is_valid(value)


def _has_unknown_keys(annotation: object, value: JSONValue) -> bool:
    """Tell whether a record has keys that msgspec lets pass and we refuse."""
    keys: Mapping[object, set[str]] = {
        Point: {"x", "y"},
        Window: {"width", "title", "tags"},
        Movie: {"title", "year"},
    }
    if annotation == list[Point] and isinstance(value, list):
        return any(_has_unknown_keys(Point, item) for item in value)
    return (
        annotation in keys
        and isinstance(value, dict)
        and not keys[annotation].issuperset(value)
    )


def test_the_json_aliases_reach_the_schema_through_their_module() -> None:
    def function(
        data: jsontypes.JSONObject, more: Mapping[str, jsontypes.JSONValue]
    ) -> None: ...

    assert describe(function).schema["properties"] == {
        "data": {"type": "object"},
        "more": {"type": "object"},
    }


def test_a_tool_may_take_values_of_a_conversation() -> None:
    def show(
        block: TextBlock | VendorBlock, spec: ToolSpec, message: Message
    ) -> None: ...

    signature = describe(show)
    properties = signature.schema["properties"]

    assert isinstance(properties, dict)
    assert properties["message"] == {"type": "object"}
    assert properties["spec"]["additionalProperties"] is True
    text, other = properties["block"]["anyOf"]
    assert text["properties"]["type"] == {"const": "text"}
    assert text["required"] == ["type", "text"]
    assert other == {"type": "object"}
    assert signature.bind(
        {
            "block": {"type": "text", "text": "x", "vendor": 1},
            "spec": {"name": "t", "parameters": {}, "strict": True},
            "message": {"role": "user", "content": "x"},
        }
    ) == {
        "block": TextBlock(text="x", extras={"vendor": 1}),
        "spec": ToolSpec(name="t", parameters={}, extras={"strict": True}),
        "message": Message(role="user", content="x"),
    }
