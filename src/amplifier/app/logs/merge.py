"""Several logs as one: by time, from the beginning or the last lines alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import Final, Self

import attrs

from amplifier.app.logs.follower import FollowedLog
from amplifier.app.logs.reader import Admits, LogLine, LogSnapshot
from amplifier.app.logs.selection import LineFilter
from amplifier_kit.logs.records import LogRecord

__all__ = ["Logs"]

_LATEST: Final = "~"
"""Behind every time. Damage has none; it is passed over at once, whichever way the lines are read."""


@attrs.define(eq=False)
class Logs:
    """Logs as they are at one moment, merged; a context manager, whose end closes their files.

    Args:
        damaged: how many lines were no records, of those decoded so far.
    """

    _snapshots: list[LogSnapshot]
    _files: ExitStack
    damaged: int = 0

    @classmethod
    def take(cls, paths: Sequence[Path]) -> Self:
        """Open logs."""
        files = ExitStack()
        return cls(
            [files.enter_context(LogSnapshot.take(path)) for path in paths], files
        )

    def select(
        self, selection: LineFilter, last: int | None = None
    ) -> Iterator[LogRecord]:
        """Return the records that are wanted, by time.

        Args:
            selection: which are wanted.
            last: how many at most, the latest; they are found from the end. Default all.
        """
        if last is None:
            return self._forwards(selection)
        if selection.since is None:
            # From the end, so that the last lines of a large log are found without its beginning.
            return reversed(list(islice(self._backwards(selection), last)))
        # Backwards, nothing would end the reading at that time.
        return iter(deque(self._forwards(selection), maxlen=last))

    def _forwards(self, selection: LineFilter) -> Iterator[LogRecord]:
        since, admits = selection.since, _admits(selection)
        streams = [each.forwards(since, admits) for each in self._snapshots]
        for line in merge(*streams, key=lambda line: line.time_or("")):
            if (record := self._wanted(line, selection)) is not None:
                yield record

    def _backwards(self, selection: LineFilter) -> Iterator[LogRecord]:
        streams = [each.backwards(_admits(selection)) for each in self._snapshots]
        for line in merge(
            *streams, key=lambda line: line.time_or(_LATEST), reverse=True
        ):
            if (record := self._wanted(line, selection)) is not None:
                yield record

    def count_torn(self) -> None:
        """Count lines that were begun and never ended as damage; a log that is being written may have one."""
        self.damaged += sum(snapshot.is_torn for snapshot in self._snapshots)

    def followed(self) -> list[FollowedLog]:
        """Return the logs from here on; whoever takes them closes them.

        These are not read any more.
        """
        followed = []
        for snapshot in self._snapshots:
            log = FollowedLog(snapshot.path)
            log.skip_to(snapshot)
            followed.append(log)
        return followed

    def _wanted(self, line: LogLine, selection: LineFilter) -> LogRecord | None:
        if line.record is None:
            self.damaged += 1
            return None
        if selection.wants(line):
            return line.record
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()


def _admits(selection: LineFilter) -> Admits | None:
    if selection.is_filtering:
        return selection.may_want
    return None
