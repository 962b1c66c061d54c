"""The files of a log as they are at one moment.

There is the newest one, and the earlier ones, which a rotation of the log renames.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["is_open_as", "open_log", "rotated_name"]


def rotated_name(path: Path, number: int) -> Path:
    """Return the name of an earlier file of a log.

    `events.1.jsonl` is the one before `events.jsonl`.
    """
    return path.with_name(f"{path.stem}.{number}{path.suffix}")


def is_open_as(handle: BinaryIO, path: Path) -> bool:
    """Return whether an open file is the one that a name leads to by now."""
    try:
        return os.path.samestat(os.fstat(handle.fileno()), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def open_log(path: Path) -> Iterator[list[BinaryIO]]:
    """Yield a log's files, open, the oldest first.

    All of them are there at one moment, also while the log is rotated.
    """
    with ExitStack() as files:
        # a rotation takes a moment, so the second try nearly always succeeds
        while (handles := _open_files(path, files)) is None:
            files.close()
        yield handles


def _open_files(path: Path, files: ExitStack) -> list[BinaryIO] | None:
    """Open the files that a folder lists; `None` where they were renamed meanwhile.

    A rotation renames the files one by one, so that a listing may lack one, and the
    file that is opened may be another than was listed. The listing is complete when
    one that was made after all were opened lists the same names, and each of them
    still leads to its open file: none was renamed in between. An inode number alone
    says nothing, since the file system gives that of a deleted file to the next one;
    not while the file is open.
    """
    names = _list_files(path)
    try:
        handles: list[BinaryIO] = [
            files.enter_context(name.open("rb")) for name in names
        ]
    except FileNotFoundError:
        return None
    if _list_files(path) != names or not all(map(is_open_as, handles, names)):
        return None
    return handles


def _list_files(path: Path) -> list[Path]:
    """List the files of a log, the oldest first; a link that leads nowhere is none."""
    stem, suffix = re.escape(path.stem), re.escape(path.suffix)
    earlier = re.compile(rf"{stem}\.([1-9]\d{{0,8}}){suffix}")
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in entries if entry.is_file()]
    except FileNotFoundError:
        return []
    numbers = [int(found[1]) for name in names if (found := earlier.fullmatch(name))]
    newest = [path] if path.name in names else []
    return [
        *(rotated_name(path, number) for number in sorted(numbers, reverse=True)),
        *newest,
    ]
