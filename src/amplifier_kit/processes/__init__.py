"""Child processes that leave nothing behind, and what keeps them inside some folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier_kit.processes.captures import Capture
    from amplifier_kit.processes.commands import Command, CommandEnd, Confinement
    from amplifier_kit.processes.environments import allowed_environment
    from amplifier_kit.processes.logs import JobLog
    from amplifier_kit.processes.placeholders import Placeholders
    from amplifier_kit.processes.programs import find_program, foreign_path, safe_path
    from amplifier_kit.processes.pythons import (
        open_python,
        python_argv,
        python_environment,
        start_python,
    )
    from amplifier_kit.processes.sandboxes import SandboxName, confined, find_sandbox
    from amplifier_kit.processes.trees import ProcessTree, run_command

__all__ = [
    "Capture",
    "Command",
    "CommandEnd",
    "Confinement",
    "JobLog",
    "Placeholders",
    "ProcessTree",
    "SandboxName",
    "allowed_environment",
    "confined",
    "find_program",
    "find_sandbox",
    "foreign_path",
    "open_python",
    "python_argv",
    "python_environment",
    "run_command",
    "safe_path",
    "start_python",
]

_HOME = {
    "captures": ("Capture",),
    "commands": ("Command", "CommandEnd", "Confinement"),
    "environments": ("allowed_environment",),
    "logs": ("JobLog",),
    "placeholders": ("Placeholders",),
    "programs": ("find_program", "foreign_path", "safe_path"),
    "pythons": ("open_python", "python_argv", "python_environment", "start_python"),
    "sandboxes": ("SandboxName", "confined", "find_sandbox"),
    "trees": ("ProcessTree", "run_command"),
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
