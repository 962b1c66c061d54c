"""A line for AGENTS.md: what a person wants every agent in this project to know."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from amplifier_kit.files.open_flags import ADD_TO

__all__ = ["AGENTS_FILE", "add_note"]

AGENTS_FILE: Final = "AGENTS.md"
"""The file's name, in the root of a project."""


def add_note(root: Path, note: str) -> Path:
    """Add a line to the end of a project's AGENTS.md, which is made where it is missing; it blocks.

    Args:
        root: the project's folder.
        note: the text; line ends become blanks.

    Returns:
        The file.

    Raises:
        OSError: it cannot be written, or it is a link or no file.
    """
    path = root / AGENTS_FILE
    # A link in the project could lead to any file that the person may write.
    handle = os.open(path, os.O_RDWR | ADD_TO, 0o644)
    with open(handle, "r+b") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "it is no file", str(path))
        separator = b""
        if status.st_size:
            file.seek(-1, os.SEEK_END)
            separator = b"" if file.read(1) == b"\n" else b"\n"
        line = " ".join(note.split()).encode("utf-8", "replace")
        file.write(separator + b"- " + line + b"\n")
    return path
