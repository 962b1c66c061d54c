"""Moving and deleting, by handles, without following a link at the end of a path."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager

import attrs

from amplifier_kit.files.atomic import take_free_name
from amplifier_kit.files.handles import closing_handle
from amplifier_kit.files.path_errors import (
    PathDeniedError,
    PathMissingError,
    path_refusals,
)
from amplifier_kit.files.path_rules import OWN_RULE, folded, path_parts
from amplifier_kit.files.product import ProductFiles
from amplifier_kit.files.resolved import ResolvedPath, printable
from amplifier_module_tool_filesystem.walk import Budget, walk_tree
from amplifier_module_tool_filesystem.workspace import Workspace
from amplifier_sdk.errors import ToolError

__all__ = [
    "Deleted",
    "Moved",
    "delete_path",
    "move_path",
    "planned_deletion",
    "planned_move",
]


@attrs.frozen(kw_only=True)
class Moved:
    """Something that was moved; `bytes` is a file's size."""

    source: str
    destination: str
    kind: str
    bytes: int


@attrs.frozen(kw_only=True)
class Deleted:
    """Something that was deleted; `entries` counts what was in a directory.

    When nothing was there, `missing` says so, with the nearest name that is.
    """

    path: str
    kind: str
    entries: int = 0
    missing: str | None = None


def move_path(workspace: Workspace, source: str, destination: str) -> Moved:
    """Move a file, a link or a directory to a name that is free, or its own, and make the directories above it.

    Raises:
        ToolError: as `planned_move` has it, or the system refuses.
    """
    with planned_move(workspace, source, destination) as (old, new):
        status = old.existing()
        # a move onto itself is done already; to rename it would find the name taken
        if new.path != old.path:
            new.make_parents()
            with path_refusals(source):
                _rename(old, new, status)
            workspace.known.move(old.path, new.path)
        return Moved(
            source=old.shown, destination=new.shown, kind=old.kind, bytes=_size(status)
        )


@contextmanager
def planned_move(
    workspace: Workspace, source: str, destination: str
) -> Iterator[tuple[ResolvedPath, ResolvedPath]]:
    """Find out whether something can be moved and move nothing; both directories are open in the block.

    Raises:
        ToolError: one of the paths may not be written, what is moved may not be read or holds what is protected,
            or the new name is taken.
    """
    # shells put the source into such a folder; a rename would not, so neither is
    # guessed
    if destination.endswith("/"):
        raise ToolError(
            f"{destination!r}: ends with a slash; give the whole new path, with the name at its end"
        )
    with workspace.writable.locate(source, follow=False) as old:
        old.existing()
        _check_whole(workspace, old)
        with workspace.writable.locate(destination, follow=False) as new:
            # A new name must not make readable what the old one protected from being read, nor the other way round.
            workspace.readable.check(destination, new.path)
            if new.exists and new.path != old.path:
                raise ToolError(
                    f"{destination!r}: something is there already; choose another name or delete it first"
                )
            if new.path != old.path and new.path.is_relative_to(old.path):
                raise ToolError(
                    f"{destination!r}: is inside of what is to be moved; choose a place outside of it"
                )
            yield old, new


def delete_path(
    workspace: Workspace, path: str, budget: Budget, *, recursive: bool
) -> Deleted:
    """Delete a file, a link or a directory; there is no way back.

    Raises:
        ToolError: as `planned_deletion` has it, or the system refuses.
    """
    with planned_deletion(workspace, path, budget, recursive=recursive) as (
        resolved,
        deleted,
    ):
        if deleted.missing is not None:
            return deleted
        with path_refusals(path):
            if deleted.kind == "directory":
                if not deleted.entries:
                    os.rmdir(resolved.name, dir_fd=resolved.directory)
                else:
                    # It walks by handles itself and follows no link (`shutil.rmtree.avoids_symlink_attacks`).
                    shutil.rmtree(resolved.name, dir_fd=resolved.directory)
            else:
                os.unlink(resolved.name, dir_fd=resolved.directory)
        # a new file of that name is one that the session has not read
        workspace.known.forget(resolved.path)
        return deleted


