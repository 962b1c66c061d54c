"""What tests of the original's modules use: a coordinator that remembers, and doubles of the rest."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from typing import ClassVar, TypedDict
from unittest.mock import AsyncMock

from amplifier.compat.original.coordinator import ModuleCoordinator
from amplifier.compat.original.models import HookResult, ToolResult
from amplifier.testing.conditions import wait_for

__all__ = [
    "EventRecorder",
    "MockContextManager",
    "MockCoordinator",
    "MockTool",
    "ScriptedOrchestrator",
    "TestCoordinator",
    "create_test_coordinator",
    "wait_for",
]

_PLAN: Mapping[str, object] = {
    "session": {"orchestrator": "test-orchestrator", "context": "test-context"}
}


class _Mounted(TypedDict):
    mount_point: str
    module: object
    name: str | None


class _Unmounted(TypedDict):
    mount_point: str
    name: str | None


class MockCoordinator(ModuleCoordinator):
    """A coordinator for calling a module's `mount` in a test; `mount_history` and `unmount_history` hold the calls."""

    __test__: ClassVar[bool] = False

    def __init__(self) -> None:
        approval = AsyncMock()
        approval.request_approval = AsyncMock(return_value="Allow")
        super().__init__(
            None, approval, AsyncMock(), session_id="test-session", config=dict(_PLAN)
        )
        self.mount_history: list[_Mounted] = []
        self.unmount_history: list[_Unmounted] = []

    def mount(
        self, mount_point: str, module: object, name: str | None = None
    ) -> Awaitable[None]:
        """Mount an instance, and note it."""
        self.mount_history.append(
            {"mount_point": mount_point, "module": module, "name": name}
        )
        return super().mount(mount_point, module, name)

    async def unmount(self, mount_point: str, name: str | None = None) -> None:
        """Take an instance away, and note it."""
        self.unmount_history.append({"mount_point": mount_point, "name": name})
        await super().unmount(mount_point, name)

    def get_mounted(self, mount_point: str) -> object:
        """Return what stands at a mount point."""
        return self.get(mount_point)


TestCoordinator = MockCoordinator
"""The coordinator under its earlier name."""


class MockTool:
    """A tool with one answer; `execute` is an `AsyncMock`."""

    def __init__(
        self,
        name: str = "mock_tool",
        output: object = "Success",
        *,
        description: str | None = None,
        return_value: object = None,
        input_schema: Mapping[str, object] | None = None,
    ) -> None:
        self.name: str = name
        self.description: str = description or f"Mock tool: {name}"
        self.output: object = output if return_value is None else return_value
        self.input_schema: Mapping[str, object] = input_schema or {
            "type": "object",
            "properties": {},
        }
        self.call_count: int = 0
        self.last_input: object = None
        self.execute: AsyncMock = AsyncMock(side_effect=self._execute)

    async def _execute(self, input: object) -> object:
        self.call_count += 1
        self.last_input = input
        if isinstance(self.output, ToolResult):
            return self.output
        return ToolResult(success=True, output=self.output)


class MockContextManager:
    """A context that is a list; its methods are `AsyncMock`s."""

    def __init__(self, messages: Iterable[Mapping[str, object]] | None = None) -> None:
        self.messages: list[Mapping[str, object]] = list(messages or [])
        self.add_message: AsyncMock = AsyncMock(side_effect=self.messages.append)
        self.get_messages: AsyncMock = AsyncMock(side_effect=self._all)
        self.get_messages_for_request: AsyncMock = AsyncMock(side_effect=self._all)
        self.set_messages: AsyncMock = AsyncMock(side_effect=self._set)
        self.clear: AsyncMock = AsyncMock()

    def _all(self, *_: object, **__: object) -> list[Mapping[str, object]]:
        return list(self.messages)

    def _set(self, messages: Iterable[Mapping[str, object]]) -> None:
        self.messages[:] = messages


class EventRecorder:
    """Stands for the hooks and keeps what is emitted in `events`."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, object]]] = []

    async def record(self, event: str, data: Mapping[str, object]) -> HookResult:
        """Keep an event."""
        self.events.append((event, dict(data)))
        return HookResult(action="continue")

    async def emit(self, event: str, data: Mapping[str, object]) -> HookResult:
        """Keep an event."""
        return await self.record(event, data)

    def get_events(
        self, event_type: str | None = None
    ) -> list[tuple[str, dict[str, object]]]:
        """Return the events, or those of one name."""
        return [
            entry
            for entry in self.events
            if event_type is None or entry[0] == event_type
        ]

    def clear(self) -> None:
        """Forget what was emitted."""
        self.events.clear()


class ScriptedOrchestrator:
    """Answers each turn from a list, and then `DONE`."""

    def __init__(self, responses: Iterable[str]) -> None:
        self.responses: list[str] = list(responses)
        self.call_count: int = 0

    async def execute(
        self,
        prompt: str,  # noqa: ARG002  # the contract's
        context: object,  # noqa: ARG002
        providers: object,  # noqa: ARG002
        tools: object,  # noqa: ARG002
        hooks: object,  # noqa: ARG002
    ) -> str:
        """Give the next answer."""
        number = self.call_count
        self.call_count += 1
        if number < len(self.responses):
            return self.responses[number]
        return "DONE"


def create_test_coordinator() -> MockCoordinator:
    """Make a coordinator with a context and the tools `echo` and `fail`."""
    coordinator = MockCoordinator()
    coordinator.mount_points["context"] = MockContextManager()
    tools = (
        MockTool("echo", "Echo response"),
        MockTool("fail", ToolResult(success=False, error={"message": "Failed"})),
    )
    for tool in tools:
        coordinator.mount_points["tools"][tool.name] = tool  # type: ignore[index]  # a table
    return coordinator
