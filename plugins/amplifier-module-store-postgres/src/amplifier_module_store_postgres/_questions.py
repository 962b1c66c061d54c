"""Questions that wait. All functions run within a transaction."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final, TypeAlias

import attrs

from amplifier_module_store_postgres._database import Connection
from amplifier_module_store_postgres._rows import changed, require_record
from amplifier_sdk.convert import from_json, to_json
from amplifier_sdk.errors import QuestionClosedError, StoreError
from amplifier_sdk.stores import Lease, StoredQuestion

__all__ = ["answer", "ask", "forget_questions", "read_questions", "void_questions"]

_Row: TypeAlias = tuple[str, str | None, str | None, bool]

_ASK: Final = """
INSERT INTO amplifier.questions
    (namespace, question_id, session_id, asked, answer, answered_by, is_void)
VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (namespace, question_id) DO NOTHING
"""
_FIND: Final = """
SELECT asked::text, answer, answered_by, is_void FROM amplifier.questions
WHERE namespace = %s AND question_id = %s FOR UPDATE
"""
_NOW: Final = "SELECT extract(epoch FROM clock_timestamp())::float8"
_ANSWER: Final = """
UPDATE amplifier.questions SET answer = %s, answered_by = %s
WHERE namespace = %s AND question_id = %s
"""
_LIST: Final = """
SELECT asked::text, answer, answered_by, is_void FROM amplifier.questions
WHERE namespace = %s AND (%s::text IS NULL OR session_id = %s)
ORDER BY question_id COLLATE "C"
"""


def ask(
    connection: Connection, namespace: str, lease: Lease, question: StoredQuestion
) -> None:
    """Store a question; the same one again changes nothing.

    Raises:
        StoreError: it is another session's, or another question has its id.
    """
    name = f"Question {question.question_id!r}"
    if question.session_id != lease.session_id:
        problem = f"is of session {question.session_id!r}; the lease is on"
        raise StoreError(f"{name} {problem} {lease.session_id!r}")
    require_record(connection, namespace, lease)
    asked = json.dumps(to_json(question.asked))
    key = (namespace, question.question_id)
    became = (question.answer, question.answered_by, question.is_void)
    connection.execute(_ASK, (*key, question.session_id, asked, *became))
    known = connection.execute(_FIND, key).fetchone()
    if known is None or json.loads(known[0]) != json.loads(asked):
        raise StoreError(f"Another question has the id {question.question_id!r}")
    changed(connection, namespace, lease.session_id)


def void_questions(connection: Connection, namespace: str, lease: Lease) -> None:
    """Let the questions of a session that nobody answered take no answer any more."""
    require_record(connection, namespace, lease)
    connection.execute(
        "UPDATE amplifier.questions SET is_void = true"
        " WHERE namespace = %s AND session_id = %s AND answer IS NULL",
        (namespace, lease.session_id),
    )
    changed(connection, namespace, lease.session_id)


def forget_questions(
    connection: Connection, namespace: str, lease: Lease, question_ids: Collection[str]
) -> None:
    """Delete questions of a session, answered or not; ids of others are passed over."""
    require_record(connection, namespace, lease)
    connection.execute(
        "DELETE FROM amplifier.questions"
        " WHERE namespace = %s AND session_id = %s AND question_id = ANY(%s)",
        (namespace, lease.session_id, [*question_ids]),
    )
    changed(connection, namespace, lease.session_id)


def answer(
    connection: Connection, namespace: str, question_id: str, text: str, by: str
) -> StoredQuestion:
    """Answer a question, once.

    Raises:
        QuestionClosedError: it takes no such answer.
    """
    # The row is locked: of two answers the second one sees the first.
    found = connection.execute(_FIND, (namespace, question_id)).fetchone()
    if found is None:
        raise QuestionClosedError(f"There is no question {question_id!r}")
    question = _question(found)
    # the server's clock: those of workers differ
    ((now,),) = connection.execute(_NOW).fetchall()
    answered = question.with_answer(text, by=by, now=now)
    if answered is not question:
        connection.execute(_ANSWER, (text, by, namespace, question_id))
        changed(connection, namespace, question.session_id)
    return answered


def read_questions(
    connection: Connection, namespace: str, session_id: str | None
) -> tuple[StoredQuestion, ...]:
    """Return the questions of a session, or of all."""
    found = connection.execute(_LIST, (namespace, session_id, session_id))
    return tuple(map(_question, found))


def _question(row: _Row) -> StoredQuestion:
    asked, text, by, is_void = row
    question = from_json(json.loads(asked), StoredQuestion)
    return attrs.evolve(question, answer=text, answered_by=by, is_void=is_void)
