"""The pytest plugin for tests of the original's modules: fixtures that find the module and mount it, on asyncio.

The fixtures are plain functions and keep what they mount in an event loop of its own thread, so that they serve tests
of any plugin for async tests, or of none.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator
from importlib import import_module
from inspect import isawaitable
from pathlib import Path
from typing import TypeAlias, TypeVar, cast

import pytest

from amplifier.compat.original.message_models import ChatResponse, TextBlock
from amplifier.compat.original.testing import (
    EventRecorder,
    MockContextManager,
    MockCoordinator,
    MockTool,
)
from amplifier.compat.original.validation.portal import Portal, open_portal

__all__ = [
    "context_module",
    "coordinator",
    "hook_cleanup",
    "mock_deps",
    "orchestrator_module",
    "original_portal",
    "provider_module",
    "tool_module",
]

T = TypeVar("T")


@pytest.fixture
def original_portal() -> Iterator[Portal]:
    """The event loop in which modules are mounted and called."""
    with open_portal() as portal:
        yield portal


@pytest.fixture
def coordinator() -> MockCoordinator:
    """A fresh coordinator; the module under test is mounted on it by the fixtures that return it."""
    return MockCoordinator()


@pytest.fixture
def mock_deps() -> tuple[
    MockContextManager, dict[str, object], dict[str, MockTool], EventRecorder
]:
    """What an orchestrator is called with: context, providers, tools and hooks."""
    tool = MockTool("test_tool", "test result")
    return (
        MockContextManager(),
        {"default": _Answering()},
        {tool.name: tool},
        EventRecorder(),
    )


class _Answering:
    """A provider that always answers the same."""

    name = "mock"

    async def complete(self, _: object, **__: object) -> ChatResponse:
        return ChatResponse(content=[TextBlock(text="Mock response")])

    def parse_tool_calls(self, _: object) -> list[object]:
        return []


def _mount(path: Path | None, coordinator: MockCoordinator, portal: Portal) -> object:
    """Mount the module under test and return what its mount returned."""
    if path is None:
        pytest.skip("the tests lie in no module's project")
    folder = str(path.parent)
    # it stays there: the module may import parts of itself when it is called
    if folder not in sys.path:
        sys.path.insert(0, folder)
    mount = cast(
        "Callable[[object, dict[str, object]], Awaitable[object]]",
        import_module(path.name.removesuffix(".py")).mount,
    )
    returned = portal.call(mount, coordinator, {})
    if callable(returned):
        coordinator.register_cleanup(returned)
    return returned


_Fixture: TypeAlias = Callable[..., Iterator[object]]  # type: ignore[explicit-any]  # pytest's


def _mounted_at(point: str, what: str) -> _Fixture:
    """Make the fixture of what the module mounts at a point, or returns; it is released afterwards."""

    def mounted_module(
        module_path: Path | None, coordinator: MockCoordinator, original_portal: Portal
    ) -> Iterator[object]:
        returned = _mount(module_path, coordinator, original_portal)
        mounted = [
            call["module"]
            for call in coordinator.mount_history
            if call["mount_point"] == point
        ]
        if not mounted and (returned is None or callable(returned)):
            pytest.skip(f"the module mounted nothing at {point!r}")
        yield (mounted or [returned])[0]
        original_portal.call(coordinator.cleanup)

    mounted_module.__doc__ = f"The first {what} that the module under test mounts."
    return pytest.fixture(mounted_module)


provider_module: _Fixture = _mounted_at("providers", "provider")
tool_module: _Fixture = _mounted_at("tools", "tool")
orchestrator_module: _Fixture = _mounted_at("orchestrator", "orchestrator")
context_module: _Fixture = _mounted_at("context", "context manager")


@pytest.fixture
def hook_cleanup(
    module_path: Path | None, coordinator: MockCoordinator, original_portal: Portal
) -> Iterator[Callable[[], object] | None]:
    """The hook module under test, mounted: a function that releases it, or `None`."""
    returned = _mount(module_path, coordinator, original_portal)

    def release() -> object:
        answer = returned()  # type: ignore[operator]  # asked below
        if isawaitable(answer):
            return original_portal.call(_awaited, answer)
        return answer

    yield release if callable(returned) else None
    original_portal.call(coordinator.cleanup)


async def _awaited(answer: Awaitable[T]) -> T:
    return await answer
