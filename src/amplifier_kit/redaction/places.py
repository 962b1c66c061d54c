"""Where a secret is in a text."""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["Found"]

Found: TypeAlias = tuple[int, int, str]
"""Where a secret begins and ends, and what kind it is."""
