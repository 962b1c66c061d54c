"""A row of the table: what was measured, against which bar."""

from __future__ import annotations

from typing import TypedDict

__all__ = ["Row", "bar", "figure"]


class Row(TypedDict):
    """One measured figure; `bar` is the most it may be, `None` where there is no bar."""

    what: str
    measured: float
    unit: str
    bar: float | None
    detail: str


def bar(
    what: str, measured: float, limit: float, detail: str = "", *, unit: str = "×"
) -> Row:
    """Make a row that a bar is held against."""
    return Row(what=what, measured=measured, unit=unit, bar=limit, detail=detail)


def figure(what: str, measured: float, detail: str = "", *, unit: str = "×") -> Row:
    """Make a row that is only reported."""
    return Row(what=what, measured=measured, unit=unit, bar=None, detail=detail)
