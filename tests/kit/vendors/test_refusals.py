from __future__ import annotations

import json

import pytest

from amplifier_kit.vendors import read_problem, refusal
from amplifier_kit.vendors.refusals import is_error, status_of
from amplifier_sdk.errors import (
    AuthenticationError,
    ContentFilterError,
    ContextLengthError,
    InvalidRequestError,
    LLMError,
    NotFoundError,
    ProviderUnavailableError,
    QuotaExceededError,
    RateLimitError,
)
from amplifier_sdk.jsontypes import JSONObject


def refused(status: int, problem: object, **headers: str) -> LLMError:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return refusal(status, named, json.dumps({"error": problem}).encode())


def test_the_message_has_status_words_and_the_requests_number() -> None:
    error = refused(400, {"message": "No such field."}, request_id="req_7")

    assert (
        str(error)
        == "The vendor answered with status 400: No such field. (request req_7)"
    )
    assert type(error) is InvalidRequestError


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        ({"code": "context_length_exceeded"}, ContextLengthError),
        ({"type": "exceed_context_size_error", "code": 400}, ContextLengthError),
        (
            {"code": "insufficient_quota", "type": "insufficient_quota"},
            QuotaExceededError,
        ),
        ({"code": "content_filter"}, ContentFilterError),
        ({"code": "model_not_found"}, NotFoundError),
        ({"code": "invalid_api_key"}, AuthenticationError),
        ({"code": "rate_limit_exceeded"}, RateLimitError),
    ],
    ids=lambda value: value.get("code") if isinstance(value, dict) else None,
)
def test_a_code_tells_more_than_the_status(
    problem: JSONObject, kind: type[LLMError]
) -> None:
    assert type(refused(429, problem)) is kind


def test_the_vendors_class_and_words_go_before() -> None:
    error = refusal(
        400, {}, b"{}", kind=ContextLengthError, words="too long by 3 tokens"
    )

    assert type(error) is ContextLengthError
    assert "too long by 3 tokens" in str(error)


def test_a_body_without_words_is_said_as_it_is() -> None:
    assert "<html>down</html>" in str(refusal(502, {}, b"<html>down</html>"))
    assert "no reason given" in str(refusal(502, {}, b""))
    assert "detailed" in str(refusal(400, {}, b'{"detail": "detailed"}'))
    assert "out of memory" in str(refusal(500, {}, b'{"error": "out of memory"}'))


def test_an_overloaded_vendor_is_given_ten_times_the_wait() -> None:
    assert refusal(529, {}, b"").delay_multiplier == 10
    assert refusal(503, {}, b"").delay_multiplier == 1


def test_the_vendor_has_the_last_word_on_retries() -> None:
    assert refusal(400, {"x-should-retry": "true"}, b"").retryable
    assert not refusal(503, {"x-should-retry": "false"}, b"").retryable


def test_a_redirect_is_not_followed_and_says_what_to_do() -> None:
    error = refusal(308, {}, b"")

    assert "correct `base_url`" in str(error)
    assert not error.retryable


def test_unknown_statuses_keep_their_family() -> None:
    assert type(refusal(418, {}, b"")) is LLMError
    assert type(refusal(599, {}, b"")) is ProviderUnavailableError


def test_a_problem_is_found_in_odd_bodies() -> None:
    assert read_problem(b'{"error": {"code": 1}}') == {"code": 1}
    assert read_problem(b'{"code": 1}') == {"code": 1}
    assert read_problem(b'{"error": "text"}') == {"message": "text"}
    assert read_problem(b'{"error": 5}') == {}
    assert read_problem(b"[1]") == {}
    assert read_problem(b"[" * 100_000) == {}


def test_an_error_inside_an_answer_names_its_status() -> None:
    assert status_of('{"error": {"code": 429}}') == 429
    assert status_of('{"error": {"code": "x", "status": 404}}') == 404
    assert status_of('{"error": {"code": "400"}}') == 400
    assert status_of('{"error": {"code": "x", "status_code": "429"}}') == 429
    assert status_of('{"error": {"code": 7}}') == 500
    assert status_of('{"error": {"code": "1234567"}}') == 500
    assert status_of("what?") == 500
    assert is_error(b'{"error": {}, "x": 1}') is False
    assert is_error(b'{"error": {"code": 1}}') is True
    assert is_error(b"[]") is False
    assert is_error(b"<html>") is False
