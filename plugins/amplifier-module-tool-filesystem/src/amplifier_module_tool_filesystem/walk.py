"""A walk through a directory tree by handles: sorted, without following links, within a budget."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Collection, Generator
from typing import Final, Protocol

import attrs
from anyio.from_thread import check_cancelled

from amplifier_kit.files.handles import closing_handle
from amplifier_kit.files.open_flags import LIST
from amplifier_kit.files.path_errors import path_refusals
from amplifier_kit.files.resolved import describe_kind, printable
from amplifier_module_tool_filesystem.config import FilesystemConfig
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["Budget", "Ignores", "TreeEntry", "walk_tree"]

# Each level holds a handle open, of which a process has a thousand.
_MAX_DEPTH: Final = 64


@attrs.define(eq=False)
class Budget:
    """What one walk may look at, and what it had to leave out."""

    max_visited: int
    seconds: float
    _deadline: float = attrs.field(init=False)
    _visited: int = attrs.field(default=0, init=False)
    _unreadable: int = attrs.field(default=0, init=False)
    _unseen: int = attrs.field(default=0, init=False)
    _reason: str | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._deadline = time.monotonic() + self.seconds

    @classmethod
    def of(cls, config: FilesystemConfig) -> Budget:
        """Start the budget that the configuration gives to one walk."""
        return cls(config.max_visited, config.search_timeout)

    @property
    def is_out_of_time(self) -> bool:
        """Whether the walk must stop; raises the cancellation when its tool call was cancelled."""
        check_cancelled()
        if time.monotonic() <= self._deadline:
            return False
        self._reason = f"the time limit of {self.seconds:g} s was reached"
        return True

    def spend(self) -> bool:
        """Count one directory entry and return whether it may still be visited."""
        if self._visited >= self.max_visited:
            self._reason = (
                f"the limit of {self.max_visited} directory entries was reached"
            )
            return False
        self._visited += 1
        return True

    def miss_directory(self, *, too_deep: bool = False) -> None:
        """Count a directory that could not be entered."""
        self._unreadable += 1
        if too_deep:
            self._reason = f"the limit of {_MAX_DEPTH} nested directories was reached"

    def miss_entry(self) -> None:
        """Count an entry that cannot be examined."""
        self._unseen += 1

    def report(self) -> JSONObject:
        """Say what is missing from the result; nothing when it is whole."""
        found: JSONObject = {}
        if self._unreadable:
            found["unreadable_directories"] = self._unreadable
        if self._unseen:
            found["unreadable_entries"] = self._unseen
        if self._reason is not None:
            found["incomplete"] = f"{self._reason}; narrow the path or the pattern"
        return found


@attrs.frozen(kw_only=True)
class TreeEntry:
    """A thing in the tree; `directory` is the open handle of its directory until the walk goes on."""

    parts: tuple[str, ...]
    status: os.stat_result
    directory: int

    @property
    def name(self) -> str:
        """The path from where the walk began, fit to be shown."""
        return printable("/".join(self.parts))

    @property
    def kind(self) -> str:
        """What it is: `file`, `directory`, `link` and so on."""
        return describe_kind(self.status.st_mode)


class Ignores(Protocol):
    """What leaves entries out of a walk, and learns as it goes on which."""

    def load(self, handle: int, parts: tuple[str, ...], names: Collection[str]) -> None:
        """See a directory before its entries: its handle, its path and the names in it."""
        ...

    def ignores(self, parts: tuple[str, ...], *, is_directory: bool) -> bool:
        """Tell whether an entry is left out."""
        ...


def walk_tree(
    handle: int,
    budget: Budget,
    enter: Callable[[tuple[str, ...]], bool],
    ignores: Ignores | None = None,
) -> Generator[TreeEntry, None, None]:
    """Yield what is in and below a directory, each directory before its content, names in order.

    What the system refuses on the way, such as a mount that is gone, is counted and passed over. Close the iterator
    when leaving it early, so that its handles are closed.

    Args:
        handle: the open directory; the caller closes it.
        budget: counts every visited entry and stops the walk.
        enter: says whether to go into a directory.
        ignores: leaves entries out.

    Raises:
        PathError: the directory itself cannot be listed.
    """
    with path_refusals("."):
        names = _names(handle, budget)
    yield from _entries(handle, (), names, budget, enter, ignores)


def _entries(
    handle: int,
    parts: tuple[str, ...],
    names: list[str],
    budget: Budget,
    enter: Callable[[tuple[str, ...]], bool],
    ignores: Ignores | None,
) -> Generator[TreeEntry, None, None]:
    if ignores is not None:
        ignores.load(handle, parts, names)
    for name in names:
        if budget.is_out_of_time:
            return
        try:
            # By the open directory: its path may lead elsewhere by now.
            status = os.stat(name, dir_fd=handle, follow_symlinks=False)
        except FileNotFoundError:
            continue  # it went away meanwhile
        except OSError:
            budget.miss_entry()
            continue
        entry = TreeEntry(parts=(*parts, name), status=status, directory=handle)
        is_directory = stat.S_ISDIR(status.st_mode)
        if ignores is not None and ignores.ignores(
            entry.parts, is_directory=is_directory
        ):
            continue
        yield entry
        if is_directory and enter(entry.parts):
            yield from _below(entry, budget, enter, ignores)


def _below(
    entry: TreeEntry,
    budget: Budget,
    enter: Callable[[tuple[str, ...]], bool],
    ignores: Ignores | None,
) -> Generator[TreeEntry, None, None]:
    if len(entry.parts) >= _MAX_DEPTH:
        budget.miss_directory(too_deep=True)
        return
    try:
        inner = os.open(entry.parts[-1], LIST, dir_fd=entry.directory)
    except OSError:
        budget.miss_directory()
        return
    with closing_handle(inner):
        try:
            names = _names(inner, budget)
        except OSError:
            budget.miss_directory()
            return
        yield from _entries(inner, entry.parts, names, budget, enter, ignores)


def _names(handle: int, budget: Budget) -> list[str]:
    names: list[str] = []
    with os.scandir(handle) as entries:
        for entry in entries:
            if not budget.spend():
                break
            # Names alone: a status from the listing may be old by the time it is used.
            names.append(entry.name)
    return sorted(names)
