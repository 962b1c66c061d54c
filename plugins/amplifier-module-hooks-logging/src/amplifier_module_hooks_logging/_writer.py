"""The writer: a thread that makes lines of entries and appends them to a file, and turns the file when it is full."""

from __future__ import annotations

import atexit
import os
import threading
import time
from contextlib import suppress
from logging import getLogger
from pathlib import Path
from queue import Empty, SimpleQueue
from secrets import token_hex
from typing import Final

import attrs

from amplifier_kit.files.private_append import make_folders, open_private, write_whole
from amplifier_kit.logs.files import rotated_name
from amplifier_module_hooks_logging._entries import EventEntry, line_of
from amplifier_module_hooks_logging._settings import LoggingConfig
from amplifier_sdk.threads import run_blocking

__all__ = ["SessionLogWriter"]

_log: Final = getLogger(__name__)
_BATCH: Final = 256


@attrs.define(eq=False)
class SessionLogWriter:
    """Writes one session's log.

    The thread begins with the first entry and ends with `aclose`, or when the program ends. Entries that find the
    queue full are dropped and counted, and the log says how many; `lost` counts those that could not be written.
    A disk that does not answer is waited for `close_timeout` seconds at the end, flush and close together: what the
    thread still holds then is `stuck`, and is written all the same if the disk comes back while the program runs.
    """

    path: Path
    session_id: str
    config: LoggingConfig
    dropped: int = 0
    lost: int = 0
    stuck: int = 0
    problem: str | None = None
    _run: str = attrs.field(factory=lambda: token_hex(4))
    _queue: SimpleQueue[EventEntry | threading.Event | None] = attrs.field(
        factory=SimpleQueue
    )
    _thread: threading.Thread | None = None
    _handle: int = -1
    _size: int = 0
    _reported: int = 0
    _taken: int = 0
    _done: int = 0
    _until: float | None = None

    @property
    def missing(self) -> int:
        """Count the entries that are not in the log."""
        return self.dropped + self.lost + self.stuck

    def put(self, entry: EventEntry) -> None:
        """Hand an entry to the thread; never waits."""
        # A slow disk costs lines, not the memory or the time of a turn.
        if self._queue.qsize() >= self.config.queue_size:
            self.dropped += 1
            return
        self._taken += 1
        self._queue.put(entry)
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._work, name=f"log of {self.session_id:.40}", daemon=True
            )
            self._thread.start()
            atexit.register(self._finish)

    async def flush(self) -> None:
        """Wait until what was handed over is written, but not for a disk that does not answer."""
        if self._thread is not None:
            done = threading.Event()
            self._queue.put(done)
            if await run_blocking(
                lambda: done.wait(self._time_limit()), name="flush of the log"
            ):
                self._until, self.stuck = None, 0
            else:
                self._give_up()

    async def aclose(self) -> None:
        """Write what is left and close the file, unless the disk does not answer."""
        if self._thread is not None:
            await run_blocking(self._finish, name="end of the log")

    def _finish(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            thread.join(timeout=self._time_limit())
            if thread.is_alive():
                self._give_up()
            atexit.unregister(self._finish)

    def _time_limit(self) -> float:
        """Return how many seconds are left to wait; they begin to run when this is asked first."""
        now = time.monotonic()
        if self._until is None:
            self._until = now + self.config.close_timeout
        return max(0.0, self._until - now)

    def _give_up(self) -> None:
        """Count what the thread still holds."""
        self.stuck = self._taken - self._done
        self.problem = f"the disk did not answer within {self.config.close_timeout:g} s"
        _log.warning(
            "%d events are not in the log %s (%s)",
            self.missing,
            self.path,
            self.problem,
        )

    def _work(self) -> None:
        """Take entries and write them until the end, several at once when they wait."""
        going = True
        while going:
            waiting = [self._queue.get()]
            with suppress(Empty):
                # Bounded, so that an event to be set is not waited for behind a queue
                # that never empties.
                while len(waiting) < _BATCH:
                    waiting.append(self._queue.get_nowait())
            going = None not in waiting
            self._write([item for item in waiting if isinstance(item, EventEntry)])
            for item in waiting:
                if isinstance(item, threading.Event):
                    item.set()
        self._close()

    def _close(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def _write(self, entries: list[EventEntry]) -> None:
        lines = [line for entry in entries if (line := self._line(entry))]
        if entries and self.dropped > self._reported:
            count, self._reported = self.dropped - self._reported, self.dropped
            lines += filter(None, [self._line(_dropped(count, entries[-1]))])
        try:
            # One by one: after an error the lines that were written are not counted as
            # lost.
            while lines:
                self._append(lines[0])
                del lines[0]
        except OSError as error:
            self.lost += len(lines)
            self.problem = f"{type(error).__name__}: {error.strerror or error}"
            self._close()  # opened anew the file gets an end to the line that was cut
        self._done += len(entries)

    def _line(self, entry: EventEntry) -> bytes | None:
        config = self.config
        try:
            return line_of(
                entry,
                self.session_id,
                self._run,
                max_text=config.max_text,
                max_bytes=config.max_record_bytes,
            )
        except Exception as error:
            # foreign values: what cannot be written costs its own line only
            self.lost += 1
            self.problem = type(error).__name__
            return None

    def _append(self, line: bytes) -> None:
        if self._handle >= 0 and self._size + len(line) > self.config.max_file_bytes:
            self._turn()
        if self._handle < 0:
            self._open()
        write_whole(self._handle, line)
        self._size += len(line)

    def _open(self) -> None:
        make_folders(self.path.parent)
        self._handle = open_private(self.path)
        self._size = os.fstat(self._handle).st_size
        # a line that was cut
        if self._size and os.pread(self._handle, 1, self._size - 1) != b"\n":
            self._size += os.write(self._handle, b"\n")
        if self._size >= self.config.max_file_bytes:
            self._turn()
            self._open()

    def _turn(self) -> None:
        """Close the file and give it the name of an earlier one; the oldest goes."""
        self._close()
        count = self.config.keep_files
        # From the oldest on, so that no file is renamed over one that is still to be.
        for number in range(count, 0, -1):
            earlier = self.path
            if number != 1:
                earlier = rotated_name(self.path, number - 1)
            with suppress(FileNotFoundError):
                os.replace(earlier, rotated_name(self.path, number))
        if not count:
            self.path.unlink()


def _dropped(count: int, last: EventEntry) -> EventEntry:
    data: dict[str, object] = {
        key: last.data.get(key) for key in ("timestamp", "session_id", "turn_id")
    }
    # The log's own line is no event: it has no number among them.
    return EventEntry(
        event="log:dropped",
        level="warning",
        seq=0,
        data={**data, "count": count},
        redactor=last.redactor,
    )
