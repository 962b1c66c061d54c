"""Which files a session has seen, and in which version: what it may write over."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import attrs

from amplifier_kit.files.atomic import FileVersion
from amplifier_sdk.errors import ToolError

__all__ = ["KnownFiles"]


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
