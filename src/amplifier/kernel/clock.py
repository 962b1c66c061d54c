"""Wall-clock time as events carry it."""

from __future__ import annotations

from functools import lru_cache
from time import gmtime, strftime, time_ns

__all__ = ["timestamp"]


def timestamp() -> str:
    """Return the time now as ISO 8601 in UTC, to the millisecond.

    Each millisecond is written once: a busy session emits many events in one. Events are ordered by their
    spans and their place in the log, never by this.
    """
    return _text(time_ns() // 1_000_000)


@lru_cache(maxsize=2)
def _text(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1_000)
    return f"{strftime('%Y-%m-%dT%H:%M:%S', gmtime(seconds))}.{rest:03d}+00:00"