@contextmanager
def planned_deletion(
    workspace: Workspace, path: str, budget: Budget, *, recursive: bool
) -> Iterator[tuple[ResolvedPath, Deleted]]:
    """Find out what a deletion would take and delete nothing; the directory above it is open in the block.

    Raises:
        ToolError: the path may not be written, it holds what is protected, or the directory is not empty and
            `recursive` is not set.
    """
    with workspace.writable.locate(path, follow=False) as resolved:
        _check_whole(workspace, resolved)
        try:
            status = resolved.existing()
        except PathMissingError as error:  # a call that is made again must not fail
            yield (
                resolved,
                Deleted(path=resolved.shown, kind=resolved.kind, missing=error.message),
            )
            return
        is_directory = stat.S_ISDIR(status.st_mode)
        entries = 0
        if is_directory:
            entries = _count(workspace, resolved, budget, recursive=recursive)
        yield (
            resolved,
            Deleted(path=resolved.shown, kind=resolved.kind, entries=entries),
        )


def _check_whole(workspace: Workspace, resolved: ResolvedPath) -> None:
    """Refuse a root and what contains one or a protected place."""
    workspace.readable.check(resolved.given, resolved.path)
    for root in (
        workspace.directory,
        *workspace.readable.roots,
        *workspace.writable.roots,
    ):
        if root.is_relative_to(resolved.path):
            raise ToolError(
                f"{resolved.given!r}: is or holds a directory that the session works in; give a path below it"
            )
    for confined in (workspace.readable, workspace.writable):
        rule = confined.rules.rule_inside(
            path_parts(str(resolved.path))
        ) or _own_inside(resolved)
        if rule is not None:
            raise PathDeniedError(resolved.given, rule, "write")


def _own_inside(resolved: ResolvedPath) -> str | None:
    """Return the rule that keeps a directory where it is because the person's own folder lies in it."""
    # without case, as some file systems compare names
    parts = [folded(part) for part in path_parts(str(resolved.path))]
    if ProductFiles().parts[: len(parts)] == parts:
        return OWN_RULE
    return None


def _rename(old: ResolvedPath, new: ResolvedPath, status: os.stat_result) -> None:
    """Give a new name, without taking the place of what somebody else put there meanwhile."""
    # a directory takes the place of an empty one at most
    if stat.S_ISDIR(status.st_mode):
        os.rename(
            old.name, new.name, src_dir_fd=old.directory, dst_dir_fd=new.directory
        )
    else:
        take_free_name(
            old.name, new.name, src_dir_fd=old.directory, dst_dir_fd=new.directory
        )


def _count(
    workspace: Workspace, resolved: ResolvedPath, budget: Budget, *, recursive: bool
) -> int:
    """Count what is in a directory, and refuse to delete what is protected, or too much to check."""
    with closing_handle(resolved.open_directory()) as handle:
        count = 0
        with closing(walk_tree(handle, budget, lambda _: recursive)) as walked:
            for entry in walked:
                count += 1
                for confined in (workspace.readable, workspace.writable):
                    rule = confined.rules.rule(
                        path_parts(str(resolved.path)), entry.parts
                    )
                    if rule is not None:
                        shown = printable(f"{resolved.given}/{'/'.join(entry.parts)}")
                        raise PathDeniedError(shown, rule, "write")
    if count and not recursive:
        raise ToolError(
            f"{resolved.given!r}: the directory is not empty ({count} entries); set recursive to delete them all"
        )
    # what was not seen may be protected, so it is not deleted
    if budget.report():
        raise ToolError(
            f"{resolved.given!r}: not everything in it can be read; delete its parts one by one"
        )
    return count


def _size(status: os.stat_result) -> int:
    if stat.S_ISREG(status.st_mode):
        return status.st_size
    return 0
