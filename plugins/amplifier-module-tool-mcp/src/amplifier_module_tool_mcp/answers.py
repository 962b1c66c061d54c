"""What a server at an address answers to a request, where it is no stream of events."""

from __future__ import annotations

from typing import Final

import httpx2
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    JSONRPCError,
    JSONRPCResponse,
    RequestId,
)

from amplifier_module_tool_mcp.results import NoAnswer
from amplifier_module_tool_mcp.wire import read_message

__all__ = [
    "EVENTS",
    "JSON",
    "AnswerError",
    "LoginNeededError",
    "content_type",
    "read_answer",
]

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"


class AnswerError(Exception):
    """A server's answer is none; says why, as `NoAnswer` does.

    Args:
        problem: what is wrong with it.
        code: the protocol's code of the error.
        may_have_run: whether the server may have done what it was asked.
        ended_session: whether the server no longer knows the session.
    """

    def __init__(
        self,
        problem: str,
        *,
        code: int = INTERNAL_ERROR,
        may_have_run: bool = True,
        ended_session: bool = False,
    ) -> None:
        super().__init__(problem)
        self.code: Final = code
        self.why: Final = NoAnswer(
            may_have_run=may_have_run, ended_session=ended_session
        )


class LoginNeededError(AnswerError):
    """A server wants the person to sign in; says with which command.

    Args:
        server: its name.
        reason: what keeps the last time they did from counting.
    """

    def __init__(self, server: str, reason: str | None = None) -> None:
        why = "" if reason is None else f" ({reason})"
        super().__init__(
            f"it answers with status 401; sign in{why}: amplifier mcp login {server}",
            may_have_run=False,
        )


def content_type(response: httpx2.Response) -> str:
    """Return the type of a body in lower case; empty where the server does not say it."""
    kind: str = response.headers.get("content-type", "")
    return kind.lower()


def read_answer(
    response: httpx2.Response, data: bytes, request: RequestId, *, has_session: bool
) -> JSONRPCResponse | JSONRPCError:
    """Read a body as the answer to a request; servers answer with errors and a status of failure as well.

    Args:
        response: the status and the headers.
        data: the body.
        request: the id of the request.
        has_session: whether the server gave the request's session an id.

    Raises:
        AnswerError: it is no answer.
    """
    status, kind = response.status_code, content_type(response)
    if status == 404 and has_session:
        raise AnswerError(
            "it has ended the session; the next call begins another",
            code=INVALID_REQUEST,
            ended_session=True,
        )
    if response.is_redirect:
        place = response.headers.get("location", "")
        raise AnswerError(
            f"it leads to {place!a:.200}, which is not followed", may_have_run=False
        )
    problem = f"it answers with {kind or 'no content type'!a:.100}"
    try:
        answer = None
        if kind.startswith(JSON):
            answer = read_message(data)
    except ValueError as error:
        answer, problem = None, f"its answer cannot be read: {error}"
    if isinstance(answer, (JSONRPCResponse, JSONRPCError)):
        return answer.model_copy(update={"id": request})
    if status != 200:
        # A gateway says that the server behind it failed, or took too long.
        raise AnswerError(
            f"it answers with status {status}", may_have_run=status >= 500
        )
    raise AnswerError(problem)
