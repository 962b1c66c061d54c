"""One writer at a time: a lock file that says who holds it.

The operating system holds the lock, so it ends with its process, however that ends. The file beside it only
names the holder, for whoever is refused.
"""

from __future__ import annotations

import json
import os
import platform
import time
from contextlib import suppress
from errno import EWOULDBLOCK
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import attrs

if TYPE_CHECKING:
    from filelock import BaseFileLock

__all__ = ["LOCK_TIMEOUT", "STEP_TIMEOUT", "LockOwner", "LockedError", "WriterLock"]

LOCK_TIMEOUT: Final = 0.5
"""Seconds in which a holder that is about to let go may do so."""

STEP_TIMEOUT: Final = 5.0
"""Seconds for a lock that nobody holds for longer than a step: a disk may stall, and the machine."""

_POLL: Final = 0.02
_LONGEST: Final = 4096


@attrs.frozen(kw_only=True)
class LockOwner:
    """Who holds a lock.

    Args:
        pid: the process.
        host: the machine's name.
        started: when the process started, in seconds since the epoch.
        since: when it took the lock, likewise.
    """

    pid: int
    host: str
    started: float
    since: float

    @classmethod
    def this(cls) -> LockOwner:
        """Describe this process, now."""
        return cls(
            pid=os.getpid(), host=platform.node(), started=_started(), since=time.time()
        )

    def __str__(self) -> str:
        whose = "this process itself"
        if self.pid != os.getpid():
            whose = f"process {self.pid}"
        return f"{whose} on {self.host}, started at {_clock(self.started)}, since {_clock(self.since)}"


class LockedError(OSError):
    """Somebody else holds the lock; `owner` says who, `None` where the lock file does not."""

    def __init__(self, path: Path, owner: LockOwner | None) -> None:
        self.owner = owner
        who = "a process that left no name"
        if owner is not None:
            who = str(owner)
        super().__init__(
            EWOULDBLOCK, f"It is being written by {who}. End that one first", str(path)
        )


@attrs.define(eq=False)
class WriterLock:
    """The lock on one file, from `take` to `release` or the end of a `with` block.

    Taking it and letting go block for a moment, so call them in a thread.
    """

    path: Path
    _lock: BaseFileLock

    @classmethod
    def take(cls, target: Path, *, timeout: float = LOCK_TIMEOUT) -> Self:
        """Take the lock on a file, which need not exist; the lock file stands beside it.

        Args:
            target: the file to be written.
            timeout: seconds to wait for a holder that lets go.

        Raises:
            LockedError: somebody else holds it.
            OSError: the lock file cannot be made.
        """
        # half the cost of opening a file, for those who lock one
        from filelock import FileLock, Timeout

        path = target.with_name(f"{target.name}.lock")
        # `thread_local` off: the lock is taken in a worker thread and let go in
        # another
        lock = FileLock(
            path,
            timeout=timeout,
            mode=0o600,
            thread_local=False,
            poll_interval=_POLL,
            # on a file system without locks it fails, instead of locking nothing
            preserve_lock_file=True,
            on_acquired=_sign,
        )
        try:
            lock.acquire()
        except Timeout:
            raise LockedError(target, _owner_of(path)) from None
        return cls(path, lock)

    def release(self) -> None:
        """Let go; the lock file is removed. A second call does nothing."""
        if self._lock.is_locked:
            # While it is held: whoever opened this file before finds it without a name, and retries.
            with suppress(OSError):
                self.path.unlink()
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _owner_of(path: Path) -> LockOwner | None:
    """Read who signed a lock file; `None` when nobody did so legibly."""
    try:
        with path.open("rb") as file:
            signed = json.loads(file.read(_LONGEST))
        # a half-written signature is possible: it names nobody, and the lock
        # holds
        return LockOwner(
            pid=int(signed["pid"]),
            host=str(signed["host"]),
            started=float(signed["started"]),
            since=float(signed["since"]),
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _sign(handle: int) -> None:
    """Write this process into the lock file that it just took."""
    text = json.dumps(attrs.asdict(LockOwner.this())).encode()
    # A full disk leaves the lock without a name; it holds all the same.
    with suppress(OSError):
        os.pwrite(handle, text, 0)
    # Behind it: a file that was truncated to nothing is written to the disk when it is closed, by ext4 for one.
    os.ftruncate(handle, len(text))


def _started() -> float:
    """Return when this process started; where the system does not tell, when it first asked."""
    try:
        ticks = int(
            # field 22 of proc(5); the program's name before it may hold blanks
            # and brackets
            Path("/proc/self/stat").read_text("ascii").rpartition(")")[2].split()[19]
        )
        return (
            time.time()
            - time.clock_gettime(time.CLOCK_BOOTTIME)
            + ticks / os.sysconf("SC_CLK_TCK")
        )
    except (OSError, ValueError, IndexError, AttributeError):
        return _IMPORTED


_IMPORTED: Final = time.time()


def _clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
