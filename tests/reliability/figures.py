"""Figures that the reliability runs reach, shown behind the tests' own report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import pytest

__all__ = ["note_figure", "note_seconds", "percentile", "write_figures"]

_SECONDS: Final[dict[str, list[float]]] = defaultdict(list)
_FIGURES: Final[dict[str, str]] = {}


def note_seconds(what: str, seconds: float) -> None:
    """Keep how long something took."""
    _SECONDS[what].append(seconds)


def note_figure(what: str, text: str) -> None:
    """Keep a figure as it shall be shown."""
    _FIGURES[what] = text


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def write_figures(reporter: pytest.TerminalReporter) -> None:
    """Show what was kept, if anything was."""
    if not _SECONDS and not _FIGURES:
        return
    reporter.section("reliability figures")
    for what, seconds in sorted(_SECONDS.items()):
        middle, late, last = (
            1000 * percentile(seconds, share) for share in (0.5, 0.99, 1.0)
        )
        reporter.write_line(
            f"{what}: {len(seconds)} runs, p50 {middle:.0f} ms, p99 {late:.0f} ms, longest {last:.0f} ms"
        )
    for what, text in sorted(_FIGURES.items()):
        reporter.write_line(f"{what}: {text}")
