"""The questions of a session that wait for an answer: the file `questions.json` in its folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.files.atomic import write_private
from amplifier_kit.files.documents import read_document
from amplifier_sdk.configuration import read_config
from amplifier_sdk.convert import to_json
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.stores import StoredQuestion

__all__ = ["QUESTIONS", "changing_questions", "read_questions", "void_questions"]

QUESTIONS: Final = "questions.json"
"""The file's name."""


@attrs.frozen
class _Questions:
    questions: dict[str, StoredQuestion]


def read_questions(folder: Path) -> dict[str, StoredQuestion]:
    """Return the questions of the session of a folder by id.

    Raises:
        ConfigError: the file cannot be understood.
    """
    file = folder / QUESTIONS
    try:
        data = read_document(file)
    except ConfigError as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            return {}
        raise
    subject = f"questions in {str(file)!r}"
    return read_config(_Questions, {"questions": data}, subject=subject).questions


@contextmanager
def changing_questions(folder: Path) -> Iterator[dict[str, StoredQuestion]]:
    """Yield the questions of a session for a change, which is stored at the end of the block.

    The lock is the file's own: an answer comes also while a process has the session open.

    Raises:
        LockedError: somebody else changes them for longer than that takes.
        ConfigError: the file cannot be understood.
        OSError: the system refuses; nothing is changed.
    """
    from amplifier_kit.files.locks import STEP_TIMEOUT, WriterLock

    with WriterLock.take(folder / QUESTIONS, timeout=STEP_TIMEOUT):
        known = read_questions(folder)
        changed = dict(known)
        yield changed
        if changed != known:
            data = {key: to_json(question) for key, question in changed.items()}
            content = json.dumps(data, indent=1).encode()
            write_private(folder / QUESTIONS, content + b"\n")


def void_questions(folder: Path, turn_id: str) -> None:
    """Let what a turn asked and nobody answered take no answer any more.

    Args:
        folder: the session's.
        turn_id: the turn, as its journal calls it.

    Raises:
        ConfigError: the file cannot be understood.
        OSError: the system refuses.
    """
    if not any(_waits(each, turn_id) for each in read_questions(folder).values()):
        return
    with changing_questions(folder) as known:
        for key, question in known.items():
            if _waits(question, turn_id):
                known[key] = attrs.evolve(question, is_void=True)


def _waits(question: StoredQuestion, turn_id: str) -> bool:
    """Whether a turn may still wait for the answer; servers write the id of one with hyphens."""
    asked_by = str(question.details.get("turn_id")).replace("-", "")
    is_open = question.answer is None and not question.is_void
    return is_open and asked_by == turn_id
