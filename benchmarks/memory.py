"""How much memory this process holds."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["resident"]


def resident() -> int:
    """Return the process's resident memory in bytes; Linux only."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
