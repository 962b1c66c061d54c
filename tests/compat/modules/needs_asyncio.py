"""A tool that needs asyncio's event loop."""

import asyncio

from amplifier_core import ModuleCoordinator, ToolResult

__amplifier_module_type__ = "tool"


async def mount(coordinator: ModuleCoordinator, config=None):
    await coordinator.mount("tools", Sleeper())


class Sleeper:
    name = "sleeper"
    description = "Waits"
    input_schema = {"type": "object"}

    async def execute(self, input):
        await asyncio.wait_for(asyncio.sleep(0), 5)
        return ToolResult(output="awake")
