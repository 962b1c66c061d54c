"""The output of a command that runs in the background: the latest part of it, in files, by its place in the whole.

A log is a row of files `NAME.START`, where `START` is the number of bytes before the file's first. When a file is
full a new one begins, and only the last two stay.
"""

from __future__ import annotations

import os
from contextlib import suppress

import attrs

__all__ = ["JobLog", "LogPage"]


@attrs.frozen(kw_only=True)
class LogPage:
    """A part of a log: where it starts and ends in the whole, and how large the whole is, in bytes."""

    data: bytes
    start: int
    end: int
    total: int


@attrs.frozen
class JobLog:
    """Reads a log; `name` is its path without the suffix."""

    name: str

    def read(self, since: int, limit: int) -> LogPage:
        """Return at most `limit` bytes of what was put out from `since` on; what is no longer there is skipped."""
        files = self._files()
        data = b""
        start = max(since, files[0][0] if files else 0)
        for first, path in files:
            place = start + len(data) - first
            # The writer removes the oldest file when it begins a new one.
            with suppress(OSError), open(path, "rb") as file:
                if 0 <= place < os.fstat(file.fileno()).st_size:
                    file.seek(place)
                    data += file.read(limit - len(data))
        return LogPage(data=data, start=start, end=start + len(data), total=self.total)

    @property
    def total(self) -> int:
        """How many bytes were put out in all."""
        files = self._files()
        if files:
            return files[-1][0] + os.path.getsize(files[-1][1])
        return 0

    def _files(self) -> list[tuple[int, str]]:
        folder, _, name = self.name.rpartition("/")
        found = [entry for entry in os.listdir(folder) if entry.startswith(f"{name}.")]
        return sorted(
            (int(entry.rpartition(".")[2]), f"{folder}/{entry}") for entry in found
        )
