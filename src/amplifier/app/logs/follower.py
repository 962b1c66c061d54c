"""Following logs while they are written: new lines, rotated files, new sessions.

The files are read several times a second on anyio's clock, in a thread; nothing is
held between two reads but the beginning of a line that has no end yet.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import anyio
import attrs
from anyio import to_thread

from amplifier.app.logs.library import SessionLogFiles
from amplifier.app.logs.reader import LONGEST_LINE, LogLine, LogSnapshot, parse_line
from amplifier_kit.logs.files import is_open_as, open_log

__all__ = ["FollowedLog", "follow"]

_MAX_BYTES: Final = 8_388_608
"""How much of one log is read at a time."""
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
        """Begin where a snapshot of the log ended; it is not read any more."""
        if snapshot.newest is not None:
            handle, end = snapshot.newest
            self._handle = _duplicate(handle)
            self._handle.seek(end)

    def read_new(self) -> list[LogLine]:
        """Return the lines that came since; call it in a thread."""
        lines: list[LogLine] = []
        left = _MAX_BYTES
        # A log that grows faster than it is read would keep the others waiting.
        while left > 0:
            if self._handle is not None:
                left -= self._read(self._handle, lines, left)
            if left > 0 and not self._advance(lines):
                return lines
        return lines

    def close(self) -> None:
        """Close the file."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None

    def _read(self, handle: BinaryIO, lines: list[LogLine], max_bytes: int) -> int:
        """Read what there is; return how many bytes that was."""
        if os.fstat(handle.fileno()).st_size < handle.tell():  # somebody emptied it
            handle.seek(0)
            self._held = b""
        taken = 0
        while taken < max_bytes and (data := handle.read(_BLOCK)):
            taken += len(data)
            *complete, rest = (self._held + data).split(b"\n")
            for line in complete:
                self._add(line, lines)
            self._held = rest
            # A line without an end must not fill the memory; its end makes it damage.
            if len(rest) > LONGEST_LINE:
                self._held, self._is_too_long = b"", True
        return taken

    def _add(self, data: bytes, lines: list[LogLine]) -> None:
        line = LogLine(b"", None) if self._is_too_long else parse_line(data)
        self._is_too_long = False
        if line is not None:
            lines.append(line)

    def _advance(self, lines: list[LogLine]) -> bool:
        """Open the next file once this one was rotated; return whether there is one."""
        following = self._open_next()
        if following is None:
            return False
        if self._handle is not None:
            # What was written between the last read and the rotation.
            self._read(self._handle, lines, _MAX_BYTES)
            if self._held:
                self._add(self._held, lines)
                self._held = b""
            self._handle.close()
        self._handle = following
        return True

    def _open_next(self) -> BinaryIO | None:
        """Open the file behind the one that is read; `None` while that is the newest.

        Where none is read, or that one was deleted, it is the oldest one.
        """
        current = self._handle
        if current is not None and is_open_as(current, self.path):
            return None
        with open_log(self.path) as files:
            later = files
            for number, file in enumerate(files, 1):
                # By the open file and not by its name: rotation gives each file another name.
                if current is not None and os.path.sameopenfile(
                    current.fileno(), file.fileno()
                ):
                    later = files[number:]
            if not later:
                return None
            # `open_log` closes its files when the block ends.
            return _duplicate(later[0])


async def follow(
    find: Callable[[], Sequence[SessionLogFiles]],
    *,
    begun: Sequence[FollowedLog] = (),
    interval: float = 0.25,
) -> AsyncGenerator[list[LogLine], None]:
    """Yield what logs grow by, in the order of time; it ends when its reader does.

    Args:
        find: returns the logs, those that came since among them; called in a thread.
        begun: logs that were read up to a place already.
        interval: seconds between two reads.
    """
    followed = {log.path: log for log in begun}
    try:
        while True:
            if lines := await to_thread.run_sync(lambda: _read_all(find, followed)):
                yield lines
            await anyio.sleep(interval)
    finally:
        for log in followed.values():
            log.close()


def _read_all(
    find: Callable[[], Sequence[SessionLogFiles]], followed: dict[Path, FollowedLog]
) -> list[LogLine]:
    for log in find():
        followed.setdefault(log.path, FollowedLog(log.path))
    lines = [line for log in followed.values() for line in log.read_new()]
    return sorted(lines, key=lambda line: line.time_or(""))


def _duplicate(handle: BinaryIO) -> BinaryIO:
    """Open an open file again, whatever it is called by now."""
    return os.fdopen(os.dup(handle.fileno()), "rb")
