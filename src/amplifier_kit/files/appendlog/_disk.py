"""The few things a log asks of the operating system: private files and folders, whole writes, syncs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from amplifier_kit.files.open_flags import ADD_TO
from amplifier_kit.files.private_append import make_folders, open_private, write_whole

__all__ = [
    "cut",
    "discard_swap",
    "flush",
    "make_folders",
    "open_private",
    "read_all",
    "set_aside",
    "swap",
    "sync_folder",
    "write_whole",
]

_FOLDER: Final[int] = (
    os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
)


def read_all(handle: int) -> bytes:
    """Read a whole file from its beginning."""
    # a copy, since closing the file object closes its handle
    with os.fdopen(os.dup(handle), "rb") as file:
        file.seek(0)
        return file.read()


def cut(handle: int, end: int) -> None:
    """Cut a file off after so many bytes."""
    os.ftruncate(handle, end)


def flush(handle: int) -> None:
    """Have a file's content on the disk; its times may come later where the system knows the difference."""
    sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)
    sync(handle)


def sync_folder(folder: Path) -> None:
    """Have a folder's entries on the disk: without it a new file can be gone after a power failure."""
    handle = os.open(folder, _FOLDER)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def swap(path: Path, data: bytes) -> int:
    """Give a file new content in one step, and return the new file's handle; `sync_folder` makes the step last."""
    beside = _beside(path)
    handle = os.open(beside, ADD_TO | os.O_RDWR | os.O_TRUNC, 0o600)
    try:
        write_whole(handle, data)
        # synced before the rename: else a crash could leave an empty log under
        # the name
        flush(handle)
        os.rename(beside, path)
    except BaseException:
        os.close(handle)
        discard_swap(path)
        raise
    return handle


def discard_swap(path: Path) -> None:
    """Remove what a `swap` left that did not come to its end."""
    with suppress(OSError):
        _beside(path).unlink()


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


def set_aside(path: Path, pieces: Iterable[bytes]) -> None:
    """Add pieces to a file for whoever looks into what happened, each on a line of its own."""
    handle = os.open(path, ADD_TO | os.O_WRONLY, 0o600)
    try:
        write_whole(handle, b"".join(b"%b\n" % piece for piece in pieces))
        os.fsync(handle)
    finally:
        os.close(handle)
