"""Texts in a bounded form: their beginning, their end, and how much is missing between them."""

from __future__ import annotations

from typing import Final

__all__ = ["first_sentence", "shortened"]

_ELLIPSIS: Final = "…"


def shortened(text: str, limit: int, remedy: str = "") -> str:
    """Return a text of at most `limit` characters, and a note on top where some are left out.

    Args:
        text: the text.
        limit: characters that stay, two thirds of them from the beginning.
        remedy: how to get the rest, for the note.
    """
    if len(text) <= limit:
        return text
    # The conclusion of an answer stands at its end.
    tail = limit // 3
    note = (
        f"[{len(text) - limit:,} of {len(text):,} characters are left out here{remedy}]"
    )
    return f"{text[: limit - tail]}\n{note}\n{text[len(text) - tail :]}"


def first_sentence(text: str, limit: int) -> str:
    """Return the first sentence of a text in one line of at most `limit` characters."""
    line = " ".join(text[: limit * 4].split())
    sentence, end, _ = line.partition(". ")
    line = sentence + end.rstrip()
    if len(line) <= limit:
        return line
    return line[: limit - 1].rstrip() + _ELLIPSIS
