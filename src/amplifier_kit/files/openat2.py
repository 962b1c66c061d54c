"""Directories below a directory, reached without following links.

Linux opens the whole way in one call, `openat2` with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS`, and watches over
it itself. Where the call is missing (another system, an old kernel, a sandbox that refuses it) the way is walked by
handles, one name after the other. Both refuse the same ways.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, TypeAlias

from amplifier_kit.files.open_flags import PASS

__all__ = ["DirectoryOpener", "kernel_opener", "open_beneath", "walk_beneath"]

DirectoryOpener: TypeAlias = Callable[[int, Sequence[str]], int]
"""Opens the directory that some names lead to from an open one, and returns its handle, which the caller closes."""

_OPENAT2: Final = 437  # the same on every machine below
_MACHINES: Final = frozenset(
    {
        "x86_64",
        "i686",
        "aarch64",
        "armv7l",
        "riscv64",
        "ppc64le",
        "s390x",
        "loongarch64",
    }
)

_RESOLVE_NO_MAGICLINKS: Final = 0x02
_RESOLVE_NO_SYMLINKS: Final = 0x04
_RESOLVE_BENEATH: Final = 0x08
_RESOLVE: Final = _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS

_ATTEMPTS: Final = 8


def open_beneath(directory: int, parts: Sequence[str]) -> int:
    """Open the directory that names lead to, by the kernel's own check where it has one.

    Args:
        directory: the handle to start from; it stays open.
        parts: names, none of them `..`; without any the directory itself is opened anew.

    Raises:
        OSError: something on the way is missing, a link (`ELOOP` or `ENOTDIR`) or no directory.
    """
    by_kernel = kernel_opener()
    if by_kernel is None:
        return walk_beneath(directory, parts)
    return by_kernel(directory, parts)


def walk_beneath(directory: int, parts: Sequence[str]) -> int:
    """Open the directory that names lead to, one handle after the other; as `open_beneath`."""
    handle = os.open(".", PASS, dir_fd=directory)
    # PASS has O_NOFOLLOW, so that a link in any place fails instead of leading
    # away
    for part in parts:
        try:
            inner = os.open(part, PASS, dir_fd=handle)
        finally:
            os.close(handle)
        handle = inner
    return handle


@cache
def kernel_opener() -> DirectoryOpener | None:
    """Return the opener that uses `openat2`; `None` when this system has none."""
    if sys.platform != "linux" or os.uname().machine not in _MACHINES:
        return None
    opener = _load()
    # asked once: a sandbox answers with an error of its own, not always ENOSYS
    probe = os.open("/", PASS)
    try:
        os.close(opener(probe, ()))
    except OSError:
        return None  # an old kernel does not know the call, a sandbox may refuse it
    finally:
        os.close(probe)
    return opener


def _load() -> DirectoryOpener:
    import ctypes  # only who opens files needs it

    how = struct.pack("@QQQ", PASS, 0, _RESOLVE)  # flags, mode, resolve
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    call.argtypes = (
        ctypes.c_long,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
    )

    def open_by_kernel(directory: int, parts: Sequence[str]) -> int:
        name = os.fsencode("/".join(parts) or ".")
        for _ in range(_ATTEMPTS):
            handle: int = call(_OPENAT2, directory, name, how, len(how))
            if handle >= 0:
                return handle
            # Something was renamed during the call, so that the kernel could not be sure.
            if (code := ctypes.get_errno()) not in (errno.EAGAIN, errno.EINTR):
                raise OSError(code, os.strerror(code), os.fsdecode(name))
        # a folder in constant motion: the walk refuses links just as well
        return walk_beneath(directory, parts)

    return open_by_kernel
