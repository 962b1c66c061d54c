"""Files that are saved from the web, in directories that the configuration allows and over no file that exists."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import attrs

from amplifier_kit.files.atomic import write_atomically
from amplifier_kit.files.path_errors import UnsupportedPlatformError, path_refusals
from amplifier_kit.files.paths import ConfinedPaths
from amplifier_module_tool_web.config import WebConfig
from amplifier_sdk.errors import ConfigError, Problem, ToolError

__all__ = ["DownloadFolders", "Saved"]


@attrs.frozen(kw_only=True)
class Saved:
    """A file that was saved."""

    path: str
    bytes: int


class DownloadFolders:
    """The directories that files are saved in.

    Args:
        config: the module's configuration.
        directory: where the session works.

    Raises:
        ConfigError: a directory of the configuration does not exist.
    """

    def __init__(self, config: WebConfig, directory: Path) -> None:
        base = directory / os.path.expanduser(config.working_dir or "")
        given = config.allowed_write_paths
        roots = [base]
        if given is not None:
            roots = [base / os.path.expanduser(entry) for entry in given]
        problems = []
        if not base.is_dir():
            problems = [
                Problem("working_dir", f"{base} is no directory; create it first")
            ]
        problems += [
            Problem(
                f"allowed_write_paths[{index}]",
                f"{root} is no directory; create it or take the entry out",
            )
            for index, root in enumerate(roots)
            if given is not None and not root.is_dir()
        ]
        if problems:
            raise ConfigError(problems, subject="configuration of tool-web")
        self._confine = partial(
            ConfinedPaths,
            roots,
            base=Path(os.path.realpath(base)),
            purpose="write",
            denied_names=[
                entry for entry in config.denied_write_paths if "/" not in entry
            ],
            denied_paths=[
                base / os.path.expanduser(entry)
                for entry in config.denied_write_paths
                if "/" in entry
            ],
        )

    def check(self, path: str) -> None:
        """Refuse a path that cannot be saved to, before anything is fetched; may block.

        Raises:
            ToolError: it may not be written, or something is there.
        """
        with self._paths().locate(path) as resolved:
            if resolved.exists:
                raise ToolError(
                    f"{path!r}: there is something of this name already; give a new name"
                )
            if path.endswith("/"):
                raise ToolError(f"{path!r}: names a directory; give the path of a file")

    def save(self, path: str, data: bytes) -> Saved:
        """Write a new file, and the directories above it; may block.

        Raises:
            ToolError: the path may not be written, something is there, or the system refuses.
        """
        self.check(path)
        with self._paths().locate(path) as resolved, path_refusals(path):
            resolved.make_parents()
            write_atomically(
                resolved.name, data, dir_fd=resolved.directory, must_be_new=True
            )
            return Saved(path=resolved.shown, bytes=len(data))

    def _paths(self) -> ConfinedPaths:
        try:
            return self._confine()
        except UnsupportedPlatformError as error:
            # pages can be read there all the same
            raise ToolError(f"files cannot be saved here: {error}") from error
