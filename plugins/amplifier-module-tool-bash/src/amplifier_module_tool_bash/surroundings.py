"""Where commands run: the folders, the environment, the sandbox, and a folder of their own for temporary files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from amplifier_kit.files.product import FOLDER, ProductFiles
from amplifier_kit.open_data import as_object
from amplifier_kit.processes import (
    Command,
    Confinement,
    Placeholders,
    SandboxName,
    allowed_environment,
    confined,
    find_sandbox,
)
from amplifier_kit.processes.commands import REPORT_HANDLE
from amplifier_kit.shell import PathPolicy
from amplifier_kit.trust import TrustStore, covered_paths
from amplifier_module_tool_bash.caches import tool_caches
from amplifier_module_tool_bash.config import BashConfig
from amplifier_sdk.errors import ConfigError, Problem, ToolError

__all__ = ["ShellEnvironment", "check_text"]

_MAX_COMMAND_BYTES: Final = 100_000
_OWN_TEMPORARY: Final = "/tmp"  # noqa: S108  # in a sandbox that has one of its own there
_TEMPORARY: Final = "tmp"
_BOUND: Final = f"ulimit -f {4 * 1024 * 1024}; "
"""No file grows beyond this number of KiB: a command that writes without end fails before the disk is full."""

_MADE_UP: Final = {
    ".git/commondir": ".\n",
    ".git/config.worktree": "",
    ".git/objects/info/alternates": "",
}
"""Files with which git does what it does without them; they stand so that no command can make others."""

_QUIET: Final = {
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "PAGER": "cat",
    "TERM": "dumb",
}
"""What keeps programs from waiting for a person, and editors from running what they read for one."""
_WARY: Final = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.bareRepository",
    "GIT_CONFIG_VALUE_0": "explicit",
}
"""What keeps git from obeying a folder that merely looks like a repository: its configuration names programs."""


class ShellEnvironment:
    """One session's shell, as far as it outlives a call.

    Args:
        config: the module's configuration.
        directory: where the session works.
        session_environment: returns the capability `session.environment`: variables by name, or `None`.

    Raises:
        ConfigError: a folder of the configuration does not exist.
    """

    def __init__(
        self,
        config: BashConfig,
        directory: Path,
        session_environment: Callable[[], object] = lambda: None,
    ) -> None:
        self._config = config
        self._session_environment = session_environment
        self._project = os.path.realpath(directory)
        self._base = _resolved(config.working_dir or ".", directory)
        self.writable: Final = tuple(
            _resolved(path, Path(self._base)) for path in (".", *config.writable_paths)
        )
        problems = [
            Problem(
                "working_dir" if path == self._base else "writable_paths",
                f"{path} is no directory; create it",
            )
            for path in self.writable
            if not os.path.isdir(path)
        ]
        if problems:
            raise ConfigError(problems, subject="configuration of tool-bash")
        self._caches: tuple[str, ...] | None = None if config.tool_caches else ()
        self.directory = self._base
        self.environment: Final = {
            **_QUIET,
            **_WARY,
            **allowed_environment(config.env_allow, config.env),
        }
        self.sandbox: SandboxName | None = None
        self._scratch: str | None = None
        self._placeholders = Placeholders(_MADE_UP)
        self._product = ProductFiles()

    @property
    def path_policy(self) -> PathPolicy:
        """What the paths of the next command are evaluated by."""
        return PathPolicy(
            directory=self.directory,
            # not `self.scratch`: a question alone makes no folder
            writable=(*self.writable, *filter(None, [self._scratch])),
            protected=(FOLDER, *self._config.protected_paths, *self._trusted()),
            home=os.path.expanduser("~"),
            has_sandbox=self.sandbox not in (None, "none"),
        )

    @property
    def caches(self) -> tuple[str, ...]:
        """The caches that commands in a sandbox may write; looked for when they are first needed."""
        if self._caches is None:
            self._caches = tuple(tool_caches())
        return self._caches

    @property
    def variables(self) -> dict[str, str]:
        """The variables whose values the rules may rely on."""
        environment = self._environment()
        return {
            name: environment[name] for name in ("HOME", "USER") if name in environment
        }

    @property
    def scratch(self) -> str:
        """The folder for temporary files and long output, made when it is first needed; only this user may enter it."""
        if self._scratch is None:
            self._scratch = os.path.realpath(tempfile.mkdtemp(prefix="amplifier-bash-"))
            os.mkdir(f"{self._scratch}/{_TEMPORARY}", 0o700)
            os.mkdir(f"{self._scratch}/output", 0o700)
        return self._scratch

    def confinement(self, *, network: bool) -> str:
        """Say what keeps a command inside; the project is not named, so that an answer may hold in all of them.

        Args:
            network: whether it reaches the network.
        """
        if self.sandbox in (None, "none"):
            return "Not confined: there is no sandbox, it may do whatever you may."
        folders = (
            "the project" if path == self._project else path
            for path in (*self.writable, *self.caches)
        )
        reach = "reaches no network"
        if network:
            reach = "reaches the network"
        return f"Confined by {self.sandbox}: it {reach} and writes in {', '.join(dict.fromkeys(folders))} alone."

    async def choose_sandbox(self) -> SandboxName:
        """Return the sandbox that commands run in; it is tried out once.

        Raises:
            ToolError: none works and one is required.
        """
        if self.sandbox is None:
            self.sandbox = await find_sandbox(self._config.sandbox)
        if self.sandbox == "none" and self._config.require_sandbox:
            raise ToolError(
                "commands must run in a sandbox, and none works here: install bubblewrap, use a Linux kernel with"
                " Landlock, or set require_sandbox to false"
            )
        return self.sandbox

    @contextmanager
    def prepared(
        self, text: str, *, log: str | None = None, network: bool = False
    ) -> Iterator[Command]:
        """Yield the command that runs a shell text; what it needs stands while the block runs.

        Args:
            text: the shell text.
            log: the file that takes the output of a job.
            network: whether a sandbox lets it reach the network.
        """
        self.return_if_gone()
        sandbox = self.sandbox or "none"
        # The folder is reported by a trap, since the text may exit anywhere. No profile
        # of bash is read: an alias there could change what was evaluated.
        command = Command(
            argv=(
                "bash",
                "--noprofile",
                "--norc",
                "-c",
                f"{_BOUND}trap 'pwd -P >&{REPORT_HANDLE}' EXIT; {text}",
            ),
            directory=self.directory,
            environment={**self._environment(), "TMPDIR": self._temporary(sandbox)},
            log=log,
            max_log_bytes=self._config.max_spill_bytes,
        )
        missing: tuple[str, ...] = ()
        if sandbox == "bubblewrap":
            missing = self._protected()
        with self._placeholders.standing(missing) as covered:
            if sandbox == "none":
                yield command
            else:
                yield confined(
                    command, self._confinement(covered, network=network), sandbox
                )

    def move(self, directory: str | None) -> None:
        """Keep the folder that a command ended in for the next one, where it exists."""
        if directory is not None and os.path.isdir(directory):
            self.directory = directory

    def return_if_gone(self) -> None:
        """Work in the first folder again where the one that a command ended in is gone."""
        if not os.path.isdir(self.directory):
            self.directory = self._base

    def remove(self) -> None:
        """Remove the folder for temporary files with all that is in it."""
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    def _environment(self) -> dict[str, str]:
        """Return the variables of the next command: what the session's hooks have set counts before the process's."""
        # another module offers this capability, so its value may be anything
        added = as_object(self._session_environment())
        return {
            **self.environment,
            **{str(name): str(value) for name, value in added.items()},
            **self._config.env,
        }

    def _temporary(self, sandbox: SandboxName) -> str:
        if sandbox == "bubblewrap":
            return _OWN_TEMPORARY
        return f"{self.scratch}/{_TEMPORARY}"

    def _protected(self) -> tuple[str, ...]:
        return tuple(
            f"{root}/{path}"
            for root in self.writable
            for path in self._protected_in(root)
        )

    def _protected_in(self, root: str) -> Iterator[str]:
        """Yield what is protected in a folder; files of a person's shell only in their home, or where they exist."""
        # a mount point for a missing file shows as an empty file in the project
        for path in dict.fromkeys((FOLDER, *self._config.protected_paths)):
            is_file = path.startswith(".") and path not in _FOLDERS and "/" not in path
            if (
                not is_file
                or os.path.lexists(f"{root}/{path}")
                or root == os.path.expanduser("~")
            ):
                yield path
        if root == self._base:
            yield from (
                path for path in self._trusted() if os.path.lexists(f"{root}/{path}")
            )

    def _trusted(self) -> tuple[str, ...]:
        """Return what a person trusted of this folder: a changed byte of it would run."""
        return covered_paths(TrustStore.in_home(), Path(self._base))

    def _own(self) -> Iterator[str]:
        """Yield the product's own files: the person's folder, and what is no content in those of the projects."""
        yield str(self._product.home)
        for root in self.writable:
            folder = f"{root}/{FOLDER}"
            if os.path.isdir(folder):
                paths = (f"{folder}/{name}" for name in os.listdir(folder))
                yield from (
                    path
                    for path in paths
                    if self._product.may_not_read(Path(os.path.realpath(path)))
                )

    def _confinement(self, covered: tuple[str, ...], *, network: bool) -> Confinement:
        return Confinement(
            writable=(*self.writable, *self.caches),
            protected=covered,
            hidden=(
                *(
                    _resolved(path, Path(self._base))
                    for path in self._config.hidden_paths
                ),
                *self._own(),
            ),
            shown=self._product.content,
            scratch=f"{self.scratch}/{_TEMPORARY}",
            network=network,
        )


def check_text(text: str) -> None:
    """Refuse a text that cannot be given to a shell.

    Raises:
        ToolError: it is too long, or holds what no text can.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise ToolError(
            f"the command holds half a surrogate pair at {error.start}; take it out"
        ) from None
    if size > _MAX_COMMAND_BYTES or "\0" in text:
        raise ToolError(
            f"a command has at most {_MAX_COMMAND_BYTES} bytes and no NUL; write a longer one to a file and run that"
        )


_FOLDERS: Final = (".amplifier", ".ssh")


def _resolved(path: str, base: Path) -> str:
    return os.path.realpath(base / os.path.expanduser(path))
