"""A circuit breaker: a provider that fails again and again is left alone for a while.

Closed, it lets every request pass. After so many failures in a row within a window it opens and lets none
pass. When it has cooled down, one request may try: an answer closes it (its owner forgets it), a failure opens
it again. The clock is the event loop's, which no change of the time of day moves.
"""

from __future__ import annotations

from collections import deque

import anyio
import attrs

__all__ = ["CircuitBreaker"]


@attrs.define(eq=False)
class CircuitBreaker:
    """The breaker of one provider; times are in seconds."""

    failures: int
    window: float
    cooldown: float
    _failed_at: deque[float] = attrs.field(factory=deque)
    _opened_at: float | None = None
    _probing: bool = False

    @property
    def is_open(self) -> bool:
        """Whether no request may pass now; asking changes nothing."""
        return self._opened_at is not None and (self._probing or self.wait > 0)

    @property
    def wait(self) -> float:
        """Seconds until a request may try again; 0 when one may."""
        if self._opened_at is None:
            return 0.0
        return max(0.0, self._opened_at + self.cooldown - anyio.current_time())

    def begin(self) -> None:
        """Note that a request passes; of an open breaker it is the one that tries."""
        self._probing = self._opened_at is not None

    def abandon(self) -> None:
        """Note that the request ended and says nothing of the provider, for example because it was cancelled."""
        self._probing = False

    def fail(self) -> None:
        """Note that the provider failed, which may open the breaker."""
        now = anyio.current_time()
        # the provider had its time to recover: one failure is enough
        if self._probing:
            self._opened_at, self._probing = now, False
            return
        self._failed_at.append(now)
        while self._failed_at[0] < now - self.window:
            self._failed_at.popleft()
        if len(self._failed_at) >= self.failures:
            self._opened_at = now
