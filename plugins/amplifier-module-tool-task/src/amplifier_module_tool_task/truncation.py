"""Texts in a bounded form: their beginning, their end, and how much is missing between them."""

from __future__ import annotations

from typing import Final

__all__ = ["first_sentence", "shortened"]

_ELLIPSIS: Final = "…"


def shortened(text: str, most: int, remedy: str = "") -> str:
    """Return a text of at most `most` characters, and a note on top where some are left out.

    Args:
        text: the text.
        most: characters that stay, two thirds of them from the beginning.
        remedy: how to get the rest, for the note.
    """
    if len(text) <= most:
        return text
    # The conclusion of an answer stands at its end.
    tail = most // 3
    note = (
        f"[{len(text) - most:,} of {len(text):,} characters are left out here{remedy}]"
    )
    return f"{text[: most - tail]}\n{note}\n{text[len(text) - tail :]}"


def first_sentence(text: str, most: int) -> str:
    """Return the first sentence of a text in one line of at most `most` characters."""
    line = " ".join(text[: most * 4].split())
    sentence, end, _ = line.partition(". ")
    line = sentence + end.rstrip()
    if len(line) <= most:
        return line
    return line[: most - 1].rstrip() + _ELLIPSIS
