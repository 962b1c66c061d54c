"""What the headers of a vendor's answer say: when to ask again, what is left of its limits, which request it was.

And what a header can say at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Final

import attrs

__all__ = [
    "RateLimit",
    "is_header_value",
    "rate_limits",
    "request_id",
    "retry_after",
    "should_retry",
]

_REQUEST_IDS: Final = ("request-id", "x-request-id", "apim-request-id", "cf-ray")
_MAX_DIGITS: Final = 15
_REMAINING: Final = re.compile(
    r"(?:anthropic|x)-ratelimit-(?:(.+)-remaining|remaining(?:-(.+))?)"
)


@attrs.frozen(kw_only=True)
class RateLimit:
    """One of a vendor's limits: of what it is, how much it allows, what is left, and when it begins anew."""

    dimension: str
    limit: int
    remaining: int
    reset: str | None = None


def is_header_value(text: str) -> bool:
    """Tell whether a text can be the value of a header."""
    return text.isascii() and text.isprintable()


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the vendor asks to wait: from 0, or `None` when it says nothing that can be read.

    Args:
        headers: names in lower case. `retry-after-ms` goes before `retry-after`, which is seconds or a date.
    """
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _seconds(text)
    if seconds is not None or text is None:
        return seconds
    # takes long to import, and few vendors send dates
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


def _seconds(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    # `float` reads "nan" and "inf" as well
    if isfinite(number) and number >= 0:
        return number
    return None


def should_retry(headers: Mapping[str, str]) -> bool | None:
    """Return whether the vendor wants a retry; `None` when it does not say."""
    return {"true": True, "false": False}.get(headers.get("x-should-retry", "").lower())


def request_id(headers: Mapping[str, str]) -> str | None:
    """Return the vendor's own number of the request, which its support asks for."""
    return next((headers[name] for name in _REQUEST_IDS if name in headers), None)


def rate_limits(headers: Mapping[str, str]) -> Iterator[RateLimit]:
    """Yield the limits that the headers tell of, in their order."""
    for name, value in headers.items():
        match = _REMAINING.fullmatch(name)
        limit = _figure(headers.get(name.replace("remaining", "limit")))
        remaining = _figure(value)
        if match and limit is not None and remaining is not None:
            yield RateLimit(
                dimension=match[1] or match[2] or "requests",
                limit=limit,
                remaining=remaining,
                reset=headers.get(name.replace("remaining", "reset")),
            )


def _figure(text: str | None) -> int | None:
    if text is not None and text.isdecimal() and len(text) <= _MAX_DIGITS:
        return int(text)
    return None
