"""What the API reports as wrong becomes the right error."""

from __future__ import annotations

import json

import pytest

from amplifier_module_provider_anthropic.faults import fault, reported_fault
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
from amplifier_sdk.jsontypes import JSONObject, JSONValue


def _body(kind: str, message: str = "no", **more: JSONValue) -> bytes:
    return json.dumps(
        {"type": "error", "error": {"type": kind, "message": message, **more}}
    ).encode()


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (400, "invalid_request_error", InvalidRequestError),
        (401, "authentication_error", AuthenticationError),
        (402, "billing_error", QuotaExceededError),
        (403, "permission_error", AccessDeniedError),
        (404, "not_found_error", NotFoundError),
        (413, "request_too_large", ContextLengthError),
        (429, "rate_limit_error", RateLimitError),
        (500, "api_error", ProviderUnavailableError),
        (504, "timeout_error", LLMTimeoutError),
        (529, "overloaded_error", ProviderUnavailableError),
        (400, "exceed_context_size_error", ContextLengthError),
        (503, "error_of_a_gateway", ProviderUnavailableError),
        (400, "error_of_a_gateway", InvalidRequestError),
    ],
)
def test_an_error_is_known_by_its_type(
    status: int, kind: str, error: type[LLMError]
) -> None:
    caught = fault(status, {}, _body(kind), multiplier=10)

    assert type(caught) is error
    assert caught.status_code == status


def test_the_type_goes_before_the_status() -> None:
    assert (
        type(fault(500, {}, _body("overloaded_error"), multiplier=4))
        is ProviderUnavailableError
    )
    assert fault(500, {}, _body("overloaded_error"), multiplier=4).delay_multiplier == 4


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("prompt is too long: 211180 tokens > 200000 maximum", ContextLengthError),
        (
            "input length and `max_tokens` exceed context limit: 199000 + 64000 > 200000",
            ContextLengthError,
        ),
        (
            "Your credit balance is too low to access the Anthropic API.",
            QuotaExceededError,
        ),
        ("messages.1: the user wrote that the prompt is too long", InvalidRequestError),
    ],
)
def test_an_invalid_request_is_known_by_how_its_message_begins(
    message: str, error: type[LLMError]
) -> None:
    assert (
        type(fault(400, {}, _body("invalid_request_error", message), multiplier=10))
        is error
    )


def test_words_alone_make_no_error() -> None:
    assert (
        type(fault(500, {}, _body("api_error", "prompt is too long"), multiplier=10))
        is ProviderUnavailableError
    )


@pytest.mark.parametrize(
    "code",
    [
        "contract_spend_limit_reached",
        "enforced_spend_limit_reached",
        "organization_on_hold",
    ],
)
def test_a_spent_account_is_known_by_its_code(code: str) -> None:
    details: JSONObject = {"error_code": code}

    for status, kind in ((400, "invalid_request_error"), (429, "rate_limit_error")):
        caught = fault(status, {}, _body(kind, details=details), multiplier=10)
        assert type(caught) is QuotaExceededError
        assert not caught.retryable


def test_an_unknown_code_changes_nothing() -> None:
    body = _body("rate_limit_error", details={"error_code": "ramp_limit_exceeded"})
    caught = fault(429, {"retry-after": "7"}, body, multiplier=10)

    assert type(caught) is RateLimitError
    assert caught.retry_after == 7


def test_an_overloaded_api_is_asked_again_later_than_others() -> None:
    assert fault(529, {}, b"<html>", multiplier=10).delay_multiplier == 10
    assert fault(500, {}, _body("api_error"), multiplier=10).delay_multiplier == 1


def test_the_request_s_number_is_told() -> None:
    assert "req_7" in str(
        fault(500, {"request-id": "req_7"}, _body("api_error"), multiplier=10)
    )


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"error": 3}', b'{"error": {"type": 3, "details": []}}']
)
def test_a_body_that_is_not_the_api_s_is_known_by_its_status(body: bytes) -> None:
    assert type(fault(404, {}, body, multiplier=10)) is NotFoundError


def test_error_in_stream_has_status_that_it_would_have_had() -> None:
    caught = reported_fault(
        {"error": {"type": "overloaded_error", "message": "Overloaded"}}, multiplier=10
    )

    assert (type(caught), caught.status_code, caught.delay_multiplier) == (
        ProviderUnavailableError,
        529,
        10,
    )
