"""Wall-clock time as events carry it."""

from __future__ import annotations

from functools import lru_cache
from time import gmtime, strftime, time_ns

__all__ = ["timestamp"]

NANOSECONDS = 1_000_000_000


def timestamp() -> str:
    """Return the time now as ISO 8601 in UTC with microseconds.

    The seconds are written once a second: an event with a handler happens several times a millisecond.
    """
    seconds, rest = divmod(time_ns(), NANOSECONDS)
    return f"{_seconds(seconds)}.{rest // 1000:06d}+00:00"


@lru_cache(maxsize=2)
def _seconds(seconds: int) -> str:
    return strftime("%Y-%m-%dT%H:%M:%S", gmtime(seconds))
