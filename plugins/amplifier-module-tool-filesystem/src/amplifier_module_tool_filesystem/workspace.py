"""The paths that a session may use, worked out from the configuration once, and the files that it has seen."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from amplifier_kit.files.atomic import FileVersion
from amplifier_kit.files.path_errors import Purpose
from amplifier_kit.files.paths import ConfinedPaths
from amplifier_kit.files.resolved import printable
from amplifier_module_tool_filesystem.config import FilesystemConfig
from amplifier_sdk.errors import ConfigError, Problem, ToolError

__all__ = ["KnownFiles", "Workspace", "open_workspace"]


@attrs.frozen(kw_only=True)
class Workspace:
    """The working directory, what may be read and written, and what the session has seen."""

    directory: Path
    readable: ConfinedPaths
    writable: ConfinedPaths
    known: KnownFiles

    def shown(self, path: Path) -> str:
        """Return a path as a model can give it back: relative to the working directory where that is shorter."""
        return printable(
            str(
                path.relative_to(self.directory)
                if path.is_relative_to(self.directory)
                else path
            )
        )


def open_workspace(
    config: FilesystemConfig, directory: Path, *, is_typed: Callable[[], bool]
) -> Workspace:
    """Work out the paths.

    Args:
        config: the module's configuration.
        directory: where the session works.
        is_typed: whether the session's calls are a person's own.

    Raises:
        ConfigError: a directory of the configuration does not exist; lists all that do not.
    """
    directory = _resolve(config.working_dir or "", directory)
    problems = []
    if not directory.is_dir():
        problems = [
            Problem("working_dir", f"{directory} is no directory; create it first")
        ]
    roots: dict[str, list[Path]] = {}
    for key, entries in (
        ("allowed_read_paths", config.allowed_read_paths),
        ("allowed_write_paths", config.allowed_write_paths),
    ):
        if entries is None:
            roots[key] = [directory]
        else:
            roots[key] = [_resolve(entry, directory) for entry in entries]
        problems += _missing(key, roots[key] if entries is not None else [])
    if problems:
        raise ConfigError(problems, subject="configuration of tool-filesystem")
    # After the check, so that a message names the directory as it was written.
    directory = Path(os.path.realpath(directory))
    return Workspace(
        directory=directory,
        readable=_confined(
            roots["allowed_read_paths"], directory, "read", config.denied_read_paths
        ),
        writable=_confined(
            roots["allowed_write_paths"], directory, "write", config.denied_write_paths
        ),
        known=KnownFiles(config.read_before_write, is_typed),
    )


def _confined(
    roots: Sequence[Path], directory: Path, purpose: Purpose, denied: Sequence[str]
) -> ConfinedPaths:
    return ConfinedPaths(
        roots,
        base=directory,
        purpose=purpose,
        denied_names=[entry for entry in denied if "/" not in entry],
        denied_paths=[_resolve(entry, directory) for entry in denied if "/" in entry],
    )


def _resolve(entry: str, directory: Path) -> Path:
    return directory / os.path.expanduser(entry)


def _missing(key: str, roots: Sequence[Path]) -> list[Problem]:
    return [
        Problem(
            f"{key}[{index}]",
            f"{root} is no directory; create it or take the entry out",
        )
        for index, root in enumerate(roots)
        if not root.is_dir()
    ]


@attrs.define(eq=False)
class KnownFiles:
    """The versions that one session has read or written.

    A version is identified by the file's inode, size and time of change: no content is read for it.

    Args:
        is_required: whether a file must be known before it is written over.
        is_typed: whether the calls are a person's own, who need not have read a file by a tool.
    """

    is_required: bool
    is_typed: Callable[[], bool] = lambda: False
    _versions: dict[Path, FileVersion] = attrs.field(factory=dict, init=False)

    def note(self, path: Path, version: FileVersion) -> None:
        """Remember what the session has seen of a file."""
        self._versions[path] = version

    def forget(self, path: Path) -> None:
        """Drop what is known of a path and all below it."""
        for known in self._below(path):
            self._versions.pop(known, None)

    def move(self, source: Path, destination: Path) -> None:
        """Carry what is known of a path and all below it to another path."""
        for known in self._below(source):
            self._versions[destination / known.relative_to(source)] = (
                self._versions.pop(known)
            )

    def check(self, given: str, path: Path, status: os.stat_result) -> FileVersion:
        """Return the version of a file that is to be written over.

        Args:
            given: the path as it was given, for messages.
            path: where it leads.
            status: what is there now.

        Raises:
            ToolError: the session has not read the file, or it changed since.
        """
        version = FileVersion.of(status)
        # The version is returned all the same: a write checks that nothing changed in
        # between.
        if not self.is_required or self.is_typed():
            return version
        known = self._versions.get(path)
        if known is None:
            raise ToolError(
                f"{given!r}: the file was not read in this session; read it with read_file first"
            )
        if known != version:
            raise ToolError(
                f"{given!r}: the file changed since it was read; read it again and repeat the change"
            )
        return version

    def _below(self, path: Path) -> list[Path]:
        # A copy, made in one step: files are read in other threads meanwhile.
        return [known for known in list(self._versions) if known.is_relative_to(path)]
