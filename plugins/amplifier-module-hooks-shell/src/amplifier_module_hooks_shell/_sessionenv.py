"""The file in which hooks of a session's start leave variables for what is run later."""

from __future__ import annotations

import os
from typing import Final

from amplifier_module_hooks_shell._surroundings import HookEnvironment

__all__ = ["SESSION_ENVIRONMENT", "EnvironmentFile"]

SESSION_ENVIRONMENT: Final = "session.environment"
"""The capability under which the variables are offered."""

_SECONDS: Final = 5.0
_READ: Final = 'set -a; . "$CLAUDE_ENV_FILE" >/dev/null 2>&1; set +a; exec env -0'
_UNTAKEN: Final = frozenset(
    {"_", "PWD", "OLDPWD", "SHLVL", "CLAUDE_ENV_FILE", "AMPLIFIER_PROCESS_TREE"}
)


class EnvironmentFile:
    """One such file; what it says is read as a shell reads it.

    Args:
        surroundings: the session's; what comes after is given the variables.
    """

    def __init__(self, surroundings: HookEnvironment) -> None:
        self._surroundings = surroundings
        self.path: Final = f"{surroundings.scratch}/environment.sh"
        with open(
            os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb"
        ):
            pass  # hooks append to it

    async def read(self) -> None:
        """Take the variables that stand in it now."""
        if not os.stat(self.path).st_size:
            return
        env = {"CLAUDE_ENV_FILE": self.path}
        before = self._surroundings.environment(env)
        # Read by a shell, since hooks write what only a shell can evaluate.
        ran = await self._surroundings.run(_READ, input="", timeout=_SECONDS, env=env)
        if ran.failure is not None or ran.code:
            return
        found = dict(
            entry.split("=", 1) for entry in ran.output.split("\0") if "=" in entry
        )
        changed = {
            name: value
            for name, value in found.items()
            if name not in _UNTAKEN and before.get(name) != value
        }
        self._surroundings.added.update(changed)
        self._surroundings.coordinator.register_capability(
            SESSION_ENVIRONMENT, dict(self._surroundings.added)
        )
