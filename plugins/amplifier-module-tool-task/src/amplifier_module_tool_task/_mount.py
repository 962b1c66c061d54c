"""What the entry point names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from amplifier_module_tool_task.agents import Agents
from amplifier_module_tool_task.config import TaskConfig
from amplifier_module_tool_task.events import TASK_EVENTS
from amplifier_module_tool_task.task import TaskTool
from amplifier_sdk.configuration import read_config
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.events import SESSION_RESUME, SESSION_START
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["mount"]

_NAME: Final = "tool-task"


async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> TaskTool:
    """Make the tool of a session.

    The agents that other modules contribute are asked for when the session starts: all modules are mounted then.

    Raises:
        ConfigError: the configuration does not fit.
    """
    settings = read_config(TaskConfig, config, subject=f"configuration of {_NAME}")
    agents = Agents(coordinator, has_self=settings.self_delegation)
    coordinator.register_contributor(
        "observability.events", _NAME, lambda: list(TASK_EVENTS)
    )

    tool = TaskTool(settings, coordinator, agents)

    async def collect(event: str, _: object) -> None:
        await agents.collect()
        if event == SESSION_RESUME:
            await tool.background.recall()

    # Modules that are mounted after this one may contribute as well.
    for event in (SESSION_START, SESSION_RESUME):
        coordinator.register_cleanup(
            coordinator.hooks.register(event, collect, 0, _NAME, decides=False)
        )
    return tool
