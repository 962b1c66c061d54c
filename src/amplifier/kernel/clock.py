"""Wall-clock time as events carry it."""

from __future__ import annotations

from functools import lru_cache
from time import gmtime, strftime, time_ns

__all__ = ["timestamp"]

_last: tuple[int, str] = (0, "")
"""The millisecond that was written last, and its text: a busy session emits many events in one."""


def timestamp() -> str:
    """Return the time now as ISO 8601 in UTC, to the millisecond.

    Events are ordered by their spans and their place in the log, never by this.
    """
    global _last  # noqa: PLW0603  # a look-up in a cache of functools takes as long as the rest
    now = time_ns() // 1_000_000
    last, text = _last
    if now != last:
        seconds, rest = divmod(now, 1_000)
        text = f"{_seconds(seconds)}.{rest:03d}+00:00"
        _last = now, text
    return text


@lru_cache(maxsize=2)
def _seconds(seconds: int) -> str:
    return strftime("%Y-%m-%dT%H:%M:%S", gmtime(seconds))
