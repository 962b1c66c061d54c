"""Tables of text, and figures as they stand in them."""

from __future__ import annotations

from collections.abc import Sequence

from amplifier.testing.evals.intervals import Interval
from amplifier_sdk.legible import escaped, shortened

__all__ = ["percent", "percents", "range_text", "text_table"]

_MAX_CELL = 80


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write rows under their heads; what a terminal would obey is escaped, and long cells are shortened."""
    cells = [tuple(heads), *(tuple(map(_cell, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [_line(row, widths) for row in cells]
    lines.insert(1, _line(["-" * width for width in widths], widths))
    return "\n".join(lines)


def _cell(text: str) -> str:
    return shortened(escaped(" ".join(text.split()), ""), _MAX_CELL)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
    return "  ".join(padded).rstrip()


def percent(rate: float) -> str:
    """Write a rate: `83.3 %`."""
    return f"{rate:.1%}".replace("%", " %")


def percents(interval: Interval | None) -> str:
    """Write an interval of a rate: `43.6 % to 97.0 %`."""
    if interval is None:
        return "unknown"
    return f"{percent(interval.low)} to {percent(interval.high)}"


def range_text(interval: Interval | None) -> str:
    """Write an interval of a mean: `0.1 to 0.3`."""
    if interval is None:
        return "unknown"
    return f"{interval.low:.4g} to {interval.high:.4g}"
