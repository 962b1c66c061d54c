"""What is done again and again while a store does not answer: a line of the log, and pauses that grow."""

from __future__ import annotations

from math import inf
from typing import Final

import anyio
import attrs

from amplifier.kernel.reports import report
from amplifier_sdk.errors import StoreUnavailableError

__all__ = ["UNAVAILABLE", "Retries", "problem_of"]

UNAVAILABLE: Final = (StoreUnavailableError, OSError)
"""What a store raises, on a server or on a disk, that does not answer now and may later."""

_AGAIN: Final = 60.0
"""Seconds after which a failure that lasts is reported again."""


@attrs.define(eq=False)
class Retries:
    """Attempts of one thing. Failures in a row are reported once a minute, and the pauses between them get longer.

    Args:
        event: what the log calls a failure.
        pause: seconds between the first failure and the next attempt.
        longest: seconds between two attempts, at most.
    """

    event: str
    pause: float
    longest: float
    _next: float | None = None
    _reported: float = -inf

    async def wait(self, error: Exception, **fields: object) -> None:
        """Report a failure, and wait until it is time for the next attempt."""
        self.report(error, **fields)
        pause = self.pause if self._next is None else self._next
        self._next = min(2 * pause, self.longest)
        await anyio.sleep(pause)

    def report(self, error: Exception, **fields: object) -> None:
        """Report a failure, unless one of this row was reported within the last minute."""
        now = anyio.current_time()
        if now - self._reported >= _AGAIN:
            self._reported = now
            report(self.event, problem=problem_of(error), **fields)

    def succeed(self) -> None:
        """Note that an attempt succeeded: the next failure is the first one of a row."""
        self._next, self._reported = None, -inf


def problem_of(error: BaseException) -> str:
    """Say in one line what went wrong; where it did is of no use with a store that does not answer."""
    return " ".join(f"{type(error).__name__}: {error}".split())
