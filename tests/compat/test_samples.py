"""The samples of the contracts as they were written, imports included."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from unittest.mock import AsyncMock

import pytest

from amplifier.testing import create_test_session
from tests.doubles import answer, call, calling
from tests.seeds.samples import Sample, samples

IMPORTING = [each for each in samples().values() if "amplifier_core" in each.text]


def _imports(sample: Sample) -> list[ast.ImportFrom]:
    tree = ast.parse(dedent(sample.text.replace("...", "None")))
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("amplifier_core")
    ]


@pytest.mark.parametrize("sample", IMPORTING, ids=lambda sample: sample.name)
def test_what_a_sample_imports_is_there(sample: Sample) -> None:
    found = _imports(sample)
    assert found
    for node in found:
        exec(compile(ast.Module([node], []), sample.name, "exec"), {})


MODULE = """
from typing import Any
from amplifier_core import ModuleCoordinator, ToolResult

{sample}

    async def _do_work(self, given):
        return given.upper()

    @property
    def input_schema(self) -> dict:
        return {{"type": "object", "properties": {{"required_param": {{"type": "string"}}}}}}

{execute}

async def mount(coordinator: ModuleCoordinator, config: dict[str, Any] | None = None):
    await coordinator.mount("tools", MyTool(), name="my_tool")
"""


def _module(folder: Path) -> ModuleType:
    """Make the module whose parts the tool contract shows."""
    texts = {each.name: each.text for each in samples().values()}
    tool = next(text for text in texts.values() if text.startswith("class MyTool:"))
    execute = next(
        text
        for text in texts.values()
        if text.startswith("async def execute(self, input: dict[str, Any])")
        and "_do_work" in text
    )
    indented = "\n".join(f"    {line}" for line in execute.splitlines())
    path = folder / "sample_tool.py"
    path.write_text(MODULE.format(sample=tool.rstrip(), execute=indented))
    module = ModuleType("sample_tool")
    module.__file__ = str(path)
    exec(compile(path.read_text(), str(path), "exec"), vars(module))
    return module


async def test_the_tool_of_the_contract_runs_in_a_session(tmp_path: Path) -> None:
    script = [
        calling(call("my_tool", {"required_param": "value"}, id="1")),
        calling(call("my_tool", {}, id="2")),
        answer("done"),
    ]
    async with create_test_session(*script, tools=[_module(tmp_path)]) as session:
        assert await session.execute("go") == "done"
        messages = await session.coordinator.context.get_messages()

    results = [each["content"] for each in messages if each["role"] == "tool"]
    assert results == ["VALUE", "Error: required_param is required"]


async def test_the_doubles_of_the_samples() -> None:
    from amplifier_core.testing import (
        EventRecorder,
        MockContextManager,
        MockTool,
        ScriptedOrchestrator,
    )

    tool = MockTool(name="test_tool", description="Test tool", return_value="mock")
    result = await tool.execute({"a": 1})
    assert (tool.call_count, tool.last_input, result.output) == (1, {"a": 1}, "mock")
    assert isinstance(tool.execute, AsyncMock)

    recorder = EventRecorder()
    await recorder.record("tool:pre", {"tool_name": "Write"})
    await recorder.emit("tool:post", {})
    assert recorder.get_events()[0][0] == "tool:pre"
    assert len(recorder.get_events("tool:post")) == 1
    recorder.clear()
    assert recorder.events == []

    context = MockContextManager([{"role": "user", "content": "a"}])
    await context.add_message({"role": "user", "content": "b"})
    assert len(await context.get_messages()) == 2
    await context.set_messages([])
    assert await context.get_messages_for_request() == []

    loop = ScriptedOrchestrator(["one"])
    assert [await loop.execute("p", context, {}, {}, recorder) for _ in "ab"] == [
        "one",
        "DONE",
    ]
