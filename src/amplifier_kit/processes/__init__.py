"""Child processes that leave nothing behind, and what keeps them inside some folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier_kit.processes.captures import Capture as Capture
    from amplifier_kit.processes.commands import Command as Command
    from amplifier_kit.processes.commands import CommandEnd as CommandEnd
    from amplifier_kit.processes.commands import Confinement as Confinement
    from amplifier_kit.processes.environments import (
        allowed_environment as allowed_environment,
    )
    from amplifier_kit.processes.logs import JobLog as JobLog
    from amplifier_kit.processes.placeholders import Placeholders as Placeholders
    from amplifier_kit.processes.programs import find_program as find_program
    from amplifier_kit.processes.programs import foreign_path as foreign_path
    from amplifier_kit.processes.programs import safe_path as safe_path
    from amplifier_kit.processes.pythons import open_python as open_python
    from amplifier_kit.processes.pythons import python_argv as python_argv
    from amplifier_kit.processes.pythons import python_environment as python_environment
    from amplifier_kit.processes.pythons import start_python as start_python
    from amplifier_kit.processes.sandboxes import SandboxName as SandboxName
    from amplifier_kit.processes.sandboxes import confined as confined
    from amplifier_kit.processes.sandboxes import find_sandbox as find_sandbox
    from amplifier_kit.processes.trees import ProcessTree as ProcessTree
    from amplifier_kit.processes.trees import run_command as run_command

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
    "Capture": "captures",
    "Command": "commands",
    "Confinement": "commands",
    "CommandEnd": "commands",
    "JobLog": "logs",
    "Placeholders": "placeholders",
    "ProcessTree": "trees",
    "SandboxName": "sandboxes",
    "allowed_environment": "environments",
    "confined": "sandboxes",
    "find_program": "programs",
    "find_sandbox": "sandboxes",
    "foreign_path": "programs",
    "open_python": "pythons",
    "python_argv": "pythons",
    "python_environment": "pythons",
    "run_command": "trees",
    "safe_path": "programs",
    "start_python": "pythons",
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
