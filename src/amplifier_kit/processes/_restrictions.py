"""Restrictions that a process puts on itself and all it starts: Landlock for files and TCP, seccomp for the rest.

They hold for the calling thread and what it starts, for ever. Both are reached by their system calls, whose
numbers and structures are part of the kernel's stable interface.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, cast

__all__ = ["landlock_version", "refuse_network", "restrict"]

# Landlock's calls have these numbers on every architecture.
_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_NO_NEW_PRIVILEGES: Final = 38
_SET_SECCOMP: Final = 22
_FILTER: Final = 2

_READ_DIRECTORY: Final = 1 << 3
_READ_FILE: Final = 1 << 0 | 1 << 2  # execute, read
_ON_FILES: Final = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14  # execute, write, read, truncate
_RIGHTS: Final = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}
"""All rights over files that each version of Landlock knows; later versions know those of 3."""

_TCP: Final = 0b11
_SCOPES: Final = 0b11  # abstract sockets and signals
_DEVICES: Final = (
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
)

_SOCKET_CALLS: Final = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""The architecture's number and that of `socket`, by machine."""

_IO_URING_SETUP: Final = 425
_OTHER_NUMBERS: Final = 0x40000000  # where the numbers of the x32 interface begin
# the version of the structures that hold capabilities
_CAPABILITIES: Final = 0x20080522
_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000 | 13  # EACCES

_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def landlock_version() -> int:
    """Return the version of Landlock that the kernel offers; 0 when it offers none."""
    return max(
        0, int(_LIBC.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION))
    )


def restrict(restrictions: object) -> None:
    """Take on restrictions: `writable` folders, `hidden` paths and those `shown` in them, and the `network`.

    Raises:
        OSError: the kernel refuses; then nothing must be run.
    """
    wanted = cast("Mapping[str, object]", restrictions)
    writable = cast("list[str]", wanted["writable"])
    hidden = cast("list[str]", wanted["hidden"])
    shown = [
        os.path.realpath(path) for path in cast("list[str]", wanted.get("shown", []))
    ]
    network = bool(wanted["network"])
    version = landlock_version()
    rights = _RIGHTS.get(version, _RIGHTS[3])
    sizes = ctypes.c_uint64 * 3
    attributes = sizes(
        rights, 0 if network or version < 4 else _TCP, _SCOPES if version >= 6 else 0
    )
    if version < 4:
        size = 8
    else:
        size = 16 if version < 6 else 24
    ruleset = _call(_CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), 0)
    try:
        _allow(ruleset, ["/"], _READ_DIRECTORY)
        _allow(
            ruleset,
            _all_but("/", [os.path.realpath(path) for path in hidden]),
            _READ_FILE,
        )
        _allow(ruleset, shown, _READ_FILE)
        _allow(ruleset, [*_DEVICES, *writable], rights)
        _control(_NO_NEW_PRIVILEGES, 1)
        _drop_capabilities()
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    if not network:
        refuse_network(os.uname().machine)


def _allow(ruleset: int, paths: Iterable[str], rights: int) -> None:
    for path in paths:
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # what is not there, or closed to this user, needs no right
        try:
            held = rights
            if not stat.S_ISDIR(os.fstat(handle).st_mode):
                held = rights & _ON_FILES
            # The structure is packed: eight bytes of rights, four of the handle.
            rule = held.to_bytes(8, "little") + handle.to_bytes(4, "little")
            _call(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
        finally:
            os.close(handle)


def _all_but(folder: str, hidden: list[str]) -> Iterator[str]:
    """Yield paths that together hold everything below a folder but what is hidden."""
    inside = [
        path
        for path in hidden
        if path == folder or path.startswith(f"{folder.rstrip('/')}/")
    ]
    if not inside:
        yield folder
    elif folder not in inside:
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                yield from _all_but(path, inside)


def refuse_network(machine: str) -> None:
    """Refuse to make sockets of any kind, and io_uring, which could make them too; nothing where they are unknown."""
    if machine not in _SOCKET_CALLS:
        return
    architecture, socket_call = _SOCKET_CALLS[machine]
    # Each step: code, steps to jump when true, when false, operand.
    steps = (
        (0x20, 0, 0, 4),  # load the architecture
        (0x15, 0, 4, architecture),  # another one: refuse
        (0x20, 0, 0, 0),  # load the call's number
        (0x35, 2, 0, _OTHER_NUMBERS),
        (0x15, 1, 0, socket_call),
        (0x15, 0, 1, _IO_URING_SETUP),
        (0x06, 0, 0, _REFUSE),
        (0x06, 0, 0, _ALLOW),
    )
    code = b"".join(
        operation.to_bytes(2, "little")
        + bytes((true, false))
        + operand.to_bytes(4, "little")
        for operation, true, false, operand in steps
    )
    program = ctypes.create_string_buffer(code, len(code))
    header = (ctypes.c_uint64 * 2)(len(steps), ctypes.addressof(program))
    _control(_SET_SECCOMP, _FILTER, ctypes.byref(header))


def _drop_capabilities() -> None:
    """Give up what the superuser may do beyond other users, which would open the memory of any process."""
    version = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0)
    none = (ctypes.c_uint32 * 6)()
    if _LIBC.capset(ctypes.byref(version), ctypes.byref(none)):
        raise OSError(
            ctypes.get_errno(), "the process could not give up its capabilities"
        )


def _call(number: int, *arguments: object) -> int:
    result = int(_LIBC.syscall(number, *arguments))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"Landlock refused: {os.strerror(error)}")
    return result


def _control(option: int, *values: object) -> None:
    if _LIBC.prctl(option, *values, *[0] * (4 - len(values))):
        error = ctypes.get_errno()
        raise OSError(
            error, f"the process could not be restricted: {os.strerror(error)}"
        )
