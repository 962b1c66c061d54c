"""What a file holds: the records that are whole, and the pieces that are damaged.

Damage costs the record that it hits and no other. A line break that was hit joins two lines; both are found
again, since every line begins in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import attrs

from amplifier_kit.files.appendlog._lines import (
    BEGIN,
    FORMAT,
    FORMAT_VERSION,
    HEADER,
    decode_line,
    is_sealed,
)
from amplifier_sdk.stores import LogEntry

__all__ = ["Check", "Damage", "Expected", "LogFormatError", "Scan", "scan"]

Check: TypeAlias = Callable[[LogEntry], str | None]
"""Says what is wrong with a record that the log itself has no objection to, or `None`."""


class LogFormatError(ValueError):
    """The file is no log, one of something else, or one that a newer version wrote; it was left alone."""

    def __init__(self, path: Path, problem: str) -> None:
        self.path = path
        super().__init__(f"{path}: {problem}")


@attrs.frozen(kw_only=True)
class Expected:
    """What a log is opened for.

    Args:
        holds: the content's name.
        version: the newest version of it that is understood.
        check: the content's own check.
        remedy: what helps where the file is no log.
        is_named: the file's name alone says that it is such a log, so that whatever
            else stands in it is damage.
    """

    holds: str
    version: int = 1
    check: Check | None = None
    remedy: str = "name another file, or move this one away"
    is_named: bool = False


@attrs.frozen(kw_only=True)
class Damage:
    """A piece of a log that could not be read.

    Args:
        line: where it began, counted from 1.
        reason: what is wrong.
        data: the bytes themselves.
        is_tail: the file ended in it, as after a crash in the middle of an append.
        kept_in: the file into which it was moved; `None` when that failed, and it stands where it was.
    """

    line: int
    reason: str
    data: bytes = attrs.field(repr=False)
    is_tail: bool = False
    kept_in: Path | None = None

    def __str__(self) -> str:
        place = "left where it is"
        if self.kept_in:
            place = f"moved to {self.kept_in}"
        return f"line {self.line}, {len(self.data):,} bytes: {self.reason}; {place}"


@attrs.define(kw_only=True)
class Scan:
    """What was found in a file.

    Args:
        records: those that are whole, in order, without the header.
        lines: the same as bytes.
        damage: the pieces that are not.
        has_header: whether the file says what it is.
        end: where the last whole line ends, in bytes from the start.
    """

    records: list[LogEntry] = attrs.field(factory=list)
    lines: list[bytes] = attrs.field(factory=list)
    damage: list[Damage] = attrs.field(factory=list)
    has_header: bool = False
    end: int = 0

    @property
    def is_torn_only(self) -> bool:
        """Whether cutting off the end is all that is needed."""
        return (self.has_header or not self.records) and all(
            piece.is_tail for piece in self.damage
        )


def scan(path: Path, data: bytes, expected: Expected) -> Scan:
    """Find what a file holds.

    Raises:
        LogFormatError: the file is no log, one of something else, or a newer version's.
    """
    found = Scan()
    lines = data.split(b"\n")
    # without a line break at its end a record may still be one that is being
    # written
    tail = lines.pop()
    for number, line in enumerate(lines, 1):
        _take(path, found, number, line, expected, is_tail=False)
    found.end = len(data) - len(tail)
    if tail and _take(path, found, len(lines) + 1, tail, expected, is_tail=True):
        found.end = len(data)
    if (
        found.damage
        and not found.records
        and not found.has_header
        and not (expected.is_named or _is_ours(data))
    ):
        raise _no_log(path, expected)
    return found


def _take(
    path: Path,
    found: Scan,
    number: int,
    line: bytes,
    expected: Expected,
    *,
    is_tail: bool,
) -> bool:
    """Add what a line holds, and tell whether all of it was whole."""
    if not line:
        return True
    pieces = list(_pieces(line, expected.check))
    for piece, content in pieces:
        if isinstance(content, str):
            found.damage.append(
                Damage(
                    line=number,
                    reason=content,
                    data=piece,
                    is_tail=is_tail and len(pieces) == 1,
                )
            )
        elif content.kind == HEADER:
            _read_header(path, content, expected)
            found.has_header = True
        else:
            found.records.append(content)
            found.lines.append(piece)
    return not any(isinstance(content, str) for _, content in pieces)


def _pieces(line: bytes, check: Check | None) -> Iterator[tuple[bytes, LogEntry | str]]:
    """Split a line into records and what is wrong with the rest; nearly always it is one record."""
    record = _read(line, check)
    if isinstance(record, LogEntry):
        yield line, record
        return
    begins = [0]
    # BEGIN cannot stand inside of a record, since JSON escapes its quotes
    while (begin := line.find(BEGIN, begins[-1] + 1)) > 0:
        begins.append(begin)
    for start, stop in zip(begins, [*begins[1:], len(line)], strict=True):
        whole = _read(line[start:stop], check)
        if isinstance(whole, LogEntry):
            yield line[start:stop], whole
            continue
        # what was a line break is now something else
        short = _read(line[start : stop - 1], check)
        if isinstance(short, LogEntry):
            yield line[start : stop - 1], short
            yield line[stop - 1 : stop], "a line break is damaged"
        else:
            yield line[start:stop], whole


def _read(line: bytes, check: Check | None) -> LogEntry | str:
    """Return the record in a line, or what is wrong."""
    try:
        record = decode_line(line)
    except ValueError as error:
        return str(error)
    problem = None
    if check is not None and record.kind != HEADER:
        problem = check(record)
    if problem is None:
        return record
    return problem


def _read_header(path: Path, header: LogEntry, expected: Expected) -> None:
    """Refuse what this program cannot read."""
    match header.data:
        case {
            "format": format_,
            "version": int() as version,
            "holds": {"name": name, "version": int() as held},
        }:
            if format_ != FORMAT:
                raise _no_log(path, expected)
            if version > FORMAT_VERSION or (
                name == expected.holds and held > expected.version
            ):
                raise LogFormatError(
                    path, "a newer version of this program wrote it; update to read it"
                )
            if name != expected.holds:
                raise LogFormatError(
                    path,
                    f"it holds {name!r}, not {expected.holds!r}; name another file",
                )
        case _:
            raise _no_log(path, expected)


def _no_log(path: Path, expected: Expected) -> LogFormatError:
    return LogFormatError(path, f"it is no log; {expected.remedy}")


def _is_ours(data: bytes) -> bool:
    """Tell whether a log was here: its header, damaged, or what a crash in the very first append leaves.

    A header that was hit in the very bytes that identify one still has its checksum.
    """
    is_begun = BEGIN in data or BEGIN.startswith(data) or not data.strip(b"\0")
    return is_begun or any(map(is_sealed, data.split(b"\n")))
