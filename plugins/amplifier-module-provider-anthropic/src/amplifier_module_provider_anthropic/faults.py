"""What the API reports as wrong, as errors of the SDK: by its code, then by its type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from amplifier_kit.vendors import read_problem, refusal, write_json
from amplifier_sdk.errors import (
    AccessDeniedError,
    AuthenticationError,
    ContextLengthError,
    InvalidRequestError,
    LLMError,
    LLMTimeoutError,
    NotFoundError,
    ProviderUnavailableError,
    QuotaExceededError,
    RateLimitError,
)
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["fault", "reported_fault"]

_OVERLOADED: Final = "overloaded_error"
_BY_TYPE: Final[Mapping[str, tuple[int, type[LLMError]]]] = {
    "api_error": (500, ProviderUnavailableError),
    "authentication_error": (401, AuthenticationError),
    "billing_error": (402, QuotaExceededError),
    # of llama.cpp's server, which speaks the same protocol
    "exceed_context_size_error": (400, ContextLengthError),
    "invalid_request_error": (400, InvalidRequestError),
    "not_found_error": (404, NotFoundError),
    _OVERLOADED: (529, ProviderUnavailableError),
    "permission_error": (403, AccessDeniedError),
    "rate_limit_error": (429, RateLimitError),
    "request_too_large": (413, ContextLengthError),
    "timeout_error": (504, LLMTimeoutError),
}
"""The API's types: the status that each has, and the error that it is."""

_SPENT: Final = frozenset(
    {
        "contract_spend_limit_reached",
        "enforced_spend_limit_reached",
        "linked_organization_billing_unavailable",
        "linked_organization_spend_limit_reached",
        "organization_on_hold",
    }
)
"""Codes that say that the account may spend no more, whatever the type."""

_BY_WORDS: Final[Mapping[str, type[LLMError]]] = {
    "prompt is too long": ContextLengthError,
    "input length and `max_tokens` exceed context limit": ContextLengthError,
    "Your credit balance is too low": QuotaExceededError,
}
"""Invalid requests that the API distinguishes by no code, only by how their message begins."""


def fault(
    status: int, headers: Mapping[str, str], body: bytes, *, multiplier: float
) -> LLMError:
    """Return the error for an answer that is none.

    Args:
        status: the HTTP status.
        headers: the answer's headers, names in lower case.
        body: the beginning of its body.
        multiplier: how much longer the waits are when the API is overloaded.
    """
    problem = read_problem(body)
    error = refusal(status, headers, body, kind=_kind(problem))
    if problem.get("type") == _OVERLOADED or status == _BY_TYPE[_OVERLOADED][0]:
        error.delay_multiplier = multiplier
    return error


def reported_fault(event: Mapping[str, JSONValue], *, multiplier: float) -> LLMError:
    """Return the error that an event in an answer's stream reports."""
    body = write_json(event)
    kind = read_problem(body).get("type")
    # An error inside a stream comes with status 200; the type says which one it would
    # have had.
    status, _ = _BY_TYPE.get(
        kind if isinstance(kind, str) else "", _BY_TYPE["api_error"]
    )
    return fault(status, {}, body, multiplier=multiplier)


def _kind(problem: Mapping[str, JSONValue]) -> type[LLMError] | None:
    """Return the error's class; `None` when the API's own words do not tell."""
    details = problem.get("details")
    kind = problem.get("type")
    message = problem.get("message")
    # Before the type, which for a spent account is that of a rate limit: retrying it
    # would be of no use.
    if isinstance(details, Mapping) and details.get("error_code") in _SPENT:
        return QuotaExceededError
    if kind == "invalid_request_error" and isinstance(message, str):
        return next(
            (cls for words, cls in _BY_WORDS.items() if message.startswith(words)),
            InvalidRequestError,
        )
    known = None
    if isinstance(kind, str):
        known = _BY_TYPE.get(kind)
    if known:
        return known[1]
    return None
