"""What the server answers when it refuses, as errors of the SDK."""

from __future__ import annotations

import json
from collections.abc import Mapping

import httpx2

from amplifier_sdk.errors import (
    AuthenticationError,
    ContextLengthError,
    InvalidRequestError,
    LLMError,
    LLMTimeoutError,
    NetworkError,
    NotFoundError,
    ProviderUnavailableError,
    RateLimitError,
    StreamError,
)
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["refusal", "transport_error"]

_BY_STATUS: Mapping[int, type[LLMError]] = {
    400: InvalidRequestError,
    401: AuthenticationError,
    403: AuthenticationError,
    404: NotFoundError,
    413: InvalidRequestError,
    422: InvalidRequestError,
    429: RateLimitError,
}


def refusal(status: int, body: bytes) -> LLMError:
    """Return the error for an answer that is none: by its status, with the server's own words."""
    problem = _problem(body)
    if problem.get("type") == "exceed_context_size_error":
        return ContextLengthError(
            f"The request has {problem.get('n_prompt_tokens')} tokens and the model takes {problem.get('n_ctx')}; "
            "shorten it, or raise `n_ctx`",
            status_code=status,
        )
    message = problem.get("message")
    text = message if isinstance(message, str) else body.decode("utf-8", "replace")[:200] or "no reason given"
    kind = _BY_STATUS.get(status, ProviderUnavailableError if status >= 500 else LLMError)
    return kind(f"The model's server refused the request with status {status}: {text}", status_code=status)


def transport_error(error: httpx2.TransportError) -> LLMError:
    """Return the error for a connection that failed."""
    match error:
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return NetworkError("The model's server cannot be reached")
        case httpx2.TimeoutException():
            return LLMTimeoutError("The model's server is silent")
        case _:
            return StreamError(f"The connection to the model's server broke: {str(error) or type(error).__name__}")


def _problem(body: bytes) -> Mapping[str, JSONValue]:
    try:
        value: JSONValue = json.loads(body)
    except ValueError:
        return {}
    problem = value.get("error") if isinstance(value, Mapping) else None
    return problem if isinstance(problem, Mapping) else {}
