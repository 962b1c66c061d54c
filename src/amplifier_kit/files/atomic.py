"""Files that change all at once: who reads one sees the old content or the new, never a part.

The new content goes to a temporary file in the same directory, is synced to the disk and takes the old
file's name in one step. A write that fails leaves the old file as it was and no temporary file. What a
rename cannot keep is lost: other hard links to the old file keep the old content.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.files.handles import closing_handle
from amplifier_kit.files.open_flags import NEW

__all__ = [
    "FileVersion",
    "StaleFileError",
    "WriteOutcome",
    "take_free_name",
    "write_atomically",
    "write_private",
]

_PROBE: Final[int] = (
    os.O_WRONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
)

_ACCESS: Final = "system.posix_acl_access"
_USER: Final = "user."

# Sessions of one process may write one file; the check and the rename have to be one step for them.
_COMMIT: Final = threading.Lock()


class StaleFileError(OSError):
    """The file is no longer the one that was read."""

    def __init__(self, name: str) -> None:
        super().__init__(errno.ESTALE, "the file changed since it was read", name)


@attrs.frozen(kw_only=True)
class FileVersion:
    """What identifies a state of a file without reading it."""

    device: int
    inode: int
    size: int
    modified: int  # nanoseconds since the epoch

    @classmethod
    def of(cls, status: os.stat_result) -> FileVersion:
        """Take the version from a file's status."""
        return cls(
            device=status.st_dev,
            inode=status.st_ino,
            size=status.st_size,
            modified=status.st_mtime_ns,
        )


@attrs.frozen(kw_only=True)
class WriteOutcome:
    """What a write made: whether the file is new, and its version now."""

    created: bool
    version: FileVersion


def write_atomically(
    name: str,
    data: bytes,
    *,
    dir_fd: int,
    mode: int = 0o666,
    expected: FileVersion | None = None,
    must_be_new: bool = False,
) -> WriteOutcome:
    """Give a file new content, or create it.

    An existing file keeps its permissions with its access control list, its user attributes, and its owner where
    this process may set one. A file that may not be written is refused although its directory would allow the rename.

    Args:
        name: the file's name in the directory, not a path; a link of this name is refused.
        data: the whole new content.
        dir_fd: the handle of the directory.
        mode: the permissions of a new file, before the process's umask.
        expected: the version that was read; with another one in its place nothing is written. Among the
            writers of one process this is exact; another process can still come between check and rename.
        must_be_new: write nothing where something has the name, also when it came meanwhile.

    Raises:
        StaleFileError: the file is not `expected`.
        FileExistsError: it must be new and is not.
        OSError: it is no regular file, or the system refuses; the old file is untouched.
    """
    # in the same folder, since a rename is one step within a file system alone;
    # hidden and random, so that nobody waits for it under that name
    temporary = f".amplifier-{secrets.token_hex(8)}.tmp"
    with _opened(name, dir_fd) as old:
        if must_be_new and old is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        try:
            # outside of the lock: syncing takes longest, and only check and
            # rename must be one
            version = _write(temporary, data, dir_fd, mode, old)
            with _COMMIT:
                if expected is not None:
                    _require_version(name, dir_fd, expected)
                if must_be_new:
                    take_free_name(
                        temporary, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd
                    )
                else:
                    os.rename(temporary, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=dir_fd)
            raise
    return WriteOutcome(created=old is None, version=version)


def take_free_name(old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
    """Give a file or a link a new name, and never take the place of what has that name, also when it came meanwhile.

    When it is refused, nothing has changed. Where the file system has no hard links, another program can still come
    between the look at the name and the rename.

    Raises:
        FileExistsError: something has the name.
        OSError: the system refuses.
    """
    try:
        os.link(
            old,
            new,
            src_dir_fd=src_dir_fd,
            dst_dir_fd=dst_dir_fd,
            follow_symlinks=False,
        )
    except OSError as error:
        # both are final: a rename would overwrite, or fail for the same reason
        if error.errno in (errno.EEXIST, errno.EXDEV):
            raise
        # File systems without hard links say so in many ways; what else is wrong the rename finds as well.
        _require_free(new, dst_dir_fd)
        os.rename(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        return
    try:
        os.unlink(old, dir_fd=src_dir_fd)
    except OSError:
        with suppress(OSError):  # the refusal is what counts
            os.unlink(new, dir_fd=dst_dir_fd)
        raise


def write_private(path: Path, data: bytes) -> WriteOutcome:
    """Give the file of a path new content, or create it for this user alone; its folder must be there.

    Raises:
        OSError: it is a link or no regular file, or the system refuses; the old file is untouched.
    """
    flags = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
    with closing_handle(os.open(path.parent, flags)) as folder:
        try:
            return write_atomically(path.name, data, dir_fd=folder, mode=0o600)
        except OSError as error:
            # A write names no file, and a rename one that is gone.
            raise OSError(error.errno, error.strerror, str(path)) from error


@contextmanager
def _opened(name: str, dir_fd: int) -> Iterator[int | None]:
    """Yield the handle of a file that may be written, or `None` when there is none."""
    try:
        status = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        yield None
        return
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", name)
    # opened for writing although nothing is written: a rename asks for the
    # folder's permission alone, and would replace a file that is read-only
    with closing_handle(os.open(name, _PROBE, dir_fd=dir_fd)) as handle:
        yield handle


def _require_free(name: str, dir_fd: int) -> None:
    try:
        os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)


def _require_version(name: str, dir_fd: int, expected: FileVersion) -> None:
    with _opened(name, dir_fd) as handle:
        if handle is None or FileVersion.of(os.fstat(handle)) != expected:
            raise StaleFileError(name)


def _write(
    name: str, data: bytes, dir_fd: int, mode: int, old: int | None
) -> FileVersion:
    # private until the old permissions are taken over: the content may be, too
    handle = os.open(name, NEW, mode if old is None else 0o600, dir_fd=dir_fd)
    with open(handle, "wb") as file:
        file.write(data)
        file.flush()
        if old is not None:
            _take_over(old, handle)
        # before the rename, or a power failure could leave the name with no
        # content
        os.fsync(handle)
        return FileVersion.of(os.fstat(handle))


def _take_over(old: int, new: int) -> None:
    status = os.fstat(old)
    # only root may give files away; the content matters more than its owner
    with suppress(PermissionError):
        os.fchown(new, status.st_uid, status.st_gid)
    _take_over_attributes(old, new)
    # Last, since giving a file away and changing its list both change the mode.
    # Without setuid and setgid: new content must not inherit another's rights.
    os.fchmod(new, stat.S_IMODE(status.st_mode) & 0o777)


def _take_over_attributes(old: int, new: int) -> None:
    """Give an open file the access control list and the user attributes of the one whose place it takes.

    Without the list the permissions allow the group what the list allowed nobody but those whom it names, and the list
    that a directory gives to new files lets others in. Labels and capabilities are the system's, which gives them anew.
    """
    # only Linux has attributes that Python knows
    if sys.platform != "linux":
        return
    names = [
        name
        for name in _attribute_names(old)
        if name == _ACCESS or name.startswith(_USER)
    ]
    # a folder's default list was given to the new file, and the old one had none
    if _ACCESS not in names and _ACCESS in _attribute_names(new):
        os.removexattr(new, _ACCESS)
    for name in names:
        os.setxattr(new, name, os.getxattr(old, name))


def _attribute_names(handle: int) -> list[str]:
    try:
        return os.listxattr(handle)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return []
        raise
