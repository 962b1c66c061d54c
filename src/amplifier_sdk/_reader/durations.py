"""Durations as ISO 8601 writes them: `PT1H30M`, `P2DT0.5S`, `P3W`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

__all__ = ["duration_text", "read_duration"]

_NUMBER: Final = r"\d{1,12}(?:\.\d{1,6})?"
_FORM: Final = (
    rf"(?P<sign>-?)P(?=[\dT])(?:(?P<weeks>{_NUMBER})W)?(?:(?P<days>{_NUMBER})D)?"
    rf"(?:T(?=\d)(?:(?P<hours>{_NUMBER})H)?(?:(?P<minutes>{_NUMBER})M)?(?:(?P<seconds>{_NUMBER})S)?)?"
)


def read_duration(text: str) -> timedelta:
    """Read a duration; years and months have no fixed length and are refused.

    Raises:
        ValueError: the text is no duration, or a longer one than Python holds.
    """
    found = re.fullmatch(_FORM, text)
    if found is None:
        raise ValueError(f"{text!r:.60} is no ISO 8601 duration")
    parts = {
        unit: float(number)
        for unit, number in found.groupdict().items()
        if number and unit != "sign"
    }
    try:
        duration = timedelta(**parts)
    except OverflowError as error:
        raise ValueError(str(error)) from error
    if found["sign"]:
        return -duration
    return duration


def duration_text(duration: timedelta) -> str:
    """Write a duration in days and seconds; `read_duration` reads it back exactly."""
    sign = ""
    if duration < timedelta():
        sign = "-"
    duration = abs(duration)
    # in digits and no float, which would not read back exactly
    fraction = ""
    if duration.microseconds:
        fraction = f".{duration.microseconds:06}".rstrip("0")
    days = ""
    if duration.days:
        days = f"{duration.days}D"
    seconds = ""
    if duration.seconds or fraction or not days:
        seconds = f"T{duration.seconds}{fraction}S"
    return f"{sign}P{days}{seconds}"
