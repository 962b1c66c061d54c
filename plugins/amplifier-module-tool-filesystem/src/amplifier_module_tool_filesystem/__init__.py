"""The tool module `tool-filesystem`: read, write, edit, list and search files inside some directories."""

from __future__ import annotations

from amplifier_module_tool_filesystem.config import FilesystemConfig, agent_config
from amplifier_module_tool_filesystem.filesystem import Filesystem

__all__ = ["Filesystem", "FilesystemConfig", "agent_config"]
