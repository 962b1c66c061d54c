"""How files and folders are opened where links, pipes and other programs may be in the way: flags for `os.open`.

A link at the end of a path is refused, no handle is inherited, and what is opened for reading is not waited for. Where
the system lacks a flag it is left out.
"""

from __future__ import annotations

import os
from typing import Final

__all__ = ["ADD_TO", "LIST", "NEW", "PASS", "READ"]

_PLAIN: Final[int] = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_DIRECTORY: Final[int] = getattr(os, "O_DIRECTORY", 0) | _PLAIN

READ: Final[int] = (
    os.O_RDONLY | _PLAIN | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
)
"""A file, to be read; a pipe or a terminal in its place neither blocks nor takes control."""

LIST: Final[int] = os.O_RDONLY | _DIRECTORY
"""A folder, to be listed."""

PASS: Final[int] = getattr(os, "O_PATH", os.O_RDONLY) | _DIRECTORY
"""A folder, to pass through it: that asks for search permission only, where the system knows it."""

NEW: Final[int] = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN
"""A file that is not there yet, to be written."""

ADD_TO: Final[int] = os.O_CREAT | os.O_APPEND | _PLAIN
"""A file that is added to, and made where it is missing; `os.O_WRONLY` or `os.O_RDWR` is to be added."""
