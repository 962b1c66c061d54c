"""The test coordinator: a real one that remembers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import anyio
import pytest

from amplifier import ModuleCoordinator
from amplifier.testing import (
    EventRecorder,
    MockApprovalSystem,
    MockContextManager,
    MockCoordinator,
    MockDisplaySystem,
    MockTool,
    TestCoordinator,
    create_test_coordinator,
)
from amplifier_sdk import Coordinator, HookResult, JSONValue
from amplifier_sdk.errors import OwnerTaskError


def test_it_is_a_real_coordinator_with_the_tests_session_id() -> None:
    coordinator = TestCoordinator()

    assert isinstance(coordinator, ModuleCoordinator)
    assert coordinator.session_id == "test-session"
    assert coordinator.config == {
        "session": {"orchestrator": "test-orchestrator", "context": "test-context"}
    }


def test_its_other_name_is_the_same_class() -> None:
    assert MockCoordinator is TestCoordinator


def test_pytest_takes_it_for_no_test_class() -> None:
    assert TestCoordinator.__test__ is False


def test_plan_and_ids_may_be_given() -> None:
    coordinator = TestCoordinator(
        {"session": {}, "tools": []}, session_id="mine", parent_id="parent"
    )

    assert coordinator.config == {"session": {}, "tools": []}
    assert (coordinator.session_id, coordinator.parent_id) == ("mine", "parent")


async def test_it_remembers_what_was_mounted_and_unmounted() -> None:
    coordinator, tool = TestCoordinator(), MockTool()

    await coordinator.mount("tools", tool, name="mine")
    _ = coordinator.mount("context", MockContextManager())
    await coordinator.unmount("tools", "mine")

    assert coordinator.mount_history[0] == {
        "mount_point": "tools",
        "module": tool,
        "name": "mine",
    }
    assert [entry["mount_point"] for entry in coordinator.mount_history] == [
        "tools",
        "context",
    ]
    assert coordinator.unmount_history == [{"mount_point": "tools", "name": "mine"}]


async def test_a_mount_that_fails_is_not_remembered() -> None:
    coordinator = TestCoordinator()

    with pytest.raises(ValueError, match="Unknown mount point 'tool'"):
        _ = coordinator.mount("tool", MockTool())
    with pytest.raises(ValueError, match="Unknown mount point 'tool'"):
        await coordinator.unmount("tool", "mine")

    assert coordinator.mount_history == []
    assert coordinator.unmount_history == []


async def test_what_is_mounted_is_found_by_name() -> None:
    coordinator, tool, context = TestCoordinator(), MockTool(), MockContextManager()

    assert coordinator.get_mounted("tools") == {}
    assert coordinator.get_mounted("context") == {}
    await coordinator.mount("tools", tool)
    await coordinator.mount("context", context)
    coordinator.hooks.register("tool:pre", EventRecorder(), name="mine")

    assert coordinator.get_mounted("tools") == {"mock_tool": tool}
    assert coordinator.get_mounted("context") == {"context": context}
    assert coordinator.get_mounted("hooks") == {"tool:pre": ["mine"]}
    with pytest.raises(ValueError, match="Unknown mount point 'provider'"):
        coordinator.get_mounted("provider")


async def test_person_allows_and_display_keeps_by_default() -> None:
    coordinator = TestCoordinator()
    result = await coordinator.process_hook_result(
        HookResult(action="ask_user", approval_prompt="May I?", user_message="Careful"),
        "tool:pre",
        "mine",
    )

    assert not result.denied
    assert isinstance(coordinator.approval_system, MockApprovalSystem)
    assert [question.prompt for question in coordinator.approval_system.questions] == [
        "May I?"
    ]
    assert isinstance(coordinator.display_system, MockDisplaySystem)
    assert [shown.message for shown in coordinator.display_system.messages] == [
        "Careful"
    ]

    person, screen = MockApprovalSystem("Deny"), MockDisplaySystem()
    other = TestCoordinator(approval_system=person, display_system=screen)
    assert (other.approval_system, other.display_system) == (person, screen)


async def test_the_cleanup_runs_what_modules_registered() -> None:
    released: list[str] = []

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> Callable[[], None]:
        coordinator.register_cleanup(lambda: released.append("registered"))
        return lambda: released.append("returned")

    coordinator = TestCoordinator()
    cleanup = await mount(coordinator, {})
    cleanup()
    await coordinator.cleanup()

    assert released == ["returned", "registered"]


@asynccontextmanager
async def resource(events: list[str]) -> AsyncIterator[str]:
    async with anyio.create_task_group():
        events.append("opened")
        yield "value"
        events.append("closed")


async def test_module_may_own_task_inside_block_and_only_there() -> None:
    events: list[str] = []

    with anyio.fail_after(5):
        async with TestCoordinator() as coordinator:
            assert await coordinator.own(resource(events), name="resource") == "value"
            events.append("used")

    assert events == ["opened", "used", "closed"]
    with pytest.raises(OwnerTaskError, match="resource"):
        await coordinator.own(resource(events), name="resource")


async def test_block_cleans_up_and_lets_errors_through_as_they_are() -> None:
    released: list[str] = []

    with pytest.raises(ValueError, match="boom"):
        async with TestCoordinator() as coordinator:
            coordinator.register_cleanup(lambda: released.append("released"))
            raise ValueError("boom")

    assert released == ["released"]


async def test_a_basic_setup_is_one_call() -> None:
    coordinator = create_test_coordinator()
    echo, fail = (coordinator.tools[name] for name in ("echo", "fail"))

    assert isinstance(coordinator.context, MockContextManager)
    assert (await echo.execute({})).output == "Echo response"
    assert not (await fail.execute({})).success
    assert create_test_coordinator({"session": {}}).config == {"session": {}}


async def test_names_of_the_contracts_and_the_original_are_there() -> None:
    """Row 15: both class names, `create_test_coordinator`, `get_mounted`, both spellings of `MockTool`."""
    first, second = TestCoordinator(), MockCoordinator()
    contracts = MockTool(name="a", description="A.", return_value=1)
    original = MockTool("b", output=2)

    for coordinator, tool in ((first, contracts), (second, original)):
        await coordinator.mount("tools", tool)

    assert first.get_mounted("tools") == {"a": contracts}
    assert second.mount_points["tools"] == {"b": original}
    assert [(await tool.execute({})).output for tool in (contracts, original)] == [1, 2]
    assert set(create_test_coordinator().get_mounted("tools")) == {"echo", "fail"}
