"""Names and ids as the API takes them: letters, digits, `_` and `-`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

__all__ = ["call_id", "tool_name", "tool_names"]

_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME: Final = 128
_LONGEST_ID: Final = 256


def tool_name(name: str) -> str:
    """Return the name under which a tool is offered; one that the API takes is returned as it is."""
    return _taken(name, _LONGEST_NAME)


def call_id(id: str) -> str:
    """Return the id under which a call of the history is sent; the API's own ids are returned as they are."""
    return _taken(id, _LONGEST_ID)


def tool_names(names: Iterable[str]) -> dict[str, str]:
    """Return the tools' own names by the names under which they are offered, where the two differ."""
    return {offered: name for name in names if (offered := tool_name(name)) != name}


def _taken(text: str, longest: int) -> str:
    if text and len(text) <= longest and not _FOREIGN.search(text):
        return text
    # What was replaced or cut off still distinguishes two texts, and the same text is always written the same.
    mark = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_FOREIGN.sub('_', text)[: longest - 9]}-{mark}"
