"""The tool that answers as it is told."""

from __future__ import annotations

import anyio
import pytest

from amplifier.testing import MockTool
from amplifier_sdk import JSONValue, ToolResult
from amplifier_sdk.checks import check_instance
from amplifier_sdk.effects import ONLY_READS, effects_of
from amplifier_sdk.jsontypes import JSONObject


def test_it_satisfies_the_contract() -> None:
    assert check_instance("tool", MockTool()) == []


def test_its_defaults_name_it() -> None:
    tool = MockTool()

    assert (tool.name, tool.description, tool.output) == (
        "mock_tool",
        "Mock tool: mock_tool",
        "Success",
    )
    assert tool.input_schema == {"type": "object"}
    assert not tool.exclusive


async def test_both_spellings_of_its_answer_work() -> None:
    by_position = MockTool("echo", "Echo response")
    by_name = MockTool(
        name="test_tool", description="Test tool", return_value="mock result"
    )

    assert (await by_position.execute({})).output == "Echo response"
    assert (await by_name.execute({})).output == "mock result"
    assert by_name.description == "Test tool"

    by_name.return_value = "other"
    assert (by_name.output, by_name.return_value) == ("other", "other")


@pytest.mark.parametrize("output", [None, 0, "", [], {"a": [1, None]}, False])
async def test_any_value_may_be_the_answer(output: JSONValue) -> None:
    assert await MockTool(output=output).execute({}) == ToolResult(output=output)
    assert await MockTool(return_value=output).execute({}) == ToolResult(output=output)


async def test_it_counts_and_keeps_its_calls() -> None:
    tool = MockTool()
    assert (tool.call_count, tool.last_input, tool.calls) == (0, None, [])

    await tool.execute({"x": 1})
    await tool.execute({"x": 2})

    assert (tool.call_count, tool.last_input, tool.calls) == (
        2,
        {"x": 2},
        [{"x": 1}, {"x": 2}],
    )


async def test_a_result_is_answered_as_it_is() -> None:
    result = ToolResult.failure("no")

    assert await MockTool(output=result).execute({}) is result


async def test_an_exception_is_raised_and_the_call_is_counted() -> None:
    tool = MockTool(output=ValueError("boom"))

    with pytest.raises(ValueError, match="boom"):
        await tool.execute({})
    assert tool.call_count == 1


async def test_a_function_answers_from_the_input() -> None:
    async def double(input: JSONObject) -> object:
        return {"doubled": input["x"]}

    assert (
        await MockTool(output=lambda input: input["x"]).execute({"x": 1})
    ).output == 1
    assert (await MockTool(output=double).execute({"x": 2})).output == {"doubled": 2}


async def test_a_test_can_wait_for_a_call_and_let_it_finish() -> None:
    release = anyio.Event()

    async def wait(_: JSONObject) -> object:
        await release.wait()
        return "done"

    tool = MockTool(output=wait)
    results: list[ToolResult] = []

    async def run() -> None:
        results.append(await tool.execute({"x": 1}))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            assert await tool.wait_for_call() == {"x": 1}
            assert results == []
            release.set()
        assert await tool.wait_for_call(1) == {"x": 1}

    assert results == [ToolResult(output="done")]


def test_a_tool_says_what_it_does_when_it_was_told_so() -> None:
    assert effects_of(MockTool(effects=("read",)), name="mock_tool") == ONLY_READS
    assert effects_of(MockTool(), name="mock_tool") is None
