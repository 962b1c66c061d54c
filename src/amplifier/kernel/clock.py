"""Wall-clock time as events carry it."""

from __future__ import annotations

from functools import lru_cache
from time import gmtime, strftime, time

__all__ = ["timestamp"]

_last: tuple[float, float, str] = (0.0, 0.0, "")
"""From when to when one text holds, and the text: a busy session emits many events in one millisecond."""


def timestamp() -> str:
    """Return the time now as ISO 8601 in UTC, to the millisecond.

    Events are ordered by their spans and their place in the log, never by this.
    """
    global _last  # noqa: PLW0603  # a look-up in a cache of functools takes as long as the rest
    now = time()
    begin, end, text = _last
    if begin <= now < end:
        return text
    seconds, rest = divmod(int(now * 1_000), 1_000)
    text = f"{_seconds(seconds)}.{rest:03d}+00:00"
    _last = seconds + rest / 1_000, seconds + (rest + 1) / 1_000, text
    return text


@lru_cache(maxsize=2)
def _seconds(seconds: int) -> str:
    return strftime("%Y-%m-%dT%H:%M:%S", gmtime(seconds))
