"""Retrying what a vendor refused for the moment."""

from __future__ import annotations

import random
import warnings
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TypeVar

import anyio

from amplifier.compat.original.llm_errors import LLMError, classify_error_message

__all__ = ["RetryConfig", "classify_error_message", "retry_with_backoff"]

T = TypeVar("T")

JITTER = 0.2
"""What `RetryConfig.jitter` reads as where there is one."""


class RetryConfig:
    """How often and after how many seconds to retry.

    `min_delay`, `backoff_multiplier` and a number for `jitter` are older spellings.
    """

    def __init__(
        self,
        max_retries: int = 3,
        initial_delay: float | None = None,
        max_delay: float = 60.0,
        backoff_factor: float | None = None,
        jitter: bool | float = True,
        honor_retry_after: bool = True,
        *,
        min_delay: float | None = None,
        backoff_multiplier: float | None = None,
    ) -> None:
        for name, given in (
            ("min_delay", min_delay),
            ("backoff_multiplier", backoff_multiplier),
        ):
            if given is not None:
                warnings.warn(
                    f"RetryConfig({name}=) is the older spelling",
                    DeprecationWarning,
                    stacklevel=2,
                )
        self.max_retries = max_retries
        self.initial_delay: float = _first(initial_delay, min_delay, 1.0)
        self.max_delay = max_delay
        self.backoff_factor: float = _first(backoff_factor, backoff_multiplier, 2.0)
        self.jitter: float = JITTER if jitter else 0.0
        self.honor_retry_after = honor_retry_after

    @property
    def min_delay(self) -> float:
        """The older name of `initial_delay`."""
        return self.initial_delay

    @property
    def backoff_multiplier(self) -> float:
        """The older name of `backoff_factor`."""
        return self.backoff_factor

    def delay(self, attempt: int, error: LLMError) -> float:
        """Return how many seconds to wait before a retry, the first of which is attempt 0."""
        seconds = min(self.initial_delay * self.backoff_factor**attempt, self.max_delay)
        # over the cap if need be: the vendor knows better than the configuration
        seconds *= error.delay_multiplier
        if self.honor_retry_after and error.retry_after is not None:
            seconds = max(seconds, error.retry_after)
        if self.jitter:
            seconds *= random.uniform(0.5, 1.5)  # noqa: S311  # spreads load, protects nothing
        return seconds


def _first(given: float | None, older: float | None, default: float) -> float:
    if given is not None:
        return given
    if older is not None:
        return older
    return default


async def retry_with_backoff(
    operation: Callable[[], Awaitable[T]],
    config: RetryConfig | None = None,
    *,
    on_retry: Callable[[int, float, LLMError], Awaitable[object] | object]
    | None = None,
) -> T:
    """Run an operation, and again while it fails with an `LLMError` that is retryable.

    Args:
        operation: what is run.
        config: how often, and how long to wait.
        on_retry: gets the number of the retry, from 1, the seconds before it and the error.

    Raises:
        LLMError: the last attempt's, or one that is not retryable.
    """
    config = config or RetryConfig()
    attempt = 0
    while True:
        try:
            return await operation()
        except LLMError as error:
            if not error.retryable or attempt >= config.max_retries:
                raise
            delay = config.delay(attempt, error)
            attempt += 1
            if on_retry is not None:
                waiting = on_retry(attempt, delay, error)
                if isawaitable(waiting):
                    await waiting
            await anyio.sleep(delay)
