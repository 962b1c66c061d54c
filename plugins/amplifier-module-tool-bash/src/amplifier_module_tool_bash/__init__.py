"""The tool module `tool-bash`: shell commands, evaluated by rules, confined by a sandbox, with nothing left running."""

from __future__ import annotations

from amplifier_module_tool_bash.bash import Bash
from amplifier_module_tool_bash.config import BashConfig

__all__ = ["Bash", "BashConfig"]
