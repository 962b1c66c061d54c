"""Markdown that shows what somebody else wrote."""

from __future__ import annotations

import re

__all__ = ["fenced"]


def fenced(text: str) -> str:
    """Put a text into a fence that it cannot end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
