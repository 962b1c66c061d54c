"""Which failures are retried, how often, and after how long."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import uniform

import attrs
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential,
)

from amplifier_kit.vendors.config import VendorConfig
from amplifier_sdk.errors import LLMError

__all__ = ["Try", "tries"]

_SPREAD: float = 0.5
_SPREAD_OF_ASKED: float = 0.05


@attrs.frozen
class Try:
    """One try.

    Args:
        number: from 1.
        delay: seconds to wait before it; the first has none.
        error: why the try before it failed.
    """

    number: int
    delay: float
    error: LLMError | None
    _state: RetryCallState

    def fail(self, error: LLMError) -> None:
        """Say that it failed; the next try, or the error itself, follows from the iterator."""
        self._state.set_exception((type(error), error, error.__traceback__))


def tries(config: VendorConfig) -> Iterator[Try]:
    """Yield tries as long as one more may help; whoever is content leaves.

    The wait before a try is its receiver's, who can show that it lives, and be cancelled.

    Raises:
        LLMError: the last try's error: it will not pass, its vendor asks for a longer wait than
            `max_retry_delay`, or the tries are used up.
    """
    delays: list[float] = []
    # tenacity decides and counts; the wait is only noted, since its receiver
    # waits
    policy = Retrying(
        sleep=delays.append,
        stop=stop_after_attempt(config.max_retries + 1),
        wait=partial(_delay, config),
        retry=retry_if_exception(partial(_may_pass, config)),
        reraise=True,
    )
    error: LLMError | None = None
    for attempt in policy:
        state = attempt.retry_state
        yield Try(state.attempt_number, delays.pop() if delays else 0.0, error, state)
        # resumed only where it failed: whoever is content leaves
        error = _failure(state)


def _failure(state: RetryCallState) -> LLMError:
    assert state.outcome is not None
    error = state.outcome.exception()
    assert isinstance(error, LLMError)
    return error


def _may_pass(config: VendorConfig, error: BaseException) -> bool:
    if not isinstance(error, LLMError) or not error.retryable:
        return False
    # a longer wait is the person's to decide on, so it is reported instead
    if error.retry_after is None or error.retry_after <= config.max_retry_delay:
        return True
    asked = f"it asks to wait {error.retry_after:,.0f} s, longer than `max_retry_delay` ({config.max_retry_delay:g} s)"
    error.args = (f"{error}; {asked}",)
    return False


def _delay(config: VendorConfig, state: RetryCallState) -> float:
    """Return the wait: doubled each time, spread, capped, stretched as the error says, never below what was asked."""
    error = _failure(state)
    spread = 0.0
    if config.retry_jitter:
        spread = _SPREAD
    base = wait_exponential(
        multiplier=config.min_retry_delay, max=config.max_retry_delay
    )(state)
    delay = (
        # spread, or all clients of a vendor that was down come back at the same
        # moment
        min(base * uniform(1 - spread, 1 + spread), config.max_retry_delay)  # noqa: S311  # no secret
        * error.delay_multiplier
    )
    asked = error.retry_after
    if asked is None or delay >= asked:
        return delay
    return asked * uniform(1, 1 + _SPREAD_OF_ASKED) if config.retry_jitter else asked  # noqa: S311  # no secret
