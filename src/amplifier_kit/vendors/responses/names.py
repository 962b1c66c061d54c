"""Names of tools and ids of calls in the form that the API takes.

A tool of another source may have a name with dots, a call of another vendor a long id: both go out in a form that
stands for them alone, and a tool's name comes back as it was.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final

from amplifier_sdk.chat import ToolSpec

__all__ = ["original_names", "wire_id", "wire_name"]

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_OTHER: Final = re.compile(r"[^a-zA-Z0-9_-]+")
_LONGEST_ID: Final = 64
_LEGIBLE: Final = 40


def wire_name(name: str) -> str:
    """Return the name under which the API knows a tool."""
    if _NAME.fullmatch(name):
        return name
    return f"{_OTHER.sub('_', name)[:_LEGIBLE]}_{_digest(name)}"


def wire_id(call_id: str) -> str:
    """Return the id under which the API knows a call."""
    if 0 < len(call_id) <= _LONGEST_ID:
        return call_id
    return f"call_{_digest(call_id)}"


def original_names(tools: Iterable[ToolSpec]) -> Mapping[str, str]:
    """Return the names of tools by those under which the API knows them, where they differ."""
    return {
        wire: tool.name for tool in tools if (wire := wire_name(tool.name)) != tool.name
    }


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
