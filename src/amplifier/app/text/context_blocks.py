"""Files as a model reads them: each in a block that names it, and that its content cannot end."""

from __future__ import annotations

import re
from html import escape
from typing import Final

__all__ = [
    "CONTEXT_TAIL",
    "context_block",
    "context_head",
    "fenced",
    "guard_context",
    "is_context_block",
]

CONTEXT_TAIL: Final = "\n</context_file>"
"""How a block ends."""

_TAG: Final = re.compile(r"<(?=\s*/?\s*context_file)", re.IGNORECASE)
_BEGINNING: Final = "<context_file paths="


def context_block(credit: str, content: str) -> str:
    """Return a file's block.

    Args:
        credit: what led to the file, and where it stands.
        content: its text.
    """
    return f"{context_head(credit)}{guard_context(content)}{CONTEXT_TAIL}"


def context_head(credit: str) -> str:
    """Return how a block begins."""
    return f'{_BEGINNING}"{escape(credit, quote=True)}">\n'


def guard_context(content: str) -> str:
    """Keep a content from ending its block, or beginning another one."""
    return _TAG.sub("&lt;", content)


def is_context_block(content: object) -> bool:
    """Whether a message's content begins with a block."""
    return isinstance(content, str) and content.startswith(_BEGINNING)


def fenced(text: str) -> str:
    """Put a text into a fence that it cannot end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
