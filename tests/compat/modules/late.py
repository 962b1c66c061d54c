"""A tool whose author imports the original when it is needed, and for type checkers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amplifier_core import ModuleCoordinator

__amplifier_module_type__ = "tool"


async def mount(coordinator: ModuleCoordinator, config=None):
    await coordinator.mount("tools", Late())


class Late:
    name = "late"
    description = "Imports late"
    input_schema = {"type": "object"}
    timeout = 1e-9

    async def execute(self, input):
        from amplifier_core import ToolResult

        return ToolResult(success=True, output={"late": True})
