"""What a mounted tool or provider tells about itself."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pytest

from amplifier.validation.members import check_members
from amplifier.validation.report import CheckResult
from amplifier_sdk import ChatRequest, ChatResponse, ModelInfo, ProviderInfo, ToolResult
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.jsontypes import JSONObject


@attrs.define
class Described:
    """A tool of given parts."""

    name: str = "echo"
    description: str = "Return the text."
    input_schema: object = attrs.field(
        factory=lambda: {"type": "object", "properties": {}}
    )

    async def execute(self, input: JSONObject, /) -> ToolResult:
        return ToolResult(output="yes")


class OldStyle:
    """A tool that offers its schema by the older name."""

    name = "old"
    description = "Return the text."

    async def execute(self, input: JSONObject, /) -> ToolResult:
        return ToolResult(output="yes")

    def get_schema(self) -> Mapping[str, object]:
        return {"type": "object"}


@attrs.define
class Informed:
    """A provider of a given info."""

    info: object
    name: str = "informed"

    def get_info(self) -> ProviderInfo:
        if isinstance(self.info, Exception):
            raise self.info
        return self.info  # type: ignore[return-value]  # a provider may return what it should not

    async def list_models(self) -> list[ModelInfo]:
        return []

    async def complete(self, request: ChatRequest, /) -> ChatResponse:
        raise NotImplementedError

    def parse_tool_calls(self, response: ChatResponse, /) -> list[ToolCall]:
        return []


def _check(kind: str, instance: object, check: str) -> CheckResult:
    (result,) = (
        result
        for result in check_members(kind, {"it": instance})
        if result.check == check
    )
    return result


@pytest.mark.parametrize("tool", [Described(), OldStyle()])
def test_a_sound_tool_passes(tool: object) -> None:
    assert [result.status for result in check_members("tool", {"it": tool})] == [
        "passed"
    ] * 3


@pytest.mark.parametrize("name", ["", "a name", "x" * 65, "naïve", "a.b"])
def test_a_name_that_no_model_can_call_is_an_error(name: str) -> None:
    assert _check("tool", Described(name=name), "tool.name").status == "error"


def test_an_empty_description_is_a_warning() -> None:
    assert (
        _check("tool", Described(description=" \n"), "tool.description").status
        == "warning"
    )


@pytest.mark.parametrize(
    ("schema", "status", "words"),
    [
        (None, "warning", "no schema"),
        ({}, "warning", "no schema"),
        (["a"], "error", "is a list"),
        ({"type": "objct"}, "error", "not valid at /type"),
        (
            {"type": "object", "properties": {"a": {"type": 3}}},
            "error",
            "not valid at /properties/a/type",
        ),
        (
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}},
            "error",
            "not valid",
        ),
        (
            {"type": "object", "properties": {"a": {"$ref": "https://example.org/a"}}},
            "error",
            "not valid",
        ),
        ({"type": "object", "default": {1, 2}}, "error", "no JSON data"),
        ({"type": "object", "default": float("nan")}, "error", "no JSON data"),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"},
            "error",
            "not for 2020-12",
        ),
        ({"type": "string"}, "error", "not 'object'"),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"description": "x"}},
            },
            "warning",
            "no a",
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/a"}},
                "$defs": {"a": {}},
            },
            "passed",
            "",
        ),
        ({"type": "object", "properties": {"a": True}}, "passed", ""),
        (
            {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
            },
            "passed",
            "",
        ),
    ],
)
def test_a_schema_is_valid_and_describes_its_properties(
    schema: object, status: str, words: str
) -> None:
    result = _check("tool", Described(input_schema=schema), "tool.schema")

    assert result.status == status
    assert words in result.message


def test_each_of_several_tools_named_in_what_is_wrong_with_it() -> None:
    tools = {
        "one": Described(),
        "two": Described(description=""),
        "three": Described(name="no name", description=""),
    }

    found = {result.check: result for result in check_members("tool", tools)}

    assert (
        found["tool.name"].message
        == "three: the name 'no name' is not 1 to 64 letters, digits, _ and -"
    )
    assert (
        found["tool.description"].message
        == "two: the description is empty; three: the description is empty"
    )


@pytest.mark.parametrize(
    ("info", "status", "words"),
    [
        (ProviderInfo(id="a", display_name="A"), "passed", ""),
        (
            ProviderInfo(id="a", display_name=""),
            "error",
            "lacks an id or a display_name",
        ),
        ({"id": "a"}, "error", "returned a dict"),
        (OSError("no network"), "error", "OSError: no network"),
    ],
)
def test_a_provider_tells_what_it_is(info: object, status: str, words: str) -> None:
    result = _check("provider", Informed(info), "provider.info")

    assert result.status == status
    assert words in result.message


def test_a_type_without_such_members_has_no_results() -> None:
    assert list(check_members("context", {"context": object()})) == []
