"""The errors of providers: the SDK's own, which have the original's names."""

from __future__ import annotations

from amplifier_sdk.errors import (
    AbortError,
    AccessDeniedError,
    AuthenticationError,
    ConfigurationError,
    ContentFilterError,
    ContextLengthError,
    InvalidRequestError,
    InvalidToolCallError,
    LLMError,
    LLMTimeoutError,
    NetworkError,
    NotFoundError,
    ProviderUnavailableError,
    QuotaExceededError,
    RateLimitError,
    StreamError,
)

__all__ = [
    "AbortError",
    "AccessDeniedError",
    "AuthenticationError",
    "ConfigurationError",
    "ContentFilterError",
    "ContextLengthError",
    "InvalidRequestError",
    "InvalidToolCallError",
    "LLMError",
    "LLMTimeoutError",
    "NetworkError",
    "NotFoundError",
    "ProviderUnavailableError",
    "QuotaExceededError",
    "RateLimitError",
    "StreamError",
    "classify_error_message",
]

_BY_STATUS = {
    401: AuthenticationError,
    403: AccessDeniedError,
    404: NotFoundError,
    413: ContextLengthError,
    429: RateLimitError,
}
_BY_WORDS: tuple[tuple[tuple[str, ...], type[LLMError]], ...] = (
    (("context length", "too many tokens", "maximum context"), ContextLengthError),
    (("rate limit", "too many requests"), RateLimitError),
    (("authentication", "api key", "unauthorized"), AuthenticationError),
    (("not found",), NotFoundError),
    (("content filter", "safety", "blocked"), ContentFilterError),
)


def classify_error_message(
    message: str,
    status_code: int | None = None,
    provider: str | None = None,  # noqa: ARG001  # the original's signature
) -> type[LLMError]:
    """Return the class of error that a vendor's status or else its words mean."""
    if status_code in _BY_STATUS:
        return _BY_STATUS[status_code]
    if status_code is not None and status_code >= 500:
        return ProviderUnavailableError
    text = message.lower()
    for words, error in _BY_WORDS:
        if any(word in text for word in words):
            return error
    if status_code in (400, 422):
        return InvalidRequestError
    return LLMError
