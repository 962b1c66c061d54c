from __future__ import annotations

import pytest

from amplifier_kit.vendors import VendorConfig
from amplifier_kit.vendors.retries import tries
from amplifier_sdk.errors import (
    InvalidRequestError,
    LLMError,
    ProviderUnavailableError,
    RateLimitError,
)
from amplifier_sdk.jsontypes import JSONValue


def waits(*errors: LLMError, **options: JSONValue) -> list[float]:
    """Fail with each error in turn, and return the waits before the tries."""
    config = VendorConfig(**{"retry_jitter": False, **options})  # type: ignore[arg-type]  # options by name
    attempts, found = tries(config), []
    for error in errors:
        attempt = next(attempts)
        found.append(attempt.delay)
        attempt.fail(error)
    found.append(next(attempts).delay)
    return found


def down(
    *, retry_after: float | None = None, delay_multiplier: float = 1.0
) -> LLMError:
    return ProviderUnavailableError(
        "down", retry_after=retry_after, delay_multiplier=delay_multiplier
    )


def test_each_wait_is_twice_the_one_before_up_to_the_longest() -> None:
    assert waits(down(), down(), down(), down(), max_retry_delay=5.0) == [
        0.0,
        1.0,
        2.0,
        4.0,
        5.0,
    ]


def test_an_error_may_stretch_its_wait_over_the_longest() -> None:
    assert waits(
        down(delay_multiplier=10.0), min_retry_delay=3.0, max_retry_delay=5.0
    ) == [0.0, 30.0]


def test_what_the_vendor_asks_is_the_least() -> None:
    assert waits(down(retry_after=9.0), down(retry_after=0.5)) == [0.0, 9.0, 2.0]


def test_waits_are_spread_but_never_below_what_was_asked() -> None:
    plain = [
        waits(down(), retry_jitter=True, min_retry_delay=10.0)[1] for _ in range(50)
    ]
    asked = [waits(down(retry_after=40.0), retry_jitter=True)[1] for _ in range(50)]

    assert all(5.0 <= wait <= 15.0 for wait in plain)
    assert len(set(plain)) > 1
    assert all(40.0 <= wait <= 44.0 for wait in asked)
    assert len(set(asked)) > 1


def test_the_last_error_is_raised_when_the_tries_are_used_up() -> None:
    errors = [down(), down(), down()]

    with pytest.raises(ProviderUnavailableError) as raised:
        waits(*errors, max_retries=2)

    assert raised.value is errors[-1]


def test_what_will_not_pass_is_raised_at_once() -> None:
    with pytest.raises(InvalidRequestError):
        waits(InvalidRequestError("no"))
    with pytest.raises(RateLimitError):
        waits(RateLimitError("no", retryable=False))


def test_wait_longer_than_longest_is_error_with_figure() -> None:
    with pytest.raises(
        RateLimitError,
        match=r"it asks to wait 86,400 s, longer than `max_retry_delay` \(60 s\)",
    ) as raised:
        waits(RateLimitError("slow down", retry_after=86_400.0))

    assert raised.value.retryable


def test_a_try_knows_why_the_one_before_failed() -> None:
    attempts, error = tries(VendorConfig()), down()
    first = next(attempts)
    first.fail(error)
    second = next(attempts)

    assert (first.number, first.error) == (1, None)
    assert (second.number, second.error) == (2, error)
