"""What a vendor answers when it refuses, as errors of the SDK: by status, with the vendor's own words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from amplifier_kit.vendors.headers import request_id, retry_after, should_retry
from amplifier_sdk.errors import (
    AccessDeniedError,
    AuthenticationError,
    ContentFilterError,
    ContextLengthError,
    InvalidRequestError,
    LLMError,
    LLMTimeoutError,
    NotFoundError,
    ProviderUnavailableError,
    QuotaExceededError,
    RateLimitError,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "BY_CODE",
    "OVERLOADED_DELAY_MULTIPLIER",
    "is_error",
    "read_problem",
    "refusal",
    "status_of",
    "status_of_code",
]

OVERLOADED_DELAY_MULTIPLIER: Final = 10.0
"""How much longer than after other failures the wait is when the vendor is overloaded (status 529)."""

_OVERLOADED: Final = 529
_LONGEST_WORDS: Final = 500
_DIGITS: Final = 3
_BY_STATUS: Final[Mapping[int, type[LLMError]]] = {
    400: InvalidRequestError,
    401: AuthenticationError,
    402: QuotaExceededError,
    403: AccessDeniedError,
    404: NotFoundError,
    408: LLMTimeoutError,
    409: ProviderUnavailableError,
    413: ContextLengthError,
    422: InvalidRequestError,
    429: RateLimitError,
}
BY_CODE: Final[Mapping[str, type[LLMError]]] = {
    "billing_error": QuotaExceededError,
    "billing_hard_limit_reached": QuotaExceededError,
    "content_filter": ContentFilterError,
    "content_policy_violation": ContentFilterError,
    "context_length_exceeded": ContextLengthError,
    "exceed_context_size_error": ContextLengthError,
    "insufficient_quota": QuotaExceededError,
    "invalid_api_key": AuthenticationError,
    "model_not_found": NotFoundError,
    "request_too_large": ContextLengthError,
}
"""Errors that vendors' `code` or `type` names more exactly than the status."""


_EMPTY: Final = ("{}", "[]", "null", '""')


def refusal(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    kind: type[LLMError] | None = None,
    words: str = "",
) -> LLMError:
    """Return the error for an answer that is none.

    Args:
        status: the HTTP status.
        headers: the answer's headers, names in lower case.
        body: the beginning of its body.
        kind: the error's class where the vendor knows it better than its `code`, its `type` and the status tell.
        words: what to say instead of the vendor's message.
    """
    problem = read_problem(body)
    cls = (
        kind
        or _by_code(problem)
        or _BY_STATUS.get(
            # statuses of the server's side are many, and all of them may pass
            status,
            ProviderUnavailableError if status >= 500 else LLMError,
        )
    )
    said = words or _words(problem, body) or "no reason given"
    if number := request_id(headers):
        said += f" (request {number})"
    if 300 <= status < 400:
        said += "; it is elsewhere: correct `base_url`"
    return cls(
        f"The vendor answered with status {status}: {said}",
        status_code=status,
        retryable=should_retry(headers),
        retry_after=retry_after(headers),
        delay_multiplier=OVERLOADED_DELAY_MULTIPLIER if status == _OVERLOADED else 1.0,
    )


def read_problem(body: bytes | str) -> JSONObject:
    """Return what the body says of the error: the object under `error`, else the body's own; empty if there is none."""
    try:
        value: JSONValue = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    # gateways put the error at the top, under `error`, or there as a plain text
    problem: JSONValue = value.get("error", value)
    if isinstance(problem, dict):
        return problem
    if isinstance(problem, str):
        return {"message": problem}
    return {}


def is_error(body: bytes | str) -> bool:
    """Tell whether a body is an object with an `error`."""
    try:
        value: JSONValue = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and bool(value.get("error"))


def status_of(body: bytes | str) -> int:
    """Return the status that an error names which came with the status of a success, or inside a stream; else 500."""
    problem = read_problem(body)
    codes = (problem.get(key) for key in ("code", "status", "status_code"))
    return next(filter(None, map(status_of_code, codes)), 500)


def status_of_code(code: JSONValue) -> int | None:
    """Return the status that an error's code is, as a number or as a text of one; `None` when it is another code."""
    number = (
        int(code)
        if isinstance(code, str) and code.isdecimal() and len(code) == _DIGITS
        else code
    )
    return number if isinstance(number, int) and 400 <= number < 600 else None


def _by_code(problem: JSONObject) -> type[LLMError] | None:
    codes = (problem.get(key) for key in ("code", "type"))
    return next(
        (BY_CODE[code] for code in codes if isinstance(code, str) and code in BY_CODE),
        None,
    )


def _words(problem: JSONObject, body: bytes) -> str:
    for key in ("message", "detail"):
        if isinstance(words := problem.get(key), str) and words:
            return words[:_LONGEST_WORDS]
    text = body.decode("utf-8", "replace").strip()[:_LONGEST_WORDS]
    # an empty object says no more than an empty body
    return "" if text in _EMPTY else text
