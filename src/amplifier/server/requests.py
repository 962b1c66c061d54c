"""What requests say, beyond the forms that every server of an agent has."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

import attrs
from starlette.requests import Request

from amplifier.serving.errors import RequestError
from amplifier.serving.prompts import PromptParts
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.person_questions import answer_text, misfit_of
from amplifier_sdk.stores import StoredQuestion

__all__ = [
    "NewSession",
    "NewTurn",
    "Priority",
    "QuestionAnswer",
    "answer_to",
    "limit_of",
    "no_session",
    "search_of",
    "session_id_of",
]

Priority: TypeAlias = Literal["high", "normal", "low"]
"""How soon a turn begins: each is ten minutes ahead of the next one."""

_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MAX_LISTED: Final = 200
_MAX_TEXT: Final = 200


def _short_name(_: object, attribute: attrs.Attribute[str], value: str | None) -> None:
    if value is not None and not (value.isprintable() and 0 < len(value) <= _MAX_TEXT):
        raise ValueError(
            f"{attribute.name}: expected 1 to {_MAX_TEXT} printable characters"
        )


@attrs.frozen(kw_only=True)
class NewSession:
    """What begins a session.

    Args:
        name: what people call it.
    """

    name: str | None = attrs.field(default=None, validator=_short_name)


@attrs.frozen(kw_only=True)
class NewTurn:
    """What begins a turn.

    Args:
        prompt: what is asked: a text, or texts and media in order.
        priority: how soon it begins among the tenant's turns that wait in a queue.
    """

    prompt: str | PromptParts
    priority: Priority = "normal"


@attrs.frozen(kw_only=True)
class QuestionAnswer:
    """What answers a question.

    Args:
        option: one of its options, where it has any.
        answer: a value of its schema, where it has one.
        declined: whether the person does not answer a question that has a schema.
    """

    option: str | None = None
    answer: JSONValue = None
    declined: bool = False


def answer_to(question: StoredQuestion, given: QuestionAnswer) -> str:
    """Return what a request answers to a question, as stores have it.

    Raises:
        RequestError: it is no answer to that question.
    """
    said = [given.option is not None, given.answer is not None, given.declined]
    if sum(said) != 1:
        raise _no_answer("expected 'option', 'answer', or 'declined': true")
    if question.schema is None:
        if given.option is None or given.option not in question.options:
            known = ", ".join(map(repr, question.options))
            raise _no_answer(f"option: expected one of {known}")
        return given.option
    if given.option is not None:
        raise _no_answer("the question takes 'answer', or 'declined': true")
    try:
        problem = misfit_of(question.schema, given.answer)
    except ValueError as error:  # redacted, a schema may be none any more
        raise _no_answer(f"the question takes no answer: {error}") from error
    if problem is not None:
        raise _no_answer(f"answer: {problem}")
    return answer_text(given.answer)


def _no_answer(message: str) -> RequestError:
    return RequestError(422, "invalid_request", message)


def session_id_of(request: Request) -> str:
    """Return the session that a request names.

    Raises:
        RequestError: it is the id of none, whoever asks.
    """
    session_id = str(request.path_params["session_id"])
    if not _ID.fullmatch(session_id):
        raise no_session()
    return session_id


def no_session() -> RequestError:
    """Return the error of a session that is not there, or that is another tenant's."""
    return RequestError(404, "not_found", "There is no such session")


def limit_of(request: Request) -> int:
    """Return how many are wanted.

    Raises:
        RequestError: it is no number, or too large.
    """
    text = request.query_params.get("limit", "50")
    if text.isascii() and text.isdecimal() and len(text) < 4:
        limit = int(text)
        if 1 <= limit <= _MAX_LISTED:
            return limit
    raise RequestError(
        422, "invalid_request", f"limit: expected a number from 1 to {_MAX_LISTED}"
    )


def search_of(request: Request) -> str | None:
    """Return the text that is searched; `None` where all are wanted.

    Raises:
        RequestError: it is too long, or no text.
    """
    text = request.query_params.get("search")
    if not text:
        return None
    if len(text) > _MAX_TEXT or not text.isprintable():
        raise RequestError(
            422, "invalid_request", f"search: expected at most {_MAX_TEXT} characters"
        )
    return text
