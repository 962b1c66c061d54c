"""What the project of a module declares in its `pyproject.toml`, as a build would copy it into the metadata."""

from __future__ import annotations

import os
import re
import tomllib
from typing import Final

__all__ = ["MAX_BYTES", "project_table"]

MAX_BYTES: Final = 4_000_000
"""How many bytes the file may hold."""

_LONG_KEY: Final = r"(?<![\w\"'.-])(?:[\w\"'-]++[ \t]*+\.[ \t]*+){500}"
"""A dotted key of so many parts, for which the reader takes time with the square of their number."""


def project_table(path: str) -> dict[str, object]:
    """Return the table `project` of a file; what is no table is an empty one.

    Raises:
        ValueError: it cannot be read; the message says why.
    """
    try:
        if os.path.getsize(path) > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES} bytes")
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
        if re.search(_LONG_KEY, text):
            raise ValueError("a key has more than 500 parts")
        table = tomllib.loads(text.replace("\r\n", "\n")).get("project")
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error
    except RecursionError as error:
        raise ValueError("it nests too deep") from error
    if isinstance(table, dict):
        return table
    return {}
