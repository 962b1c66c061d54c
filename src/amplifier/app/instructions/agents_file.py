"""A line for AGENTS.md: what a person wants every agent in this project to know."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from amplifier.app.directories import Places
from amplifier.app.projects.files import INSTRUCTIONS, name_in
from amplifier.app.projects.trust import trust_again
from amplifier_kit.files.open_flags import ADD_TO

__all__ = ["AGENTS_FILE", "add_note"]

AGENTS_FILE: Final = "AGENTS.md"
"""The file's name, in the root of a project."""


def add_note(places: Places, note: str) -> Path:
    """Add a line to the end of a project's instructions, which the next session reads; it blocks.

    The file is AGENTS.md, or what takes its place in the project's folder; it is made where it is missing.

    Args:
        places: where the project is.
        note: the text; line ends become blanks.

    Returns:
        The file.

    Raises:
        AmplifierError: others wrote what is there, and nobody trusted it yet.
        OSError: it cannot be written, or it is a link or no file.
    """
    name = name_in(places.root)
    changed = [] if places.project is None else [name]
    with trust_again(places, INSTRUCTIONS, changed):
        _append(places.root / name, " ".join(note.split()))
    return places.root / name


def _append(path: Path, note: str) -> None:
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
        file.write(separator + b"- " + note.encode("utf-8", "replace") + b"\n")
