"""How a question that waits is answered at a terminal, as a person reads it anywhere."""

from __future__ import annotations

from typing import Final

__all__ = ["SHOWN_ID", "answer_command"]

SHOWN_ID: Final = 12
"""Characters of a question's id that a person types."""


def answer_command(question_id: str, *, is_approval: bool) -> str:
    """Return the command that answers a question, quoted.

    Args:
        question_id: the question.
        is_approval: whether a call is approved or denied, rather than a tool told what it wants to know.
    """
    words = "allow' or 'deny" if is_approval else "ANSWER"
    return f"'amplifier answer {question_id[:SHOWN_ID]} {words}'"
