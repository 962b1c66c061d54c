"""The samples of the tool contract: the same calls and names, in a real session.

Two samples contradict others and are read as the newer ones have it: `get_schema()` is another spelling of
`input_schema`, and a tool's result is `ToolResult`, whatever `execute` is annotated with.
"""

from __future__ import annotations

import pytest

from amplifier import ModuleCoordinator
from amplifier.testing import EventRecorder, MockTool, answer, call, create_test_session
from amplifier.testing.sessions import mounting
from amplifier_sdk import JSONValue, Tool, ToolCall, ToolResult
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.hookspecs import Config
from amplifier_sdk.jsontypes import JSONObject


class MyTool:
    """The contract's `MyTool`, its methods from the sections that show them."""

    def __init__(self, config: Config) -> None:
        self.config = config

    @property
    def name(self) -> str:
        return "my_tool"

    @property
    def description(self) -> str:
        return "Performs specific action with given parameters."

    def get_schema(self) -> JSONObject:
        """Return JSON schema for tool input."""
        return {
            "type": "object",
            "properties": {
                "required_param": {
                    "type": "string",
                    "description": "Description of parameter",
                },
                "optional_param": {"type": "integer", "default": 10},
            },
            "required": ["required_param"],
        }

    async def execute(self, input: JSONObject) -> ToolResult:
        try:
            required_param = input.get("required_param")
            if not required_param:
                return ToolResult(
                    success=False, error={"message": "required_param is required"}
                )

            result = await self._do_work(required_param)

            return ToolResult(success=True, output=result)

        except Exception as e:
            return ToolResult(
                success=False, error={"message": str(e), "type": type(e).__name__}
            )

    async def _do_work(self, param: JSONValue) -> str:
        if param == "fail":
            raise OSError("disk")
        return f"{param}, at most {self.config.get('max_size')}"


async def mount(coordinator: ModuleCoordinator, config: Config) -> Tool:
    tool = MyTool(config=config)
    await coordinator.mount("tools", tool, name="my-tool")
    coordinator.register_contributor(
        "observability.events",
        "my-tool",
        lambda: ["my-tool:started", "my-tool:completed", "my-tool:error"],
    )
    return tool


async def mount_without_await(coordinator: Coordinator, config: Config) -> None:
    coordinator.mount("tools", MyTool(config=config), name="my-tool")  # type: ignore[unused-awaitable]  # as modules do


async def test_the_tool_is_mounted_under_the_name_that_mount_gave_it() -> None:
    async with create_test_session(
        "Done.", tools=[mount], configs={"tool-0": {"max_size": 1048576}}
    ) as session:
        assert list(session.coordinator.get("tools")) == ["my-tool"]  # type: ignore[call-overload]  # a dict of tools
        assert await session.coordinator.collect_contributions(
            "observability.events"
        ) == [["my-tool:started", "my-tool:completed", "my-tool:error"]]


async def test_mounting_needs_no_await() -> None:
    async with create_test_session("Done.", tools=[mount_without_await]) as session:
        assert list(session.coordinator.tools) == ["my-tool"]


@pytest.mark.parametrize(
    ("param", "text"),
    [
        ("a", "a, at most 1048576"),
        ("fail", "disk"),
        ("", "required_param is required"),
    ],
)
async def test_a_model_calls_it_and_reads_its_result_or_its_error(
    param: str, text: str
) -> None:
    recorder = EventRecorder()
    calls = answer(call("my-tool", {"required_param": param}))
    configs = {"tool-0": {"max_size": 1048576}}

    async with create_test_session(
        calls, "Done.", tools=[mount], hooks=[recorder], configs=configs
    ) as session:
        assert await session.execute("go") == "Done."
        messages = await session.coordinator.context.get_messages()

    (reported,) = [
        str(message["content"]) for message in messages if message["role"] == "tool"
    ]
    assert text in reported
    assert [name for name in recorder.names if name.startswith("tool:")] == [
        "tool:pre",
        "tool:post",
    ]


async def test_its_schema_is_what_calls_are_held_against() -> None:
    recorder = EventRecorder()

    async with create_test_session(
        answer(call("my-tool", {})), "Done.", tools=[mount], hooks=[recorder]
    ) as session:
        await session.execute("go")

    assert [name for name in recorder.names if name.startswith("tool:")] == [
        "tool:error"
    ]
    assert "required_param: missing; expected a string" in str(
        recorder.one("tool:error")["error"]
    )


async def test_models_of_call_and_of_result_have_contracts_fields() -> None:
    made = ToolCall(id="call_123", name="my_tool", arguments={"required_param": "a"})

    assert (made.id, made.name, made.arguments, made.input) == (
        "call_123",
        "my_tool",
        made.arguments,
        made.arguments,
    )
    assert ToolResult() == ToolResult(success=True, output=None, error=None)


async def test_the_mock_tool_of_the_contract_counts_its_calls() -> None:
    mock_tool = MockTool(
        name="test_tool", description="Test tool", return_value="mock result"
    )

    async with create_test_session(
        answer(call("test_tool", {"a": 1})), "Done.", tools=[mounting(mock_tool)]
    ) as session:
        await session.execute("go")

    assert mock_tool.call_count == 1
    assert mock_tool.last_input == {"a": 1}
