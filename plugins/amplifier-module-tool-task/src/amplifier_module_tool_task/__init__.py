"""The tool module `tool-task`: hand pieces of work to agents, each in a child session within limits."""

from __future__ import annotations

from amplifier_module_tool_task._mount import mount
from amplifier_module_tool_task.config import TaskConfig

__all__ = ["TaskConfig", "mount"]
