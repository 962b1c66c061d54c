"""Sessions made of doubles and of what a test is about."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pytest

from amplifier.testing import (
    EventRecorder,
    MemoryJournal,
    MockApprovalSystem,
    MockContextManager,
    MockDisplaySystem,
    MockTool,
    ScriptedProvider,
    answer,
    call,
    create_test_session,
    mounting,
)
from amplifier_sdk import (
    ConfigError,
    Coordinator,
    HookResult,
    JSONValue,
    on,
    tool,
    toolset,
)
from amplifier_sdk.errors import ModuleError
from amplifier_sdk.events import TOOL_PRE, ToolPre


@tool
async def double(x: int) -> int:
    """Doubles a number."""
    return 2 * x


@attrs.frozen(kw_only=True)
class Greeting:
    greeting: str = "Hello"


@toolset
class Greeter:
    def __init__(self, config: Greeting) -> None:
        self.greeting = config.greeting

    @tool
    async def greet(self, name: str) -> str:
        """Greets somebody."""
        return f"{self.greeting} {name}"


@on(TOOL_PRE)
async def refuse(event: str, data: ToolPre) -> HookResult:
    return HookResult.deny("not today")


async def mount_tool(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
    await coordinator.mount("tools", MockTool("mounted"))


async def test_a_session_of_doubles_answers_from_its_script() -> None:
    async with create_test_session("Hi", "Bye") as session:
        assert [await session.execute(prompt) for prompt in ("a", "b")] == ["Hi", "Bye"]

    assert session.session_id == "test-session"


async def test_modules_of_every_form_are_mounted() -> None:
    plain = MockTool("plain")
    session = create_test_session(
        answer(
            call("double", {"x": 2}, id="a"),
            call("greet", {"name": "Ada"}, id="b"),
            call("plain", id="c"),
        ),
        "Done",
        tools=[double, Greeter, plain, mount_tool],
        configs={"tool-1": {"greeting": "Hi"}},
    )

    async with session:
        assert await session.execute("Go") == "Done"
        assert list(session.coordinator.tools) == [
            "double",
            "greet",
            "plain",
            "mounted",
        ]
        context = session.coordinator.context

    assert isinstance(context, MockContextManager)
    assert context.results == {"a": "4", "b": "Hi Ada", "c": "Success"}


async def test_handlers_and_recorders_are_hook_modules() -> None:
    recorder = EventRecorder()
    spy = MockTool()

    async with create_test_session(
        answer(call("mock_tool")), "Done", tools=[spy], hooks=[refuse, recorder]
    ) as session:
        await session.execute("Go")

    assert spy.call_count == 0
    assert recorder.one("tool:pre")["tool_name"] == "mock_tool"


async def test_every_part_may_be_the_tests_own() -> None:
    provider, context = ScriptedProvider("Hi"), MockContextManager()
    person, screen, journal = MockApprovalSystem(), MockDisplaySystem(), MemoryJournal()
    session = create_test_session(
        provider=provider,
        context=context,
        journal=journal,
        approval_system=person,
        display_system=screen,
        session_id="child",
        parent_id="parent",
        is_resumed=True,
        settings={"limits": {"iterations": 3}},
    )

    async with session:
        await session.execute("Hello")
        coordinator = session.coordinator

    assert provider.last_messages == [("user", "Hello")]
    assert context.roles == ["user", "assistant"]
    assert journal.records
    assert (coordinator.approval_system, coordinator.display_system) == (person, screen)
    assert (session.session_id, session.parent_id, session.is_resumed) == (
        "child",
        "parent",
        True,
    )
    assert coordinator.host.limits.iterations == 3


def test_settings_that_do_not_fit_are_refused_at_once() -> None:
    with pytest.raises(ConfigError, match=r"limits\.iterations"):
        create_test_session(settings={"limits": {"iterations": 0}})


async def test_a_module_may_be_one_whose_mount_fails() -> None:
    async with create_test_session(
        "Hi", tools=[mounting(ValueError("boom"))]
    ) as session:
        (failure,) = session.failures

    assert isinstance(failure, ModuleError)
    assert "boom" in str(failure)
