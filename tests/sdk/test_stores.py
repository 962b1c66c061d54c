"""A question that is stored takes one answer."""

from __future__ import annotations

import attrs
import pytest

from amplifier_sdk.errors import QuestionClosedError
from amplifier_sdk.stores import StoredQuestion

ASKED = StoredQuestion(
    question_id="q1", session_id="s1", prompt="?", options=("yes", "no"), expires=10.0
)


def test_the_first_answer_counts_and_again_is_no_error() -> None:
    answered = ASKED.with_answer("yes", by="ann", now=9.0)

    assert (answered.answer, answered.answered_by) == ("yes", "ann")
    assert answered.with_answer("yes", by="bob", now=99.0) is answered


@pytest.mark.parametrize(
    ("changes", "answer", "now", "reason"),
    [
        ({"answer": "no", "answered_by": "ann"}, "yes", 1.0, "answered 'no' by ann"),
        ({"is_void": True}, "yes", 1.0, "withdrawn"),
        ({}, "yes", 10.0, "expired"),
        ({"expires": None}, "Yes", 99.0, "takes 'yes', 'no'; got 'Yes'"),
    ],
)
def test_a_closed_question_takes_no_answer(
    changes: dict[str, object], answer: str, now: float, reason: str
) -> None:
    question = attrs.evolve(ASKED, **changes)  # type: ignore[arg-type]  # the table's

    with pytest.raises(QuestionClosedError, match=reason):
        question.with_answer(answer, by="bob", now=now)
