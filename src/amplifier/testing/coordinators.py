"""A real coordinator that remembers what was done with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from typing import ClassVar, Self, TypedDict

from anyio import AsyncContextManagerMixin

from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier.kernel.groups import open_group
from amplifier.testing.contexts import MockContextManager
from amplifier.testing.people import MockApprovalSystem, MockDisplaySystem
from amplifier.testing.tools import MockTool
from amplifier_sdk.contracts import ApprovalSystem, DisplaySystem
from amplifier_sdk.results import ToolResult

__all__ = [
    "MockCoordinator",
    "MountArguments",
    "TestCoordinator",
    "Unmounted",
    "create_test_coordinator",
]


class MountArguments(TypedDict):
    """What one call of `mount` was given."""

    mount_point: str
    module: object
    name: str | None


class Unmounted(TypedDict):
    """What one call of `unmount` was given."""

    mount_point: str
    name: str | None


class TestCoordinator(AsyncContextManagerMixin, ModuleCoordinator):
    """A coordinator as sessions have it, for calling a module's `mount` in a test.

    `mount_history` and `unmount_history` hold the calls that succeeded. Without an approval system of the
    test's own a `MockApprovalSystem` allows everything, and a `MockDisplaySystem` keeps the messages. Nothing
    releases the modules but `cleanup()`, or `async with` around the test, which also gives modules the task
    group that some of them need.

    Args:
        config: the mount plan that modules see.
        approval_system: who is asked.
        display_system: where messages go.
        session_id: the session's id.
        parent_id: its parent's.
    """

    __test__: ClassVar[bool] = False  # no test class, whatever its name

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        approval_system: ApprovalSystem | None = None,
        display_system: DisplaySystem | None = None,
        session_id: str = "test-session",
        parent_id: str | None = None,
    ) -> None:
        plan = {
            "session": {"orchestrator": "test-orchestrator", "context": "test-context"}
        }
        super().__init__(
            None,
            MockApprovalSystem() if approval_system is None else approval_system,
            MockDisplaySystem() if display_system is None else display_system,
            session_id=session_id,
            parent_id=parent_id,
            config=plan if config is None else config,
        )
        self.mount_history: list[MountArguments] = []
        self.unmount_history: list[Unmounted] = []

    def mount(
        self, mount_point: str, module: object, name: str | None = None
    ) -> Awaitable[None]:
        """Mount an instance as a session does, and note it."""
        # before it is noted: what cannot be mounted raises here
        done = super().mount(mount_point, module, name)
        self.mount_history.append(
            MountArguments(mount_point=mount_point, module=module, name=name)
        )
        return done

    async def unmount(self, mount_point: str, name: str | None = None) -> None:
        """Take an instance away as a session does, and note it."""
        await super().unmount(mount_point, name)
        self.unmount_history.append(Unmounted(mount_point=mount_point, name=name))

    def get_mounted(self, mount_point: str) -> dict[str, object]:
        """Return what stands at a mount point, by name.

        What stands at a single mount point has the point's name. At `hooks` it is the handlers' names, by event.

        Raises:
            ValueError: there is no such mount point.
        """
        if mount_point == "hooks":
            return {
                event: names
                for event, names in self.hooks.list_handlers().items()
                if names
            }
        mounted = self.get(mount_point)
        if isinstance(mounted, dict):
            return dict(mounted)
        if mounted is None:
            return {}
        return {mount_point: mounted}

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncIterator[Self]:
        async with open_group() as group:
            # as a session gives it, whose clean-ups run under a cancellation too
            self.owners.task_group, self.owners.shielded = group, True
            try:
                yield self
            finally:
                await self.cleanup()
                self.owners.task_group = None
                group.cancel_scope.cancel()


MockCoordinator = TestCoordinator
"""The test coordinator under its other name."""


def create_test_coordinator(
    config: Mapping[str, object] | None = None,
) -> TestCoordinator:
    """Make a coordinator on which a `MockContextManager` and the tools `echo` and `fail` are mounted.

    Args:
        config: the mount plan that modules see.
    """
    coordinator = TestCoordinator(config)
    coordinator.mount_points["context"] = MockContextManager()
    coordinator.tools["echo"] = MockTool("echo", "Echo response")
    coordinator.tools["fail"] = MockTool("fail", ToolResult.failure("The tool failed"))
    return coordinator
