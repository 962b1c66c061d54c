"""Taking the state of a path: what is there is copied, before anything changes it; what can be set. It blocks."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, Literal, TypeAlias

import attrs

from amplifier_kit.files.generated import is_generated
from amplifier_kit.files.handles import closing_handle
from amplifier_kit.files.open_flags import LIST, PASS, READ
from amplifier_kit.files.openat2 import open_beneath
from amplifier_kit.files.path_errors import PathError
from amplifier_kit.files.path_rules import SECRET_NAMES, PathRules, path_parts
from amplifier_kit.files.paths import ConfinedPaths
from amplifier_kit.files.resolved import ResolvedPath, describe_kind, printable
from amplifier_module_hooks_backup._objects import FileTooLargeError, Objects
from amplifier_module_hooks_backup.entries import BackupError, State
from amplifier_sdk.bounds import count

__all__ = ["BackupConfig", "Depth", "PathsToCopy", "Taker", "open_regular"]

_MAX_DEPTH: Final = 64


Depth: TypeAlias = Literal["none", "sources", "all"]
"""What is taken of a directory: nothing, what is neither hidden nor made again, or all below it."""


@attrs.frozen(kw_only=True)
class PathsToCopy:
    """Paths that a call may change.

    Args:
        paths: as a tool is given them.
        depth: what is taken of directories among them.
        is_needed: whether the call must not run where they cannot be copied.
    """

    paths: tuple[str, ...]
    depth: Depth = "all"
    is_needed: bool = True


@attrs.define(eq=False)
class Taker:
    """Takes the states of paths for one call.

    Args:
        config: what is left out, and how much is copied.
        objects: where copies go.
        directory: where relative paths start.
        depth: what is taken of a directory.
    """

    config: BackupConfig
    objects: Objects
    directory: Path
    depth: Depth
    _states: dict[str, State] = attrs.field(factory=dict)
    _rules: PathRules = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._rules = PathRules(self.config.secret_names)

    def take(self, path: str) -> None:
        """Take what is at a path: of a link the link itself, and what it leads to.

        A path that nobody can reach is passed over: no tool can change what is there.

        Raises:
            BackupError: what is there can be reached, but not be copied.
        """
        confined = ConfinedPaths([Path("/")], base=self.directory)
        # Both: a tool may replace the link or write through it.
        for follow in (False, True):
            try:
                with confined.locate(path, follow=follow) as resolved:
                    self._take_resolved(resolved)
            except PathError:
                return

    def take_exactly(self, path: str, *, is_deep: bool) -> None:
        """Take what is at the path of a state, where no link is followed.

        A path that can no longer be reached is passed over: nothing can be brought back there either.

        Args:
            path: as the state has it.
            is_deep: whether a directory is taken with all below it.

        Raises:
            BackupError: it cannot be copied.
        """
        *above, name = path_parts(path)
        try:
            with closing_handle(os.open("/", PASS)) as root:
                handle = open_beneath(root, above)
        except FileNotFoundError:
            self._note(State(path=path, kind="absent"))
            return
        except OSError:
            return
        with closing_handle(handle):
            self._take_name(path, name, handle, is_deep=is_deep)

    def _take_name(self, path: str, name: str, handle: int, *, is_deep: bool) -> None:
        try:
            status = os.stat(name, dir_fd=handle, follow_symlinks=False)
        except FileNotFoundError:
            self._note(State(path=path, kind="absent"))
            return
        if not stat.S_ISDIR(status.st_mode):
            self._take_one(path, name, handle, status)
        elif is_deep:
            self._take_directory(path, os.open(name, LIST, dir_fd=handle), status, 0)
        else:
            self._note(
                State(path=path, kind="directory", mode=stat.S_IMODE(status.st_mode))
            )

    def states(self) -> list[State]:
        """Return what was taken, each path once."""
        return list(self._states.values())

    def _take_resolved(self, resolved: ResolvedPath) -> None:
        if resolved.status is None:
            self._note(State(path=str(resolved.path), kind="absent"))
        elif stat.S_ISDIR(resolved.status.st_mode):
            if self.depth != "none":
                self._take_directory(
                    str(resolved.path), resolved.open_directory(), resolved.status, 0
                )
        else:
            self._take_one(
                str(resolved.path), resolved.name, resolved.directory, resolved.status
            )

    def _take_directory(
        self, path: str, handle: int, status: os.stat_result, depth: int
    ) -> None:
        try:
            if depth > _MAX_DEPTH:
                raise BackupError(
                    f"{printable(path)!r} has more than {_MAX_DEPTH} directories in each other"
                )
            self._note(
                State(path=path, kind="directory", mode=stat.S_IMODE(status.st_mode))
            )
            for name, inner in _listed(handle):
                if self.depth == "sources" and (
                    name.startswith(".") or is_generated(name)
                ):
                    continue
                where = f"{path.rstrip('/')}/{name}"
                if stat.S_ISDIR(inner.st_mode):
                    below = os.open(name, LIST, dir_fd=handle)
                    self._take_directory(where, below, inner, depth + 1)
                else:
                    self._take_one(where, name, handle, inner)
        except OSError as error:
            raise BackupError(
                f"{printable(path)!r} cannot be copied: {error.strerror}"
            ) from error
        finally:
            os.close(handle)

    def _take_one(
        self, path: str, name: str, directory: int, status: os.stat_result
    ) -> None:
        """Take a file or a link; what is neither holds nothing to be copied."""
        if path in self._states:
            return
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISLNK(status.st_mode):
            self._note(
                State(
                    path=path, kind="link", target=os.readlink(name, dir_fd=directory)
                )
            )
        elif not stat.S_ISREG(status.st_mode):
            self._note(
                State(
                    path=path,
                    kind="left out",
                    reason=f"it is a {describe_kind(status.st_mode)}",
                )
            )
        elif (rule := self._rules.rule((), path_parts(path))) is not None:
            # A copy of a secret would outlive its deletion.
            reason = f"its name says that it holds secrets ({rule})"
            self._note(
                State(
                    path=path,
                    kind="left out",
                    mode=mode,
                    size=status.st_size,
                    reason=reason,
                )
            )
        else:
            digest, size = self._copy(path, name, directory)
            self._note(
                State(path=path, kind="file", mode=mode, size=size, digest=digest)
            )

    def _copy(self, path: str, name: str, directory: int) -> tuple[str, int]:
        try:
            with open_regular(name, directory) as source:
                return self.objects.put(source, self.config.max_file_bytes)
        except FileTooLargeError:
            limit = f"larger than {self.config.max_file_bytes:,} bytes (max_file_bytes)"
            raise BackupError(f"{printable(path)!r} is {limit}") from None
        except OSError as error:
            raise BackupError(
                f"{printable(path)!r} cannot be copied: {error.strerror}"
            ) from error

    def _note(self, state: State) -> None:
        if len(self._states) >= self.config.max_files:
            raise BackupError(
                f"one call may change more than {self.config.max_files:,} files (max_files)"
            )
        # The first state counts: it is from before the call changed anything.
        self._states.setdefault(state.path, state)


def open_regular(name: str, directory: int | None = None) -> BinaryIO:
    """Open a regular file for reading, without following a link or waiting for a FIFO; the caller closes it.

    Raises:
        OSError: it is something else, or the system refuses.
    """
    handle = os.open(name, READ, dir_fd=directory)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no regular file", name)
    return open(handle, "rb")


def _listed(handle: int) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what is in a directory, in order."""
    for name in sorted(os.listdir(handle)):
        yield name, os.stat(name, dir_fd=handle, follow_symlinks=False)


@attrs.frozen(kw_only=True)
class BackupConfig:
    """The configuration; the module's README describes each key."""

    on_failure: Literal["deny", "warn"] = "deny"
    working_dir: str | None = None
    exclude_tools: tuple[str, ...] = ()
    snapshot_paths: tuple[str, ...] = ()
    secret_names: tuple[str, ...] = SECRET_NAMES
    max_file_bytes: int = attrs.field(default=52_428_800, validator=count)
    max_files: int = attrs.field(default=1_000, validator=count)
    max_total_bytes: int = attrs.field(default=536_870_912, validator=count)
    max_age_days: int = attrs.field(default=30, validator=count)
    priority: int = 2000
