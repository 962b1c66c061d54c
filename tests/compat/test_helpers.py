"""The original's small helpers: retrying, redacting and truncating, reading what went wrong."""

from __future__ import annotations

import pytest
from amplifier_core import events, llm_errors
from amplifier_core.display import DisplaySystem
from amplifier_core.llm_errors import LLMError, RateLimitError
from amplifier_core.module_sources import ModuleNotFoundError as NotFound
from amplifier_core.utils import redact_secrets, truncate_values
from amplifier_core.utils.retry import RetryConfig, retry_with_backoff
from amplifier_core.utils.truncate import redact_secrets as same

from amplifier.testing import MockDisplaySystem, VirtualClock


class Flaky:
    """Fails as often as it is told to, and then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)

    async def __call__(self) -> str:
        if self.errors:
            raise self.errors.pop(0)
        return "done"


async def test_what_is_retryable_is_retried(virtual_clock: VirtualClock) -> None:
    seen: list[tuple[int, float]] = []

    async def note(attempt: int, delay: float, error: LLMError) -> None:
        seen.append((attempt, delay))

    config = RetryConfig(max_retries=3, initial_delay=1.0, max_delay=3.0, jitter=False)
    flaky = Flaky(
        RateLimitError("a"),
        RateLimitError("b", retry_after=7.0),
        RateLimitError("c", delay_multiplier=2.0),
    )

    assert await retry_with_backoff(flaky, config, on_retry=note) == "done"
    assert seen == [(1, 1.0), (2, 7.0), (3, 6.0)]


async def test_what_is_not_retryable_is_raised(virtual_clock: VirtualClock) -> None:
    with pytest.raises(LLMError, match="no"):
        await retry_with_backoff(Flaky(LLMError("no")))
    with pytest.raises(ValueError, match="other"):
        await retry_with_backoff(Flaky(ValueError("other")))


async def test_retrying_ends(virtual_clock: VirtualClock) -> None:
    attempts: list[int] = []
    errors = [RateLimitError(str(number)) for number in range(9)]
    config = RetryConfig(max_retries=2, honor_retry_after=False)

    with pytest.raises(RateLimitError, match="2"):
        await retry_with_backoff(
            Flaky(*errors), config, on_retry=lambda number, *_: attempts.append(number)
        )
    assert attempts == [1, 2]


def test_older_spellings_of_the_configuration() -> None:
    with pytest.warns(DeprecationWarning, match="min_delay"):
        config = RetryConfig(min_delay=2.0)
    with pytest.warns(DeprecationWarning, match="backoff_multiplier"):
        other = RetryConfig(backoff_multiplier=3.0, jitter=0.5)

    assert (config.initial_delay, config.min_delay, config.jitter) == (2.0, 2.0, 0.2)
    assert (other.backoff_factor, other.backoff_multiplier) == (3.0, 3.0)
    assert 0.5 <= other.delay(0, LLMError("x")) <= 1.5


def test_secrets_go_by_their_keys() -> None:
    value = {"API_KEY": "x", "in": [{"token": 1, "b": 2}], 3: "kept", "tokens": 5}

    assert redact_secrets(value) == {
        "API_KEY": "[REDACTED]",
        "in": [{"token": "[REDACTED]", "b": 2}],
        3: "kept",
        "tokens": 5,
    }
    assert same is redact_secrets


def test_long_texts_are_shortened() -> None:
    shown = truncate_values({"a": ["x" * 200], "b": 1, "c": "short"})

    assert shown["a"][0].startswith("x" * 180)
    assert "20" in shown["a"][0]
    assert (shown["b"], shown["c"]) == (1, "short")


@pytest.mark.parametrize(
    ("message", "status", "name"),
    [
        ("", 401, "AuthenticationError"),
        ("", 403, "AccessDeniedError"),
        ("", 404, "NotFoundError"),
        ("", 413, "ContextLengthError"),
        ("", 429, "RateLimitError"),
        ("", 503, "ProviderUnavailableError"),
        ("Rate limit reached", None, "RateLimitError"),
        ("blocked by safety", 400, "ContentFilterError"),
        ("odd", 422, "InvalidRequestError"),
        ("odd", None, "LLMError"),
    ],
)
def test_a_vendors_words_mean_an_error(
    message: str, status: int | None, name: str
) -> None:
    found = llm_errors.classify_error_message(message, status_code=status)

    assert found.__name__ == name


def test_errors_say_what_loops_ask() -> None:
    error = RateLimitError(
        "slow", provider="p", model="m", retry_after=2, status_code=429
    )

    assert isinstance(error, LLMError)
    assert (error.retryable, error.status_code, error.retry_after) == (True, 429, 2)
    assert not llm_errors.QuotaExceededError("none").retryable
    assert issubclass(NotFound, ValueError)


def test_the_events_are_the_originals() -> None:
    assert len(events.ALL_EVENTS) == 43
    assert events.TOOL_PRE == "tool:pre"
    assert "module:load_failed" in events.ALL_EVENTS
    assert isinstance(events.ALL_EVENTS, list)
    assert callable(getattr(MockDisplaySystem(), "show_message", None))
    assert hasattr(DisplaySystem, "show_message")
