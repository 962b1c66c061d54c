"""The log as a file, for code that may block; `AppendLog` is the same for tasks."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from time import time
from typing import Literal, Self, TypeAlias

import attrs
from anyio import ClosedResourceError

from amplifier_kit.files.appendlog import _disk
from amplifier_kit.files.appendlog._lines import encode_line, header_line
from amplifier_kit.files.appendlog._scan import Damage, Expected, Scan, scan
from amplifier_kit.files.locks import LOCK_TIMEOUT, WriterLock
from amplifier_kit.files.open_flags import READ
from amplifier_sdk.stores import LogEntry

__all__ = ["AppendError", "AppendLogFile", "Durability", "LogContent", "read_log"]

Durability: TypeAlias = Literal["written", "sync"]
"""What an append means: `written`, the record outlives this process; `sync`, it outlives a power failure."""


class AppendError(OSError):
    """A record could not be stored: the log ends with the one before, and takes the next when the cause is gone.

    `errno` is the system's.
    """

    def __init__(self, cause: OSError, path: Path, size: int) -> None:
        text = f"{cause.strerror or cause}; nothing of the {size:,} bytes was stored. Remedy that and go on"
        super().__init__(cause.errno, text, str(path))


@attrs.define(eq=False)
class AppendLogFile:
    """An open log, and its only writer.

    `records` are those that were there when it was opened, `damage` is what could not be read then, `end` is the
    length in bytes up to which the file is whole, `is_dirty` whether some of that is not yet on the disk.
    """

    path: Path
    expected: Expected
    durability: Durability
    _lock: WriterLock
    _handle: int
    records: tuple[LogEntry, ...] = ()
    damage: tuple[Damage, ...] = ()
    end: int = 0
    is_dirty: bool = False
    # what the next record needs in front of it: the header, or a missing line break
    _before: bytes = b""
    _is_torn: bool = False
    _is_new: bool = False
    # A task that is cancelled from outside anyio leaves its thread behind; the next one waits for it here.
    _turn: threading.Lock = attrs.field(factory=threading.Lock)

    @classmethod
    def open(
        cls,
        path: Path,
        expected: Expected,
        *,
        durability: Durability = "written",
        timeout: float = LOCK_TIMEOUT,
    ) -> Self:
        """Open a log for writing, or begin one; what is damaged is moved into `NAME.damaged` beside it.

        Args:
            path: the file; folders that are missing are made.
            expected: what the log is opened for.
            durability: what an append means.
            timeout: seconds to wait for another writer that lets go.

        Raises:
            LockedError: somebody else writes it.
            LogFormatError: it is no log, one of something else, or a newer version's.
            OSError: the system refuses.
        """
        path = path.absolute()
        _disk.make_folders(path.parent)
        with ExitStack() as undone:
            # before the file is opened: its content may not change between reading
            # and writing
            lock = undone.enter_context(WriterLock.take(path, timeout=timeout))
            log = cls(path, expected, durability, lock, _disk.open_private(path))
            undone.callback(log._release)
            log._load()
            undone.pop_all()
        return log

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._handle < 0

    def append(self, line: bytes) -> None:
        """Add a line that `encode_line` made: whole, or not at all.

        Raises:
            AppendError: it was not stored.
            ClosedResourceError: the log is closed.
        """
        with self._turn:
            self._require_open()
            # one write for all of it, so that a crash tears one record at most
            payload = b"%b%b\n" % (self._before, line)
            try:
                self._mend()
                _disk.write_whole(self._handle, payload)
                # also when the sync fails: what was written has yet to reach the
                # disk
                self.is_dirty = True
                if self.durability == "sync":
                    self._sync()
            except OSError as error:
                self._is_torn = True
                # what cannot be cut off now is cut off before the next append
                with suppress(OSError):
                    self._mend()
                raise AppendError(error, self.path, len(payload)) from error
            self.end += len(payload)
            self._before = b""

    def sync(self) -> None:
        """Have everything that was appended on the disk; nothing is done when it is.

        Raises:
            OSError: the system failed to; what was appended since the last time may not survive a power failure.
            ClosedResourceError: the log is closed.
        """
        with self._turn:
            self._require_open()
            self._sync()

    def replace(self, records: Iterable[LogEntry]) -> None:
        """Put other records in the place of all that there are: a crash leaves the old or the new ones.

        Raises:
            OSError: the system refuses; the old records are untouched, or the new ones are not yet on the disk.
            ClosedResourceError: the log is closed.
        """
        with self._turn:
            self._require_open()
            self._rewrite([encode_line(record) for record in records])

    def close(self) -> None:
        """Sync and close the file, and let go of it; a log without records leaves no file. Twice does nothing.

        Raises:
            OSError: the system failed to sync; the file is closed all the same.
        """
        with self._turn:
            try:
                if not self.is_closed:
                    with suppress(OSError):
                        self._mend()
                    self._sync()
            finally:
                self._release()

    # -- the file; whoever calls these has the turn

    def _load(self) -> None:
        """Read what is there, and put aside what is damaged."""
        _disk.discard_swap(self.path)
        data = _disk.read_all(self._handle)
        found = scan(self.path, data, self.expected)
        self.records = tuple(found.records)
        self.damage = tuple(found.damage)
        self.end = len(data)
        self._is_new = not data
        if not data.endswith(b"\n"):
            self._before = b"\n" if data else self._header()
        if found.damage or (data and not found.has_header):
            # A full disk keeps nobody from reading: the damage then stays where it is, and is found again.
            with suppress(OSError):
                self._recover(found)

    def _recover(self, found: Scan) -> None:
        """Move what is damaged aside, and leave a file of whole lines."""
        kept_in = self.path.with_name(f"{self.path.name}.damaged")
        if found.damage:
            _disk.set_aside(kept_in, (piece.data for piece in found.damage))
            self.damage = tuple(
                attrs.evolve(piece, kept_in=kept_in) for piece in found.damage
            )
        if found.is_torn_only:
            _disk.cut(self._handle, found.end)
            self.end = found.end
            if self.end:
                self._before = b""
            else:
                self._before = self._header()
            self.is_dirty = True
        else:
            self._rewrite(found.lines)

    def _rewrite(self, lines: Iterable[bytes]) -> None:
        data = self._header() + b"".join(b"%b\n" % line for line in lines)
        try:
            old, self._handle = self._handle, _disk.swap(self.path, data)
        except OSError as error:  # a write names no file
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        with suppress(OSError):  # that file is gone
            os.close(old)
        self.end, self._before, self._is_torn = len(data), b"", False
        self.is_dirty = self._is_new = True
        self._sync()

    def _header(self) -> bytes:
        return header_line(self.expected.holds, self.expected.version, time()) + b"\n"

    def _mend(self) -> None:
        """Cut off what a failed append left."""
        if self._is_torn:
            _disk.cut(self._handle, self.end)
            self._is_torn = False

    def _sync(self) -> None:
        if not self.is_dirty:
            return
        _disk.flush(self._handle)
        if self._is_new:
            _disk.sync_folder(self.path.parent)
        self.is_dirty = self._is_new = False

    def _release(self) -> None:
        try:
            if not self.is_closed:
                handle, self._handle = self._handle, -1
                # asked of the handle: the name may be another file's by now
                if os.fstat(handle).st_size == 0:
                    with suppress(OSError):
                        self.path.unlink()
                os.close(handle)
        finally:
            self._lock.release()

    def _require_open(self) -> None:
        if self.is_closed:
            raise ClosedResourceError


@attrs.frozen(kw_only=True)
class LogContent:
    """What a log holds: its records, and what could not be read.

    A tail that is damaged may be a record that is being written.
    """

    records: tuple[LogEntry, ...] = ()
    damage: tuple[Damage, ...] = ()


def read_log(path: Path, expected: Expected) -> LogContent:
    """Read what a log holds now; one that is not there holds nothing. It blocks: call it in a thread.

    Raises:
        LogFormatError: it is no log, one of something else, or a newer version's.
        OSError: it cannot be read, or is a link.
    """
    try:
        handle = os.open(path, READ)
    except FileNotFoundError:
        return LogContent()
    try:
        found = scan(path, _disk.read_all(handle), expected)
    finally:
        os.close(handle)
    return LogContent(records=tuple(found.records), damage=tuple(found.damage))
