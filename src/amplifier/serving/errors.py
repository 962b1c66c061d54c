"""What is wrong with a request, and how it is answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from amplifier.serving.json_answers import JSONAnswer
from amplifier_sdk.errors import (
    AmplifierError,
    BudgetExceededError,
    LLMError,
    StoreError,
)
from amplifier_sdk.jsontypes import JSONObject

__all__ = [
    "RequestError",
    "answer_http_exception",
    "answer_request_error",
    "answer_unexpected",
    "error_of_turn",
]

_MAX_MESSAGE: Final = 2000
_CODES: Final = {404: "not_found", 405: "method_not_allowed"}


class RequestError(AmplifierError):
    """A request is refused.

    Args:
        status: the HTTP status.
        code: what is wrong, for programs.
        message: the same for people.
        headers: of the answer.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status: int = status
        self.code: str = code
        self.headers: Mapping[str, str] | None = headers
        super().__init__(message)


def _answer(
    status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    # what is wrong may quote the request, whose size is the caller's
    if len(message) > _MAX_MESSAGE:
        message = f"{message[:_MAX_MESSAGE]}…"
    error: JSONObject = {"code": code, "message": message}
    return JSONAnswer({"error": error}, status, headers)


def answer_request_error(_request: Request, error: Exception) -> Response:
    """Answer a request that is refused."""
    assert isinstance(error, RequestError)
    return _answer(error.status, error.code, str(error), error.headers)


def answer_http_exception(_request: Request, error: Exception) -> Response:
    """Answer a request for which there is no route."""
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "http_error")
    return _answer(error.status_code, code, error.detail, error.headers)


def answer_unexpected(_request: Request, _error: Exception) -> Response:
    """Answer a request that failed here: what failed is for the log alone."""
    return _answer(500, "internal_error", "The server failed; its log says why")


def error_of_turn(error: Exception) -> JSONObject:
    """Describe why a turn failed, without what may hold addresses, keys or the program's own data."""
    name = type(error).__name__
    match error:
        case BudgetExceededError():
            return {"code": "budget_exceeded", "message": str(error)}
        case LLMError():
            return {
                "code": "provider_failed",
                "message": f"The provider failed: {name}",
            }
        case StoreError():
            message = (
                "The store did not take what the turn wrote; the server's log says why"
            )
            return {"code": "store_refused", "message": message}
        case AmplifierError():
            return {"code": "turn_failed", "message": f"The turn failed: {name}"}
        case _:
            message = "The turn failed; the server's log says why"
            return {"code": "internal_error", "message": message}
