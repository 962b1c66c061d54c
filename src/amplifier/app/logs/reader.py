"""Reading a log in bounded memory, however long it and its lines are: forwards, backwards, from a time on.

A log is read as it is at one moment: its files are opened together, so that one that is turned meanwhile is read
whole and once. Lines come in the order of the file; what is no record is damage, which is counted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Final, Self, TypeAlias

import attrs

from amplifier_kit.logs.files import open_log
from amplifier_kit.logs.records import LogRecord, decode_record

__all__ = ["LONGEST_LINE", "Admits", "LogLine", "LogSnapshot", "parse_line"]

LONGEST_LINE: Final = 4_194_304
"""Bytes; what is longer is damage."""

_BLOCK: Final = 65_536
_MANY: Final = 262_144
_PROBES: Final = 64
_NO_RECORD: Final = b"\xff"

Admits: TypeAlias = Callable[[bytes], bool]
"""Whether some of these bytes, which are lines, are wanted."""


@attrs.frozen
class LogLine:
    """One line: its bytes without the line end, and the record that they are; `None` for damage."""

    data: bytes
    record: LogRecord | None

    def time_or(self, otherwise: str) -> str:
        """Return the time of the record; of damage, another one."""
        if self.record is None:
            return otherwise
        return self.record.ts


def parse_line(data: bytes) -> LogLine | None:
    """Read a line; an empty one is nothing."""
    if not data.strip():
        return None
    try:
        return LogLine(data, decode_record(data))
    except ValueError:
        return LogLine(data, None)


@attrs.frozen
class _Part:
    """One file of a log as it was when it was opened; `end` is behind its last whole line."""

    handle: BinaryIO
    end: int


@attrs.define(eq=False)
class LogSnapshot:
    """A log as it is now; a context manager, whose end closes its files."""

    path: Path
    is_torn: bool = False
    _parts: list[_Part] = attrs.field(factory=list)
    _files: ExitStack = attrs.field(factory=ExitStack)

    @classmethod
    def take(cls, path: Path) -> Self:
        """Open a log's files; one that is not there is empty."""
        taken = cls(path)
        for handle in taken._files.enter_context(open_log(path)):
            size = os.fstat(handle.fileno()).st_size
            end = _behind_last_line(handle, size)
            taken.is_torn = taken.is_torn or end < size
            taken._parts.append(_Part(handle, end))
        return taken

    @property
    def newest(self) -> tuple[BinaryIO, int] | None:
        """The newest file, open as long as the snapshot, and where its last whole line ends; `None` for none."""
        if self._parts:
            return self._parts[-1].handle, self._parts[-1].end
        return None

    def forwards(
        self, since: str | None = None, admits: Admits | None = None
    ) -> Iterator[LogLine]:
        """Yield the lines, the oldest first.

        Args:
            since: where in time to begin, as `ts` writes it in UTC; found by bisection, so that where the clock was
                set back some lines may be passed over. Default the beginning.
            admits: says which bytes are worth decoding. Default all.
        """
        for part in self._parts:
            start = 0 if since is None else _offset_of(part, since)
            for block in _blocks(part, start):
                if admits is None or admits(block):
                    yield from _parse_lines(block.split(b"\n"), admits)

    def backwards(self, admits: Admits | None = None) -> Iterator[LogLine]:
        """Yield the lines, the newest first; `admits` as in `forwards`."""
        for part in reversed(self._parts):
            yield from _parse_lines(_lines_backwards(part), admits)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()


def _parse_lines(
    lines: Iterable[bytes | None], admits: Admits | None
) -> Iterator[LogLine]:
    """Read lines; `None` is one that is too long."""
    for data in lines:
        if data is None or len(data) > LONGEST_LINE:
            yield LogLine(b"", None)
        elif admits is None or admits(data):
            line = parse_line(data)
            if line is not None:
                yield line


def _blocks(part: _Part, start: int) -> Iterator[bytes]:
    part.handle.seek(start)
    while (left := part.end - part.handle.tell()) > 0:
        data = part.handle.read(min(_MANY, left))
        if not data:  # somebody emptied it
            return
        if not data.endswith(b"\n"):
            # A block ends where a line does: its text can then be filtered as a whole.
            rest = _read_line(part.handle, left - len(data))
            # Of a line that is too long the beginning is left, as damage.
            data += _NO_RECORD if rest is None else rest
        yield data


def _read_line(handle: BinaryIO, left: int) -> bytes | None:
    """Read a line; `None` for one that is too long, which is passed over."""
    data = handle.readline(min(LONGEST_LINE, left))
    if data.endswith(b"\n") or len(data) == left:
        return data.rstrip(b"\r\n")
    # In pieces, since a line of any length would be held in memory.
    while data and not data.endswith(b"\n"):
        data = handle.readline(LONGEST_LINE)
    return None


def _lines_backwards(part: _Part) -> Iterator[bytes | None]:
    """Yield a file's lines from its end; `None` for one that is too long."""
    held: list[bytes] = []  # the pieces of the line at the front, the last one first
    length = 0
    place = part.end
    while place > 0:
        size = min(_BLOCK, place)
        place -= size
        part.handle.seek(place)
        first, *rest = part.handle.read(size).split(b"\n")
        for piece in reversed(rest):
            yield _joined(held, length + len(piece), piece)
            held, length = [], 0
        length += len(first)
        # Of a line that is too long only the length counts: its bytes are not held.
        held = [*held, first] if length <= LONGEST_LINE else []
    if length:
        yield _joined(held, length, b"")


def _joined(held: list[bytes], length: int, piece: bytes) -> bytes | None:
    if length > LONGEST_LINE:
        return None
    return piece + b"".join(reversed(held))


def _behind_last_line(handle: BinaryIO, size: int) -> int:
    """Return where the last line end before `size` is."""
    place = size
    while place > 0:
        start = max(0, place - _BLOCK)
        handle.seek(start)
        found = handle.read(place - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        place = start
    return 0


def _offset_of(part: _Part, since: str) -> int:
    """Return where the first line at or after a time begins, by halving."""
    low, high = 0, part.end
    while high - low > _BLOCK:
        middle = (low + high) // 2
        found = _time_behind(part, middle)
        # Where nothing can be read the place is too late: no line is then passed over.
        if found is None or found >= since:
            high = middle
        else:
            low = middle
    part.handle.seek(low)
    # Bisection ends inside of a line, whose beginning is no record.
    if low:
        _read_line(part.handle, part.end - low)
    return part.handle.tell()


def _time_behind(part: _Part, place: int) -> str | None:
    """Return the time of the first record behind a place."""
    part.handle.seek(place)
    _read_line(part.handle, part.end - place)
    for _ in range(_PROBES):
        here = part.handle.tell()
        if here >= part.end:
            return None
        line = parse_line(_read_line(part.handle, part.end - here) or b"")
        if line is not None and line.record is not None:
            return line.record.ts
    return None
