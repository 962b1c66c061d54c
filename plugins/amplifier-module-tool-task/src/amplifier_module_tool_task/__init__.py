"""The tool module `tool-task`: hand pieces of work to agents, each in a child session within limits."""

from __future__ import annotations

from amplifier_module_tool_task.config import TaskConfig
from amplifier_module_tool_task.task import mount

__all__ = ["TaskConfig", "mount"]
