"""External commands as hooks, and plugin folders as Claude Code has them."""

from __future__ import annotations

from amplifier_module_hooks_shell._mount import mount
from amplifier_module_hooks_shell.config import (
    HookConfig,
    ShellHooksConfig,
    agent_config,
)

__all__ = ["HookConfig", "ShellHooksConfig", "agent_config", "mount"]
