"""What the API's error codes mean, as errors of the SDK. Source: OpenAI's and Azure's lists of error codes.

```
LLMError
├── NotFoundError
│   └── ChainBrokenError            the response to go on from is gone
└── InvalidRequestError
    └── ReasoningRefusedError       reasoning sent back cannot be read by whoever is asked now
```
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from amplifier_kit.vendors.payloads import write_json
from amplifier_kit.vendors.refusals import (
    BY_CODE,
    read_problem,
    refusal,
    status_of_code,
)
from amplifier_kit.vendors.responses._fields import mapping, text
from amplifier_sdk.errors import (
    AccessDeniedError,
    AuthenticationError,
    ContentFilterError,
    InvalidRequestError,
    LLMError,
    NotFoundError,
    ProviderUnavailableError,
    QuotaExceededError,
    RateLimitError,
    StreamError,
)
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["ChainBrokenError", "ReasoningRefusedError", "refusal_of", "reported"]

_FORBIDDEN: Final = 403
_LONGEST_MESSAGE: Final = 500


class ChainBrokenError(NotFoundError):
    """The response that a request goes on from is not stored any more, or was never."""


class ReasoningRefusedError(InvalidRequestError):
    """Reasoning of an earlier answer cannot be decrypted: another key, organisation or model is asked now."""


_BY_CODE: Final[Mapping[str, type[LLMError]]] = {
    **BY_CODE,
    "DeploymentNotFound": NotFoundError,
    "ResponsibleAIPolicyViolation": ContentFilterError,
    "account_deactivated": AuthenticationError,
    "billing_not_active": QuotaExceededError,
    "bio_policy": ContentFilterError,
    "cyber_policy": ContentFilterError,
    "data_residency_mismatch": AccessDeniedError,
    "engine_overloaded": ProviderUnavailableError,
    "image_content_policy_violation": ContentFilterError,
    "insufficient_permissions": AccessDeniedError,
    "invalid_encrypted_content": ReasoningRefusedError,
    "invalid_prompt": ContentFilterError,
    "misalignment_policy_violation": ContentFilterError,
    "previous_response_not_found": ChainBrokenError,
    "rate_limit_exceeded": RateLimitError,
    "server_error": ProviderUnavailableError,
    "server_is_overloaded": ProviderUnavailableError,
    "slow_down": ProviderUnavailableError,
    "unsupported_country_region_territory": AccessDeniedError,
    "vector_store_timeout": ProviderUnavailableError,
}

_BY_TYPE: Final[Mapping[str, type[LLMError]]] = {
    "authentication_error": AuthenticationError,
    "image_generation_user_error": InvalidRequestError,
    "insufficient_quota": QuotaExceededError,
    "invalid_request_error": InvalidRequestError,
    "not_found_error": NotFoundError,
    "permission_error": AccessDeniedError,
    "rate_limit_error": RateLimitError,
    "requests": RateLimitError,
    "server_error": ProviderUnavailableError,
    "tokens": RateLimitError,
}

_IMAGE_CODES: Final = ("image", "base64")
"""Parts of the many codes for images that cannot be used."""


def refusal_of(status: int, headers: Mapping[str, str], body: bytes) -> LLMError:
    """Return the error for an answer that is none.

    A 403 that is a page, not JSON, comes from a gateway on the way and is transient: it may be retried.

    Args:
        status: the HTTP status.
        headers: the answer's headers, names in lower case.
        body: the beginning of its body.
    """
    if status == _FORBIDDEN and headers.get("content-type", "").startswith("text/html"):
        words = "a gateway on the way refused the request with a page of its own"
        return refusal(
            status, headers, body, kind=ProviderUnavailableError, words=words
        )
    return refusal(status, headers, body, kind=_kind(read_problem(body), _BY_CODE))


def reported(problem: Mapping[str, JSONValue]) -> LLMError:
    """Return the error that a stream reports; one without a known code may be gone at the next try.

    A code that is a number is a status: what it would have been, had the answer not begun.

    Args:
        problem: the event, or the response in it; the error is itself or under its key `error`.
    """
    problem = mapping(problem, "error") or problem
    kind = _kind(problem, _BY_CODE) or _kind(problem, _BY_TYPE)
    status = status_of_code(problem.get("code"))
    if status is not None:
        return refusal(status, {}, write_json(problem), kind=kind)
    code = text(problem, "code") or text(problem, "type") or "no code"
    said = (text(problem, "message") or "no reason given")[:_LONGEST_MESSAGE]
    return (kind or StreamError)(
        f"The vendor ended the answer with an error ({code}): {said}"
    )


def _kind(
    problem: Mapping[str, JSONValue], table: Mapping[str, type[LLMError]]
) -> type[LLMError] | None:
    """Look the error's code up, then its type, then the code of the error that it came from."""
    codes = (
        text(problem, "code"),
        text(problem, "type"),
        text(mapping(problem, "innererror"), "code"),
    )
    for code in filter(None, codes):
        if (kind := table.get(code)) is not None:
            return kind
    if any(part in (codes[0] or "") for part in _IMAGE_CODES):
        return InvalidRequestError
    return None
