"""Files that only this user reads, for adding to: opened, made with their folders, written whole. All of it blocks."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from errno import EINVAL
from pathlib import Path

from amplifier_kit.files.open_flags import ADD_TO

__all__ = ["make_folders", "open_private", "write_whole"]


def make_folders(folder: Path) -> None:
    """Make a folder and those above it that are missing, for this user alone; those that are there stay as they are."""
    missing = [part for part in (folder, *folder.parents) if not part.exists()]
    for part in reversed(missing):
        # another process may make the same folders at the same time
        part.mkdir(mode=0o700, exist_ok=True)


def open_private(path: Path) -> int:
    """Open a file for appending and reading, for this user alone, and return its handle.

    Raises:
        OSError: it is a link, or no regular file; a pipe without a reader is not waited for.
    """
    handle = os.open(path, ADD_TO | os.O_RDWR | os.O_NONBLOCK, 0o600)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(EINVAL, "It is not a regular file", str(path))
        if status.st_mode & 0o077:
            # somebody else's file stays as open as its owner made it
            with suppress(PermissionError):
                os.fchmod(handle, 0o600)
    except BaseException:
        os.close(handle)
        raise
    return handle


def write_whole(handle: int, data: bytes) -> None:
    """Write all of it; an error can come after a part."""
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]
