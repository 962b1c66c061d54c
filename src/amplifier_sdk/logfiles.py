"""The files of a log as they are at one moment: the newest, and the earlier ones, which a turn of the log renames."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

import attrs

__all__ = ["LogFile", "log_files", "open_log", "rotated_name"]


def rotated_name(path: Path, number: int) -> Path:
    """Return the name of an earlier file of a log: `events.1.jsonl` is the one before `events.jsonl`."""
    return path.with_name(f"{path.stem}.{number}{path.suffix}")


@attrs.frozen
class LogFile:
    """One file of a log, and which one it is, whatever it will be called."""

    path: Path
    identity: tuple[int, int]

    def open(self) -> BinaryIO | None:
        """Open it to read; `None` where its name leads to another file by now, or to none."""
        try:
            handle = self.path.open("rb")
        except FileNotFoundError:
            return None
        state = os.fstat(handle.fileno())
        if (state.st_dev, state.st_ino) == self.identity:
            return handle
        handle.close()
        return None


def log_files(path: Path) -> list[LogFile]:
    """Return a log's files, the newest first.

    A turn gives them their next names one after the other: between two of these steps a number is missing, and a look
    beside one may miss a file. So it is looked until two looks see the same.
    """
    seen, before = _seen(path), None
    while seen != before:
        seen, before = _seen(path), seen
    return seen


@contextmanager
def open_log(path: Path) -> Iterator[list[BinaryIO]]:
    """Yield a log's files, open, the oldest first; from the beginning where the log was turned meanwhile."""
    with ExitStack() as files:
        while True:
            opened = [file.open() for file in reversed(log_files(path))]
            handles = [
                files.enter_context(handle) for handle in opened if handle is not None
            ]
            if len(handles) == len(opened):
                break
            files.close()
        yield handles


def _seen(path: Path) -> list[LogFile]:
    earlier = re.compile(
        rf"{re.escape(path.stem)}\.([1-9]\d{{0,8}}){re.escape(path.suffix)}"
    )
    try:
        names = os.listdir(path.parent)
    except FileNotFoundError:
        return []
    numbers = sorted(
        int(found[1]) for name in names if (found := earlier.fullmatch(name))
    )
    files = []
    for place in (path, *(rotated_name(path, number) for number in numbers)):
        try:
            state = place.stat()
        except FileNotFoundError:
            continue
        files.append(LogFile(place, (state.st_dev, state.st_ino)))
    return files
