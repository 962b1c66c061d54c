"""How a question that waits is answered at a terminal, as a person reads it anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from amplifier_kit.terminal import one_line

if TYPE_CHECKING:
    from amplifier_sdk.stores import StoredQuestion

__all__ = ["SHOWN_ID", "answer_command", "left_lines"]

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


def left_lines(questions: Sequence[StoredQuestion]) -> Iterator[str]:
    """Say what a turn waits for that was left until a person answers, and how it is continued or ended.

    Args:
        questions: what it asked that takes an answer, or was given one.
    """
    waiting = [each for each in questions if each.answer is None]
    for each in waiting:
        id_ = each.question_id[:SHOWN_ID]
        command = answer_command(id_, is_approval=each.schema is None)
        asked = one_line(each.prompt, 200)
        yield f"question {id_} waits: {asked}; {command} continues the turn, and a prompt ends it"
    if questions and not waiting:
        id_ = questions[-1].question_id[:SHOWN_ID]
        yield (
            f"question {id_} was answered and not continued: the same answer by 'amplifier answer'"
            " continues the turn once nobody has the session open, and a prompt ends it"
        )
