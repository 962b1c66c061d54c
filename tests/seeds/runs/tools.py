"""How the samples of the tool contract are run."""

from __future__ import annotations

import inspect

from amplifier.testing import EventRecorder, MockTool, answer, call, create_test_session
from amplifier.testing.sessions import mounting
from amplifier_sdk import Tool, ToolCall, ToolResult
from tests.seeds.preamble import names
from tests.seeds.samples import Sample, samples

CONFIG = {"tool-0": {"max_size": 1048576}}


async def quick_start(sample: Sample) -> None:
    """Its `mount` names a mount point; an application adds one of that name."""
    ran = await sample.run(names())
    module, mount = ran.MyModule, ran.mount
    mounted: list[tuple[object, ...]] = []

    class Coordinator:
        async def mount(self, point: str, instance: object, name: str) -> None:
            mounted.append((point, instance, name))

    module.__init__ = lambda self, config: None
    instance = await mount(Coordinator(), {})
    assert isinstance(instance, module)
    assert mounted == [("category", instance, "my-module")]


async def protocol(sample: Sample) -> None:
    ran = await sample.run(names())
    assert isinstance(MockTool(), ran.Tool)
    assert not isinstance(object(), ran.Tool)
    for name in ("name", "description"):
        assert isinstance(getattr(Tool, name), property)
        assert isinstance(getattr(ran.Tool, name), property)
    assert parameters_of(Tool.execute) == parameters_of(ran.Tool.execute)


def parameters_of(function: object) -> list[str]:
    assert callable(function)
    return list(inspect.signature(function).parameters)


async def call_model(sample: Sample) -> None:
    ran = await sample.run(names(BaseModel=object))
    fields = {"id": "call_1", "name": "work", "arguments": {"a": 1}}
    assert set(ran.ToolCall.__annotations__) == set(fields)
    made = ToolCall(id="call_1", name="work", arguments={"a": 1})
    assert {name: getattr(made, name) for name in fields} == fields


async def result_model(sample: Sample) -> None:
    ran = await sample.run(names(BaseModel=object))
    for name in ran.ToolResult.__annotations__:
        assert getattr(ToolResult(), name) == getattr(ran.ToolResult, name)
    made = ToolResult(success=False, output={"a": [1]}, error={"message": "no"})
    assert (made.success, made.output) == (False, {"a": [1]})
    assert made.error == {"message": "no"}


async def my_tool() -> type:
    """Put the class together of the three samples that show a part of it."""

    class Base:
        def __init__(self, config: dict[str, object]) -> None:
            self.config = config

        async def _do_work(self, param: str) -> str:
            if param == "fail":
                raise OSError("disk")
            return f"{param} within {self.config.get('max_size')}"

    found = samples()
    ran = await found["Tool Contract / Name and Description"].run(names())
    parts: list[type] = [ran.MyTool]
    for heading in ("execute() Method", "Tool Schema (Optional but Recommended)"):
        ran = await found[f"Tool Contract / {heading}"].run(names(), "class Part:")
        parts.append(ran.Part)
    return type("MyTool", (*parts, Base), {})


async def used_in_a_session(sample: Sample) -> None:
    """Name, description, schema and `execute`: a model calls the tool, and reads result or error."""
    await sample.run(names(), within="class Part:")
    mount = await samples()["Tool Contract / mount() Function"].run(
        names(MyTool=await my_tool())
    )
    for arguments, success, text in [
        ({"required_param": "a"}, True, "a within 1048576"),
        ({"required_param": "fail"}, False, "disk"),
        ({"required_param": ""}, False, "required_param is required"),
        ({}, None, "required_param: missing; expected a string"),
    ]:
        recorder = EventRecorder()
        steps = (answer(call("my-tool", arguments)), "Done.")
        async with create_test_session(
            *steps, tools=[mount.mount], hooks=[recorder], configs=CONFIG
        ) as session:
            assert await session.execute("go") == "Done."
            tool = session.coordinator.tools["my-tool"]
            messages = await session.coordinator.context.get_messages()
        assert (tool.name, tool.description[:8]) == ("my_tool", "Performs")
        assert text in str([m["content"] for m in messages if m["role"] == "tool"])
        if success is None:
            assert recorder.get_events("tool:error")
        else:
            (data,) = recorder.data("tool:post")
            result = data["tool_result"]
            assert isinstance(result, ToolResult)
            assert result.success is success


async def observability(sample: Sample) -> None:
    """Each contract's contribution is collected from a session."""
    async with create_test_session("Done.") as session:
        ran = await sample.run(names(coordinator=session.coordinator))
        collected = await session.coordinator.collect_contributions(
            "observability.events"
        )
    module = sample.headings[0].split()[0].lower()
    events = [event for given in collected for event in given]  # type: ignore[attr-defined]
    assert ran.shown == [None]
    prefix = "context:" if module == "context" else f"my-{module}:"
    assert len(events) >= 2
    assert all(event.startswith(prefix) for event in events)


async def testing(sample: Sample) -> None:
    ran = await sample.run(names(MyTool=await my_tool()))
    await ran.test_tool_execution()


async def mock_tool(sample: Sample) -> None:
    """It asserts what is so after a use that it leaves out: a session uses its tool in between."""
    made, asserted = sample.parts("# After use")
    ran = await made.run(names())
    async with create_test_session(
        answer(call("test_tool", {"a": 1})), "Done.", tools=[mounting(ran.mock_tool)]
    ) as session:
        await session.execute("go")
        context = session.coordinator.context
        assert "mock result" in str(await context.get_messages())
    await asserted.run(names(mock_tool=ran.mock_tool, rest={"a": 1}))
