"""Spots: where a confined path leads, as a name in a directory that is open."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Final, Literal

import attrs

from amplifier_kit.files.handles import closing_handle
from amplifier_kit.files.open_flags import LIST, READ
from amplifier_kit.files.openat2 import open_beneath
from amplifier_kit.files.path_errors import (
    InvalidPathError,
    PathKindError,
    PathMissingError,
    path_refusals,
)
from amplifier_sdk.errors import did_you_mean

__all__ = ["ResolvedPath", "describe_kind", "printable"]

_MAX_NAMES_COMPARED: Final = 1000
_MAX_NEW_DIRECTORIES: Final = 32

_KINDS: Final[Mapping[int, str]] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}


@attrs.define(eq=False, kw_only=True)
class ResolvedPath:
    """A name in an open directory: where a confined path leads.

    Args:
        given: the path as it was given, for messages.
        path: the absolute path with every link resolved.
        directory: the handle of the directory, closed by the walk that made this.
        name: the name in it; `.` for a root itself.
        status: what is there, links not followed; `None` when nothing is.
        parents: directories above the name that do not exist; then `directory` is above them.
    """

    given: str
    path: Path
    directory: int
    name: str
    status: os.stat_result | None
    parents: tuple[str, ...] = ()

    @property
    def exists(self) -> bool:
        """Whether something is there."""
        return self.status is not None

    @property
    def kind(self) -> str:
        """What is there: `file`, `directory`, `link` and so on; `nothing` when nothing is."""
        if self.status is None:
            return "nothing"
        return describe_kind(self.status.st_mode)

    @property
    def shown(self) -> str:
        """The absolute path as text that can be stored and sent."""
        return printable(str(self.path))

    def existing(self) -> os.stat_result:
        """Return the status of what is there.

        Raises:
            PathMissingError: nothing is; names the nearest name in the directory.
        """
        if self.status is None:
            raise PathMissingError(self.given, self._nearest())
        return self.status

    def open_file(self) -> BufferedReader:
        """Open a regular file for reading; the caller closes it. Never waits for a FIFO or device.

        Raises:
            PathError: nothing is there, it is no regular file, or the system refuses.
        """
        self.require("file", self.existing())
        with path_refusals(self.given):
            # READ does not wait for a pipe, which may have taken the file's place
            # meanwhile
            handle = os.open(self.name, READ, dir_fd=self.directory)
        try:
            # checked again on the handle: what was looked up by name may have
            # been replaced
            self.require("file", os.fstat(handle))
            return open(handle, "rb")
        except BaseException:
            os.close(handle)
            raise

    def open_directory(self) -> int:
        """Open a directory for listing and return its handle, which the caller closes.

        Raises:
            PathError: nothing is there, it is no directory, or the system refuses.
        """
        self.require("directory", self.existing())
        with path_refusals(self.given):
            return os.open(self.name, LIST, dir_fd=self.directory)

    def require(
        self, wanted: Literal["file", "directory"], status: os.stat_result
    ) -> None:
        """Refuse a status of another kind.

        Raises:
            PathKindError: names the kind it is.
        """
        kind = describe_kind(status.st_mode)
        if kind != wanted:
            raise PathKindError(self.given, kind, wanted)

    def make_parents(self) -> None:
        """Create the directories that are missing above the name.

        Raises:
            PathError: they are too many, the system refuses, or something else took their place.
        """
        if len(self.parents) > _MAX_NEW_DIRECTORIES:
            raise InvalidPathError(
                self.given,
                f"{len(self.parents)} directories above it are missing, at most {_MAX_NEW_DIRECTORIES} are made; give a"
                " shorter path",
            )
        while self.parents:
            with path_refusals(self.given):
                self._enter(self.parents[0])
            self.parents = self.parents[1:]

    def _enter(self, name: str) -> None:
        # somebody else made it meanwhile; a link in its place is refused below
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=self.directory)
        inner = open_beneath(self.directory, (name,))
        # only now: a failure above leaves the handle to whoever closes this path
        os.close(self.directory)
        self.directory = inner

    def _nearest(self) -> str:
        if self.parents:
            return ""
        try:
            handle = os.open(".", LIST, dir_fd=self.directory)
        except OSError:
            return ""  # a hint is not worth another error
        with closing_handle(handle), os.scandir(handle) as entries:
            return did_you_mean(
                self.name,
                [
                    printable(entry.name)
                    for entry in islice(entries, _MAX_NAMES_COMPARED)
                ],
            )


def printable(name: str) -> str:
    """Write the bytes of a name that are no UTF-8 as escapes, so that the name can be stored and sent."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def describe_kind(mode: int) -> str:
    """Name the kind of a file from its mode: `file`, `directory`, `link`, `FIFO` and so on."""
    return _KINDS.get(stat.S_IFMT(mode), "special file")
