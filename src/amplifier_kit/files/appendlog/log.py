"""The log for tasks: everything that blocks happens in a worker thread, one thing at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from time import time
from typing import Self

import attrs
from anyio import CapacityLimiter, to_thread

from amplifier_kit.files.appendlog._lines import HEADER, decode_line, encode_line
from amplifier_kit.files.appendlog._scan import Check, Damage, Expected
from amplifier_kit.files.appendlog.file import AppendLogFile, Durability
from amplifier_kit.files.locks import LOCK_TIMEOUT
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.stores import LogEntry

__all__ = ["AppendLog"]


@attrs.define(eq=False)
class AppendLog:
    """An append-only file of JSON records with one writer.

    A record is stored whole or not at all: also when the disk is full, the task is cancelled or the process is
    killed. `take` gives the records in the order of the file, those that were found first; what it has given is
    what the file holds. Whoever opens a log closes it with `aclose`.
    """

    _file: AppendLogFile
    _limiter: CapacityLimiter
    _stored: deque[LogEntry]

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        holds: str | Expected,
        version: int = 1,
        check: Check | None = None,
        durability: Durability = "written",
        timeout: float = LOCK_TIMEOUT,
    ) -> Self:
        """Open a log, or begin one; what is damaged is moved into `NAME.damaged` beside it.

        Args:
            path: the file; folders that are missing are made.
            holds: the name of what the records are; a log of anything else is refused.
                Or all that the log is opened for, in the place of the next two.
            version: the newest version of them that is understood; a log of a newer one is refused.
            check: says what is wrong with a record; such a record counts as damaged.
            durability: `written`, a record outlives this process once it is appended; `sync`, also a power failure.
            timeout: seconds to wait for another writer that lets go.

        Raises:
            LockedError: somebody else writes it.
            LogFormatError: it is no log, one of something else, or a newer version's.
            OSError: the system refuses.
        """
        expected = holds
        if isinstance(expected, str):
            expected = Expected(holds=expected, version=version, check=check)
        # one thread at a time keeps the order of appends without a lock of its
        # own
        limiter = CapacityLimiter(1)
        opening = partial(
            AppendLogFile.open, path, expected, durability=durability, timeout=timeout
        )
        file = await to_thread.run_sync(opening, limiter=limiter)
        stored = deque(file.records)
        file.records = ()
        return cls(file, limiter, stored)

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What could not be read when the log was opened."""
        return self._file.damage

    @property
    def durability(self) -> Durability:
        """What an append means."""
        return self._file.durability

    @property
    def is_dirty(self) -> bool:
        """Whether something that was appended is not yet on the disk."""
        return self._file.is_dirty

    @property
    def size(self) -> int:
        """How many bytes the file has."""
        return self._file.end

    def take(self) -> list[LogEntry]:
        """Take the records that are stored and were not taken before, in their order."""
        taken: list[LogEntry] = []
        while self._stored:
            taken.append(self._stored.popleft())
        return taken

    async def append(
        self, kind: str, data: JSONValue, *, written: JSONValue = None
    ) -> None:
        """Store a record; `take` then has it, as a reader of the file would find it.

        A cancelled append is stored, and can be taken, or it is not.

        Args:
            kind: what the record is; `log` is the header's.
            data: JSON data, written as it is now.
            written: what the file gets in its place, such as the data without secrets; `take` gives the data.

        Raises:
            ValueError: the data has no JSON form, or the kind is the header's.
            AppendError: it was not stored; the log goes on.
            ClosedResourceError: the log is closed.
        """
        if kind == HEADER:
            raise ValueError(
                f"{HEADER!r} is the kind of a log's header; choose another"
            )
        now = round(time(), 3)
        line = encode_line(LogEntry(kind=kind, data=data, at=now))
        # decoded from the line, so that `take` gives what a reader of the file
        # would find
        record = decode_line(line)
        if written is not None:
            line = encode_line(LogEntry(kind=kind, data=written, at=now))
        await to_thread.run_sync(self._store, line, record, limiter=self._limiter)

    async def sync(self) -> None:
        """Have everything that was appended on the disk; nothing is done when it is.

        Raises:
            OSError: the system failed to; what was appended since the last time may not survive a power failure.
            ClosedResourceError: the log is closed.
        """
        if self._file.is_dirty or self._file.is_closed:
            await to_thread.run_sync(self._file.sync, limiter=self._limiter)

    async def replace(self, records: Iterable[LogEntry]) -> None:
        """Put other records in the place of all that there are, at once; `take` does not give them.

        Raises:
            OSError: the system refuses; the old records are untouched, or the new ones are not yet on the disk.
            ClosedResourceError: the log is closed.
        """
        await to_thread.run_sync(
            self._file.replace, tuple(records), limiter=self._limiter
        )

    async def aclose(self) -> None:
        """Sync and close the file, and let go of it; a second call does nothing.

        Raises:
            OSError: the system failed to sync; the file is closed all the same.
        """
        if not self._file.is_closed:
            await to_thread.run_sync(self._file.close, limiter=self._limiter)

    def _store(self, line: bytes, record: LogEntry) -> None:
        """Store a record and say so, in a thread that no cancellation parts."""
        self._file.append(line)
        self._stored.append(record)
