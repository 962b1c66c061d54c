"""Records of a log as lines for a person: when, how bad, which event, and what it carries."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

import attrs
import click

from amplifier.app.logs.statistics import (
    HookCounts,
    LogStatistics,
    ProviderCounts,
    ToolCounts,
)
from amplifier.app.logs.summaries import summary_of
from amplifier.app.text.figures import duration_text
from amplifier.cli._tables import columns
from amplifier_kit.logs.records import LogLevel, LogRecord
from amplifier_kit.terminal import cut, has_colour, one_line

__all__ = ["LogLines", "statistics_lines"]

_COLOURS: Final[Mapping[LogLevel, str | None]] = {
    "debug": None,
    "info": None,
    "warning": "yellow",
    "error": "red",
}
_NAME: Final = 21
_SESSION: Final = 8
_LONGEST: Final = 2_000
"""Columns of a line that no terminal shows."""


@attrs.frozen(kw_only=True)
class LogLines:
    """Writes records; on a terminal each fits its line, with the local time, and elsewhere it has the time of the log.

    Args:
        is_terminal: whether a terminal shows them.
        has_colour: whether they may have colours.
        width: how many columns there are.
        has_sessions: whether each names its session.
    """

    is_terminal: bool = False
    has_colour: bool = False
    width: int = _LONGEST
    has_sessions: bool = False

    @classmethod
    def standard(cls, *, has_sessions: bool) -> LogLines:
        """Write for standard output as it is."""
        is_terminal = sys.stdout.isatty()
        return cls(
            is_terminal=is_terminal,
            has_colour=has_colour(sys.stdout),
            width=shutil.get_terminal_size().columns if is_terminal else _LONGEST,
            has_sessions=has_sessions,
        )

    def line(self, record: LogRecord) -> str:
        """Write one record as one line."""
        if self.is_terminal:
            when = _clock(record.ts)
        else:
            when = one_line(record.ts, 32)
        parts = [(when, None), (f"{record.level.upper():<7}", _COLOURS[record.level])]
        if self.has_sessions:
            parts.append(
                (f"{one_line(record.session_id, 200)[-_SESSION:]:<{_SESSION}}", None)
            )
        parts.append((f"{one_line(record.event, 60):<{_NAME}}", "cyan"))
        head = "  ".join(text for text, _ in parts)
        # The width is that of the plain text: escapes of colours take no columns.
        rest = one_line(summary_of(record), max(10, self.width - len(head) - 2))
        if not self.has_colour:
            return cut(f"{head}  {rest}".rstrip(), self.width)
        dim, *others = parts
        styled = [
            click.style(dim[0], dim=True),
            *(click.style(text, fg=colour) for text, colour in others),
        ]
        return "  ".join([*styled, click.style(rest, fg=_COLOURS[record.level])])


def _clock(ts: str) -> str:
    try:
        # A damaged log may have any text for a time, also a year that has no local one.
        moment = datetime.fromisoformat(ts).astimezone()
    except (ValueError, OverflowError):
        return one_line(ts, 12)
    return f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03d}"


def statistics_lines(found: LogStatistics) -> Iterator[str]:
    """Write statistics as tables, each below an empty line but the first."""
    levels = ", ".join(
        f"{count} {level}"
        for level, count in found.levels.items()
        if level in ("warning", "error")
    )
    yield (
        f"{found.records} records of {len(found.turns)} turns in {len(found.sessions)} sessions"
        + (f" ({levels})" if levels else "")
    )
    if found.first is not None and found.last is not None:
        yield f"from {one_line(found.first, 32)} to {one_line(found.last, 32)}"
    yield from _table(
        (
            "PROVIDER",
            "CALLS",
            "ERRORS",
            "RETRIES",
            "INPUT",
            "OUTPUT",
            "COST USD",
            "TIME",
        ),
        [(name, *_provider_cells(counts)) for name, counts in found.providers.items()],
    )
    yield from _table(
        ("TOOL", "CALLS", "FAILED", "ERRORS", "TIME"),
        [(name, *_tool_cells(counts)) for name, counts in found.tools.items()],
    )
    yield from _table(
        ("HOOK", "TIME", "DECISIONS"),
        [(name, *_hook_cells(counts)) for name, counts in found.hooks.items()],
    )
    yield from _table(
        ("EVENT", "COUNT"),
        [(name, str(count)) for name, count in found.events.most_common()],
    )


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield from columns([head, *((one_line(name, 40), *cells) for name, *cells in rows)])


def _provider_cells(counts: ProviderCounts) -> tuple[str, ...]:
    if counts.cost_usd is None:
        cost = ""
    else:
        cost = str(counts.cost_usd)
    numbers = (
        counts.calls,
        counts.errors,
        counts.retries,
        counts.input_tokens,
        counts.output_tokens,
    )
    return (*map(str, numbers), cost, duration_text(counts.seconds))


def _tool_cells(counts: ToolCounts) -> tuple[str, ...]:
    return (
        *map(str, (counts.calls, counts.failures, counts.errors)),
        duration_text(counts.seconds),
    )


def _hook_cells(counts: HookCounts) -> tuple[str, ...]:
    decisions = ", ".join(
        f"{count} {one_line(action, 20)}"
        for action, count in counts.decisions.most_common()
    )
    return (duration_text(counts.seconds), decisions)
