"""Handles of the operating system, held for a block."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["closing_handle"]


@contextmanager
def closing_handle(handle: int) -> Iterator[int]:
    """Yield a handle, and close it at the end of the block."""
    try:
        yield handle
    finally:
        os.close(handle)
