"""Restoring a path to a copied state; no link is followed. It blocks."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex

from amplifier_kit.files.handles import closing_handle
from amplifier_kit.files.open_flags import NEW, PASS
from amplifier_kit.files.openat2 import open_beneath
from amplifier_kit.files.path_rules import path_parts
from amplifier_module_hooks_backup._objects import Objects
from amplifier_module_hooks_backup.entries import BackupEntry, BackupError, State

__all__ = ["earliest_states", "restore_mode", "restore_state"]


def earliest_states(entries: Iterable[BackupEntry]) -> list[State]:
    """Return what was at each path when the first of some entries was copied, in the order to restore it.

    What was copied later below a path that was no directory at first came into being since, and a path that is no
    directory later was one when something below it was copied first.
    """
    found: dict[str, State] = {}
    above: set[str] = set()
    for entry in sorted(entries, key=lambda entry: entry.number):
        state = entry.state
        parents = [str(parent) for parent in entry.path.parents]
        is_new_below = any(
            parent in found and found[parent].kind != "directory" for parent in parents
        )
        if (
            state.path in found
            or is_new_below
            or (state.kind != "directory" and state.path in above)
        ):
            continue
        found[state.path] = state
        if state.kind != "absent":
            above.update(parents)
    return _ordered(list(found.values()))


def _ordered(states: list[State]) -> list[State]:
    """Put directories first, then what is in them, then what was not there."""
    there = sorted(
        (state for state in states if state.kind != "absent"),
        key=lambda state: state.path,
    )
    gone = sorted(
        (state for state in states if state.kind == "absent"),
        key=lambda state: state.path,
        reverse=True,
    )
    return [
        *(s for s in there if s.kind == "directory"),
        *(s for s in there if s.kind != "directory"),
        *gone,
    ]


def restore_state(state: State, objects: Objects) -> None:
    """Bring one path back; a directory gets its permissions by `restore_mode`.

    Raises:
        BackupError: it was left out, its copy is gone, something else is in its place, or the system refuses.
    """
    if state.kind == "left out":
        raise BackupError(f"{state.shown!r} was not copied: {state.reason}")
    with _naming_path(state), _directory_of(state) as (handle, name):
        match state.kind:
            case "file":
                _put_file(state, objects, handle, name)
            case "link":
                with _in_place_of(state, handle, name) as temporary:
                    os.symlink(state.target, temporary, dir_fd=handle)
            case "directory":
                _put_directory(handle, name)
            case "absent":
                _remove(handle, name)


def restore_mode(state: State) -> None:
    """Give a directory its permissions, when all that was in it is there again.

    Raises:
        BackupError: it is not there, or the system refuses.
    """
    if state.kind != "directory":
        return
    with _naming_path(state), _directory_of(state) as (handle, name):
        if _mode_of(handle, name) != state.mode:
            os.chmod(name, state.mode, dir_fd=handle)


@contextmanager
def _naming_path(state: State) -> Iterator[None]:
    """Say of which path the system refuses something; what was not there is not missed."""
    try:
        yield
    except FileNotFoundError as error:
        if state.kind != "absent":  # else the directory it was not in is gone as well
            raise BackupError(
                f"{state.shown!r} cannot be brought back: {error.strerror}"
            ) from error
    except OSError as error:
        raise BackupError(
            f"{state.shown!r} cannot be brought back: {error.strerror}"
        ) from error


@contextmanager
def _directory_of(state: State) -> Iterator[tuple[int, str]]:
    """Open the directory of a path, and make it where it is missing; a link on the way there is refused."""
    *above, name = path_parts(state.path)
    handle = os.open("/", PASS)
    try:
        for part in above:
            if state.kind != "absent":
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=handle)
            inner = open_beneath(handle, (part,))
            os.close(handle)
            handle = inner
        yield handle, name
    finally:
        os.close(handle)


def _put_file(state: State, objects: Objects, handle: int, name: str) -> None:
    with _in_place_of(state, handle, name) as temporary:
        inner = os.open(temporary, NEW, 0o600, dir_fd=handle)
        with open(inner, "wb") as file:
            if not objects.copy_to(file, state.digest):
                raise BackupError(
                    f"{state.shown!r} cannot be brought back: its copy is damaged"
                )
            os.fchmod(inner, state.mode & 0o777)


@contextmanager
def _in_place_of(state: State, handle: int, name: str) -> Iterator[str]:
    """Yield a name for what takes a path's place at the end of the block, so that there is never half of it."""
    current = _status(handle, name)
    if current is not None and stat.S_ISDIR(current.st_mode):
        raise BackupError(f"{state.shown!r} is a directory now; move it away first")
    temporary = f".amplifier-{token_hex(8)}.tmp"
    try:
        yield temporary
        os.rename(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=handle)


def _put_directory(handle: int, name: str) -> None:
    """Make a directory, or have one so that what was in it can come back."""
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=handle)
    mode = _mode_of(handle, name)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        # its owner is somebody else, and so these bits are not ours
        with suppress(PermissionError):
            os.chmod(name, mode | stat.S_IRWXU, dir_fd=handle)


def _mode_of(handle: int, name: str) -> int:
    with closing_handle(open_beneath(handle, (name,))) as inner:
        return stat.S_IMODE(os.fstat(inner).st_mode)


def _remove(handle: int, name: str) -> None:
    current = _status(handle, name)
    if current is None:
        return
    if stat.S_ISDIR(current.st_mode):
        # It walks by handles itself and follows no link (`shutil.rmtree.avoids_symlink_attacks`).
        shutil.rmtree(name, dir_fd=handle)
    else:
        os.unlink(name, dir_fd=handle)


def _status(handle: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=handle, follow_symlinks=False)
    except FileNotFoundError:
        return None
