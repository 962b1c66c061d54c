"""Following logs while they are written: new lines, turned files, new sessions.

The files are looked at several times a second on anyio's clock, in a thread; nothing is held between two looks but
the beginning of a line that is not whole yet.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import anyio
import attrs
from anyio import to_thread

from amplifier.app.logs.library import SessionLog
from amplifier.app.logs.reader import LONGEST_LINE, LogLine, LogSnapshot, parse_line
from amplifier_sdk.logfiles import LogFile, log_files

__all__ = ["FollowedLog", "follow"]

_MOST: Final = 8_388_608
"""Bytes that are taken of one log at one look."""
_BLOCK: Final = 262_144


@attrs.define(eq=False)
class FollowedLog:
    """A log from a place on; `close` closes its file.

    Args:
        path: its file, which may not be there yet.
    """

    path: Path
    _handle: BinaryIO | None = None
    _held: bytes = b""
    _is_too_long: bool = False

    def skip_to(self, snapshot: LogSnapshot) -> None:
        """Begin where a snapshot of the log ended."""
        if snapshot.identity is None:
            return
        for file in log_files(self.path):
            if (
                file.identity == snapshot.identity
                and (handle := file.open()) is not None
            ):
                handle.seek(snapshot.end)
                self._handle = handle

    def read_new(self) -> list[LogLine]:
        """Return the lines that came since; call it in a thread."""
        lines: list[LogLine] = []
        left = _MOST
        while left > 0:
            if self._handle is None:
                self._handle = _open(self.path)
                if self._handle is None:
                    return lines
            left -= self._take(self._handle, lines, left)
            if left > 0 and not self._advance(self._handle, lines):
                return lines
        return lines

    def close(self) -> None:
        """Close the file."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None

    def _take(self, handle: BinaryIO, lines: list[LogLine], most: int) -> int:
        """Read what there is, at most so many bytes."""
        if os.fstat(handle.fileno()).st_size < handle.tell():  # somebody emptied it
            handle.seek(0)
            self._held = b""
        taken = 0
        while taken < most and (data := handle.read(_BLOCK)):
            taken += len(data)
            *whole, rest = (self._held + data).split(b"\n")
            for line in whole:
                self._add(line, lines)
            self._held = rest
            if len(rest) > LONGEST_LINE:
                self._held, self._is_too_long = b"", True
        return taken

    def _add(self, data: bytes, lines: list[LogLine]) -> None:
        line = LogLine(b"", None) if self._is_too_long else parse_line(data)
        self._is_too_long = False
        if line is not None:
            lines.append(line)

    def _advance(self, handle: BinaryIO, lines: list[LogLine]) -> bool:
        """Go to the next file once this one was turned and read to its end; return whether there is more."""
        following = self._next(_identity(handle))
        if following is None:
            return False
        opened = following.open()
        if opened is None:
            return True  # it was turned meanwhile
        self._take(handle, lines, _MOST)  # what came between the last look and the turn
        if self._held:
            self._add(self._held, lines)
            self._held = b""
        handle.close()
        self._handle = opened
        return True

    def _next(self, identity: tuple[int, int]) -> LogFile | None:
        """Return the file behind the one that is read; `None` while that is the newest."""
        if _identity_of(self.path) == identity:
            return None
        files = log_files(self.path)
        for number, file in enumerate(files):
            if file.identity == identity:
                if number:
                    return files[number - 1]
                return None
        if files:
            return files[-1]
        return None


async def follow(
    find: Callable[[], Sequence[SessionLog]],
    *,
    begun: Sequence[FollowedLog] = (),
    interval: float = 0.25,
) -> AsyncGenerator[list[LogLine], None]:
    """Yield what logs grow by, the lines of each look in the order of time; it ends when its reader does.

    Args:
        find: returns the logs, those that came since among them; called in a thread.
        begun: logs that were read up to a place already.
        interval: seconds between two looks.
    """
    followed = {log.path: log for log in begun}
    try:
        while True:
            if lines := await to_thread.run_sync(lambda: _look(find, followed)):
                yield lines
            await anyio.sleep(interval)
    finally:
        for log in followed.values():
            log.close()


def _look(
    find: Callable[[], Sequence[SessionLog]], followed: dict[Path, FollowedLog]
) -> list[LogLine]:
    for log in find():
        followed.setdefault(log.path, FollowedLog(log.path))
    lines = [line for log in followed.values() for line in log.read_new()]
    return sorted(lines, key=lambda line: "" if line.record is None else line.record.ts)


def _open(path: Path) -> BinaryIO | None:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None


def _identity(handle: BinaryIO) -> tuple[int, int]:
    state = os.fstat(handle.fileno())
    return state.st_dev, state.st_ino


def _identity_of(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except FileNotFoundError:
        return None
    return state.st_dev, state.st_ino
