"""What all commands of a session share: where they start, their environment, and a folder for temporary files."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from amplifier_kit.injections import longest_injection
from amplifier_kit.processes import allowed_environment, find_program
from amplifier_kit.redaction import redactor_of
from amplifier_kit.trust import TrustStore, changed_code
from amplifier_module_hooks_shell._loaded import LoadedPlugin
from amplifier_module_hooks_shell._process import CommandResult, run_hook
from amplifier_module_hooks_shell.config import ShellHooksConfig
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.events import Event
from amplifier_sdk.results import HookResult
from amplifier_sdk.threads import run_blocking

__all__ = ["NAME", "SESSION_ENVIRONMENT", "EnvironmentFile", "HookEnvironment"]

SESSION_ENVIRONMENT: Final = "session.environment"
"""The capability under which the variables are offered."""
_SECONDS: Final = 5.0
_READ: Final = 'set -a; . "$CLAUDE_ENV_FILE" >/dev/null 2>&1; set +a; exec env -0'
_UNTAKEN: Final = frozenset(
    {"_", "PWD", "OLDPWD", "SHLVL", "CLAUDE_ENV_FILE", "AMPLIFIER_PROCESS_TREE"}
)

P = TypeVar("P", bound=Mapping[str, object])

NAME: Final = "hooks-shell"
"""What the module is called in plans and messages."""

_GRACE: Final = 5.0
"""Seconds that a handler has beyond those of what it runs, to end it and to read what it said."""


class HookEnvironment:
    """One session's: the coordinator, the settings, and what is given to commands.

    Args:
        coordinator: the session's.
        config: the module's settings.
    """

    def __init__(self, coordinator: Coordinator, config: ShellHooksConfig) -> None:
        self.coordinator: Final = coordinator
        self.config: Final = config
        self.added: dict[str, str] = {}
        self._scratch: str | None = None

    @property
    def directory(self) -> str:
        """The folder in which the session works."""
        value = self.coordinator.get_capability("session.working_dir")
        return os.path.realpath(value if isinstance(value, (str, Path)) else ".")

    @property
    def is_child(self) -> bool:
        """Whether the session works for another one."""
        return self.coordinator.parent_id is not None

    @property
    def longest_context(self) -> int:
        """How many characters a text of a hook may have that enters the conversation."""
        return longest_injection(self.coordinator, self.config.max_context)

    @property
    def scratch(self) -> str:
        """A folder that only this user may enter; made when it is first needed."""
        if self._scratch is None:
            self._scratch = os.path.realpath(
                tempfile.mkdtemp(prefix="amplifier-hooks-")
            )
        return self._scratch

    def environment(self, added: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a command: the ordinary variables, those that are listed, and what is added."""
        own = {
            "CLAUDE_PROJECT_DIR": self.directory,
            "AMPLIFIER_SESSION_ID": self.coordinator.session_id,
        }
        return allowed_environment(
            self.config.env_allow, {**own, **self.added, **self.config.env, **added}
        )

    async def run(
        self,
        command: str | tuple[str, ...],
        *,
        input: str,
        timeout: float,
        env: Mapping[str, str],
        loaded: LoadedPlugin | None = None,
    ) -> CommandResult:
        """Run a program with its arguments, or a shell text; not where it would run what changed since it was trusted.

        Args:
            command: which; a text is for `bash`, else `sh`.
            input: what stands on its standard input.
            timeout: seconds it may take.
            env: variables that are added.
            loaded: the plugin whose it is; files of a project that it brings are run from copies.
        """
        if isinstance(command, str):
            text = command
        else:
            text = shlex.join(command)
        changed = await run_blocking(
            partial(self._changed, text, loaded), name="hooks-shell.trust"
        )
        if changed:
            return CommandResult(
                code=126,
                failure=f"it was not run: {changed}; look at it and run 'amplifier trust'",
            )
        if loaded is not None:
            text = loaded.command(text)
        if isinstance(command, str):
            command = (find_program("bash") or "/bin/sh", "-c", text)
        return await run_hook(
            command,
            directory=self.directory,
            environment=self.environment(env),
            input=input,
            timeout=timeout,
            limit=self.config.max_output_bytes,
        )

    def _changed(self, text: str, loaded: LoadedPlugin | None) -> str:
        """Say what a command would run that is other than a person trusted; empty when nothing is."""
        trusted = {} if loaded is None else loaded.contents
        copied = () if loaded is None else loaded.copies_in(text)
        try:
            names = changed_code(
                TrustStore.in_home(),
                Path(self.directory),
                text,
                trusted=trusted,
                copied=copied,
            )
        except (OSError, ValueError) as error:
            return f"what was trusted cannot be read: {error}"
        if names:
            return f"{', '.join(map(ascii, names))} changed since it was trusted"
        return ""

    def listen(
        self,
        event: Event[P],
        handler: Callable[[str, P], Awaitable[HookResult | None] | HookResult | None],
        *,
        decides: bool = False,
        priority: int = 0,
        runs: float | None = None,
        name: str = NAME,
    ) -> None:
        """Hear an event until the session ends.

        Args:
            event: the event, or a glob.
            handler: what hears it.
            decides: whether its failure is a denial.
            priority: lower ones run earlier.
            runs: seconds that what it runs may take; `None` for the session's own limit.
            name: what it is called in messages.
        """
        timeout = None
        if runs is not None:
            timeout = runs + _GRACE
        unregister = self.coordinator.hooks.register(
            event, handler, priority, name, decides=decides, timeout=timeout
        )
        self.coordinator.register_cleanup(unregister)

    def shown(self, text: str) -> str:
        """Return a text as a person may read it: without secrets."""
        return redactor_of(self.coordinator).redact_text(text)

    def cut(self, text: str) -> str:
        """Return a text as it may enter the conversation: no longer than is allowed."""
        longest = self.longest_context
        if len(text) <= longest:
            return text
        mark = f"\n[… {len(text)} characters in all]"
        return text[: max(0, longest - len(mark))] + mark[: max(0, longest)]

    def remove(self) -> None:
        """Remove the folder for temporary files with all that is in it."""
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None


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
