"""A tool that is executed by hand takes and refuses what it takes and refuses in a session, with the same words."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amplifier_sdk import ToolResult, tool
from amplifier_sdk.arguments import ArgumentSchema
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.doubles import build_session, call

calls: list[tuple[str, str | None, int]] = []


@tool
async def count(text: str, unit: str | None = None, at_least: int = 0) -> int:
    """Count."""
    calls.append((text, unit, at_least))
    return at_least + len(text)


async def in_a_session(arguments: JSONObject) -> ToolResult:
    async with build_session(tools=[count]) as session:
        coordinator = session.coordinator
        (result,) = await coordinator.host.run_tools(
            [call("count", arguments)], coordinator.tools
        )
    return result


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"text": "a", "colour": "red"}, "colour"),
        ({"text": "a", "unit": 5}, "unit"),
        ({"text": "a", "at_least": "3"}, "at_least"),
        ({"text": 1}, "text"),
        ({}, "text"),
    ],
    ids=["unknown-key", "int-for-str-or-none", "text-for-int", "int-for-str", "none"],
)
async def test_what_the_kernel_refuses_execute_refuses_with_the_same_words(
    arguments: JSONObject, problem: str
) -> None:
    calls.clear()

    result = await count.execute(arguments)

    assert result == await in_a_session(arguments)
    assert result.error is not None
    assert result.error["type"] == "invalid_arguments"
    assert f"- {problem}: " in str(result.error["message"])
    assert calls == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=3,
)
NAMES = st.sampled_from(["text", "unit", "at_least", "colour"])


@given(arguments=st.dictionaries(NAMES, JSON, max_size=4))
@settings(max_examples=40, deadline=None)
async def test_execute_and_the_kernel_agree_on_any_arguments(
    arguments: dict[str, JSONValue],
) -> None:
    assert await count.execute(arguments) == await in_a_session(arguments)


async def test_what_fits_runs_and_what_json_cannot_say_is_refused() -> None:
    assert (await count.execute({"text": "ab", "unit": None})).output == 2

    refused = await count.execute({"text": object()})  # type: ignore[dict-item]  # what is refused

    assert refused.error is not None
    assert "are not JSON" in str(refused.error["message"])


async def test_call_is_the_plain_function_and_checks_nothing() -> None:
    assert await count.call("abc", at_least=1) == 4
    assert await count.call(text="a", unit=5) == 1  # type: ignore[arg-type]  # nothing checks it
    with pytest.raises(TypeError, match="colour"):
        await count.call("a", colour="red")  # type: ignore[call-arg]  # as Python says it


def test_a_schema_is_compiled_once_for_all_who_check_against_it() -> None:
    schema: JSONObject = {"type": "object"}
    first = ArgumentSchema.of(schema, "t")

    assert ArgumentSchema.of(schema, "t") is first
    assert ArgumentSchema.of(schema, "other") is not first
    assert ArgumentSchema.of({"type": "object"}, "t") is not first


def test_the_shared_schemas_do_not_grow_without_end() -> None:
    schema: JSONObject = {"type": "object"}
    first = ArgumentSchema.of(schema, "t")
    schemas: list[JSONObject] = [{"type": "object"} for _ in range(1024)]

    for other in schemas:
        ArgumentSchema.of(other, "t")

    assert ArgumentSchema.of(schema, "t") is not first
