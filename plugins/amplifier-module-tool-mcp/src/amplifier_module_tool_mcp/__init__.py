"""The tool module `tool-mcp`: the tools of MCP servers, as they were when a person agreed to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_module_tool_mcp.config import McpConfig, ServerConfig
from amplifier_module_tool_mcp.module import McpServers, mount
from amplifier_module_tool_mcp.notices import BEGIN

if TYPE_CHECKING:
    from amplifier_sdk.contracts import Coordinator

__all__ = ["McpConfig", "McpServers", "ServerConfig", "mount", "on_session_ready"]


async def on_session_ready(coordinator: Coordinator) -> None:
    """Let the module's instances tell what happened before there was anybody to hear it."""
    await coordinator.collect_contributions(BEGIN)
