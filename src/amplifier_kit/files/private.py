"""Small JSON files that only their owner reads and writes, changed under a lock and all at once.

A file that somebody else may have written is not believed: links, other owners, hard links and permissions for
others are refused. Needs the extra `amplifier[locks]`; the functions block, so call them in a thread.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.files.atomic import write_atomically
from amplifier_kit.files.handles import closing_handle
from amplifier_kit.files.open_flags import LIST, READ
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["PrivateFile", "PrivateFileError", "open_private_folder", "require_private"]

_MAX_BYTES: Final = 16_000_000
_TIMEOUT: Final = 5.0


class PrivateFileError(OSError):
    """A file is damaged, or others may have written it; it is not believed."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path} {problem}")


@attrs.frozen
class PrivateFile:
    """One such file; it need not exist."""

    path: Path

    def read(self) -> JSONValue:
        """Return what the file holds; `None` when it does not exist.

        Raises:
            PrivateFileError: it is damaged, or others may have written it.
            OSError: it cannot be read.
        """
        try:
            with open_private_folder(self.path.parent) as folder:
                return self._read(folder)
        except FileNotFoundError:
            return None

    def update(self, change: Callable[[JSONValue], JSONValue]) -> JSONValue:
        """Replace the content by what `change` makes of it, and return that; writers wait for each other.

        Raises:
            LockedError: another process holds the file for more than five seconds.
            PrivateFileError: it is damaged, or others may have written it.
            OSError: it cannot be written; the old content stays.
        """
        # needs an extra, which readers need not have
        from amplifier_kit.files.locks import WriterLock

        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # through the folder's handle: a folder that is swapped later is not the
        # checked one
        with (
            open_private_folder(self.path.parent) as folder,
            WriterLock.take(self.path, timeout=_TIMEOUT),
        ):
            # read under the lock, or two writers would each undo the other's change
            content = change(self._read(folder))
            data = json.dumps(
                content, indent=1, sort_keys=True, ensure_ascii=True
            ).encode()
            if len(data) > _MAX_BYTES:  # nobody could read it again
                raise PrivateFileError(
                    self.path,
                    f"would have more than {_MAX_BYTES} bytes; remove what is not needed",
                )
            write_atomically(self.path.name, data, dir_fd=folder, mode=0o600)
        return content

    def _read(self, folder: int) -> JSONValue:
        try:
            handle = os.open(self.path.name, READ, dir_fd=folder)
        except FileNotFoundError:
            return None
        with closing_handle(handle):
            require_private(self.path, os.fstat(handle))
            with open(handle, "rb", closefd=False) as file:
                data = file.read(_MAX_BYTES + 1)
        try:
            if len(data) > _MAX_BYTES:
                raise ValueError(f"has more than {_MAX_BYTES} bytes")
            content: JSONValue = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise PrivateFileError(
                self.path, f"cannot be read as JSON: {error}; repair or remove it"
            ) from error
        return content


@contextmanager
def open_private_folder(path: Path) -> Iterator[int]:
    """Open a folder that nobody else may write, and yield its handle.

    Raises:
        PrivateFileError: somebody else may write it.
        OSError: it cannot be opened; its last part is a link.
    """
    with closing_handle(os.open(path, LIST)) as folder:
        status = os.fstat(folder)
        if status.st_uid != os.geteuid():
            raise PrivateFileError(path, "belongs to somebody else")
        # who may write the folder may replace the file, whatever its own mode
        # says
        if stat.S_IMODE(status.st_mode) & 0o022:
            raise PrivateFileError(
                path, "can be written by others; run: chmod go-w on it"
            )
        yield folder


def require_private(path: Path, status: os.stat_result) -> None:
    """Refuse a file that somebody else may have written.

    Args:
        path: the file, for the message.
        status: of its open handle.

    Raises:
        PrivateFileError: says what is wrong with it.
    """
    if not stat.S_ISREG(status.st_mode):
        raise PrivateFileError(path, "is no regular file")
    if status.st_uid != os.geteuid():
        raise PrivateFileError(path, "belongs to somebody else")
    if stat.S_IMODE(status.st_mode) & 0o022:
        raise PrivateFileError(path, "can be written by others; run: chmod 600 on it")
    # through a second name somebody else may have opened it for writing before
    if status.st_nlink > 1:
        raise PrivateFileError(
            path, "has a second name, by a hard link; copy it and remove both"
        )
