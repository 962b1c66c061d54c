"""Private copies of files as they were evaluated: what runs is no longer what somebody may change, or leaves behind."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["write_copies"]


def write_copies(folder: Path, contents: Mapping[str, bytes]) -> dict[str, str]:
    """Write files for their owner alone, to be read and run; blocks.

    Args:
        folder: where they go; none of them is there yet.
        contents: what they hold, by their paths in it.

    Returns:
        Where each of them is.

    Raises:
        OSError: one cannot be written.
    """
    return {name: _write(folder / name, content) for name, content in contents.items()}


def _write(path: Path, content: bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700), "wb") as file:
        file.write(content)
    return str(path)
