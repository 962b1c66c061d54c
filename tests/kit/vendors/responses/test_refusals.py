"""The API's codes become the errors of the SDK, wherever they stand."""

from __future__ import annotations

import json

import pytest

from amplifier_kit.vendors.responses.refusals import refusal_of, reported
from amplifier_sdk.errors import ProviderUnavailableError
from amplifier_sdk.jsontypes import JSONObject


def body(**error: object) -> bytes:
    return json.dumps({"error": {"message": "No.", **error}}).encode()


@pytest.mark.parametrize(
    ("status", "error", "name", "may_pass"),
    [
        (400, {"code": "context_length_exceeded"}, "ContextLengthError", False),
        (400, {"code": "invalid_prompt"}, "ContentFilterError", False),
        (
            400,
            {"code": "content_filter", "innererror": {}},
            "ContentFilterError",
            False,
        ),
        (
            400,
            {"code": None, "innererror": {"code": "ResponsibleAIPolicyViolation"}},
            "ContentFilterError",
            False,
        ),
        (400, {"code": "previous_response_not_found"}, "ChainBrokenError", False),
        (400, {"code": "invalid_encrypted_content"}, "ReasoningRefusedError", False),
        (400, {"code": "invalid_image_url"}, "InvalidRequestError", False),
        (
            400,
            {"code": 400, "type": "exceed_context_size_error"},
            "ContextLengthError",
            False,
        ),
        (400, {"code": "unsupported_parameter"}, "InvalidRequestError", False),
        (401, {"code": "invalid_api_key"}, "AuthenticationError", False),
        (
            403,
            {"code": "unsupported_country_region_territory"},
            "AccessDeniedError",
            False,
        ),
        (404, {"code": "model_not_found"}, "NotFoundError", False),
        (404, {"code": "DeploymentNotFound"}, "NotFoundError", False),
        (429, {"code": "insufficient_quota"}, "QuotaExceededError", False),
        (429, {"code": "rate_limit_exceeded"}, "RateLimitError", True),
        (500, {"code": "server_error"}, "ProviderUnavailableError", True),
        (503, {"code": "slow_down"}, "ProviderUnavailableError", True),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_code_goes_before_the_status(
    status: int, error: JSONObject, name: str, may_pass: bool
) -> None:
    refused = refusal_of(status, {}, body(**error))

    assert (type(refused).__name__, refused.retryable, refused.status_code) == (
        name,
        may_pass,
        status,
    )
    assert "No." in str(refused)


def test_the_wait_that_the_vendor_asks_for_is_kept() -> None:
    refused = refusal_of(
        429, {"retry-after-ms": "1500"}, body(code="rate_limit_exceeded")
    )

    assert refused.retry_after == 1.5


def test_a_gateways_page_may_be_gone_at_the_next_try() -> None:
    page = b"<html><title>403 Forbidden</title></html>"
    headers = {"content-type": "text/html; charset=utf-8"}

    refused = refusal_of(403, headers, page)

    assert (type(refused), refused.retryable) == (ProviderUnavailableError, True)
    assert "gateway" in str(refused)
    assert not refusal_of(403, {"content-type": "application/json"}, body()).retryable
    assert not refusal_of(401, headers, page).retryable


@pytest.mark.parametrize(
    ("problem", "name"),
    [
        ({"code": "rate_limit_exceeded"}, "RateLimitError"),
        ({"error": {"type": "invalid_request_error"}}, "InvalidRequestError"),
        ({"error": {"type": "tokens", "code": "unheard_of"}}, "RateLimitError"),
        ({"code": "429"}, "RateLimitError"),
        ({"error": {"code": 500, "message": "\ud83d"}}, "ProviderUnavailableError"),
        ({"code": 400, "type": "exceed_context_size_error"}, "ContextLengthError"),
        ({"code": 200}, "StreamError"),
        ({"code": "unheard_of"}, "StreamError"),
        ({}, "StreamError"),
    ],
    ids=[
        "code",
        "type",
        "type-behind-a-code",
        "status",
        "number",
        "status-and-type",
        "no-status",
        "unknown",
        "empty",
    ],
)
def test_an_error_in_a_stream_is_named(problem: JSONObject, name: str) -> None:
    assert type(reported(problem)).__name__ == name


def test_a_long_message_is_cut() -> None:
    assert len(str(reported({"message": "no " * 1000}))) < 700
