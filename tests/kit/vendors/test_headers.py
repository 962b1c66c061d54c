from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_kit.vendors.headers import (
    RateLimit,
    rate_limits,
    request_id,
    retry_after,
    should_retry,
)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "-7"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "in a while"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00"}, 0.0),
        ({"retry-after": "Wed, 99 Oct 2015 07:28:00 GMT"}, None),
    ],
    ids=[
        "nothing", "seconds", "float", "zero", "milliseconds", "odd milliseconds", "negative", "nan", "infinite",
        "words", "past date", "date without zone", "impossible date",
    ],
)  # fmt: skip
def test_the_wait_is_read_or_unknown(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(headers) == seconds


def test_a_date_to_come_is_the_seconds_until_then() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)

    seconds = retry_after({"retry-after": date})

    assert seconds is not None
    assert 60 < seconds <= 90


@given(st.text())
def test_no_header_is_an_error_or_a_negative_wait(text: str) -> None:
    seconds = retry_after({"retry-after": text})

    assert seconds is None or seconds >= 0


def test_the_vendor_may_say_whether_to_try_again() -> None:
    assert should_retry({"x-should-retry": "true"}) is True
    assert should_retry({"x-should-retry": "False"}) is False
    assert should_retry({"x-should-retry": "maybe"}) is None
    assert should_retry({}) is None


def test_the_requests_number_has_several_names() -> None:
    assert request_id({"request-id": "req_1"}) == "req_1"
    assert request_id({"x-request-id": "req_2"}) == "req_2"
    assert request_id({}) is None


def test_limits_are_read_in_each_vendors_spelling() -> None:
    headers = {
        "x-ratelimit-limit-requests": "500",
        "x-ratelimit-remaining-requests": "499",
        "x-ratelimit-reset-requests": "120ms",
        "anthropic-ratelimit-input-tokens-limit": "80000",
        "anthropic-ratelimit-input-tokens-remaining": "100",
        "x-ratelimit-limit": "60",
        "x-ratelimit-remaining": "1",
        "x-ratelimit-remaining-tokens": "lots",
        "x-ratelimit-limit-tokens": "9",
        "x-ratelimit-remaining-images": "3",
    }

    assert list(rate_limits(headers)) == [
        RateLimit(dimension="requests", limit=500, remaining=499, reset="120ms"),
        RateLimit(dimension="input-tokens", limit=80_000, remaining=100),
        RateLimit(dimension="requests", limit=60, remaining=1),
    ]


@pytest.mark.parametrize(
    "figures",
    ["9" * 400, "9" * 5_000],
    ids=["more than a float", "more than Python reads"],
)
def test_limits_of_absurd_length_are_none(figures: str) -> None:
    assert (
        list(
            rate_limits(
                {
                    "x-ratelimit-limit-tokens": figures,
                    "x-ratelimit-remaining-tokens": "1",
                }
            )
        )
        == []
    )
