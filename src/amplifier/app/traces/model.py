"""What a trace page shows, as values: rows in the order of a tree, messages, calls of models, totals."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Literal, Self, TypeAlias

import attrs

__all__ = [
    "Compaction",
    "Kind",
    "Row",
    "Said",
    "Section",
    "SessionTrace",
    "Status",
    "TraceTotals",
    "TracedModelCall",
]

Kind: TypeAlias = Literal["turn", "iteration", "model", "tool", "decision", "note"]
"""What a row is; a note is any other event."""

Status: TypeAlias = Literal[
    "ok", "failed", "denied", "cancelled", "unfinished", "warning"
]
"""How it ended; a note is `ok`, `warning` or `failed` by its level."""


@attrs.frozen
class Section:
    """One part of a row's details: a title and its text."""

    title: str
    text: str


@attrs.frozen(kw_only=True)
class Row:
    """One step or event; the rows behind it with a greater depth are inside of it. Times are in seconds.

    Args:
        kind: what it is.
        depth: 0 for the outermost.
        name: its label.
        hint: a few words more.
        start: when it began, since the trace's beginning.
        end: when it ended, likewise; never before `start`.
        status: how it ended.
        input_tokens: what a model read, in it and in what it holds.
        output_tokens: what a model wrote, likewise.
        cost: US dollars, likewise; `None` where unknown.
        sections: what is known of it.
        session: the session that it belongs to.
    """

    kind: Kind
    depth: int
    name: str
    hint: str
    start: float
    end: float
    status: Status
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None
    sections: tuple[Section, ...] = ()
    session: str = ""


@attrs.frozen(kw_only=True)
class Said:
    """A message of the conversation, or a place where it was shortened: a section of a row, by their numbers."""

    role: str
    row: int
    section: int


@attrs.frozen(kw_only=True)
class TracedModelCall:
    """One answered call of a model: when it was answered, in seconds since the beginning, and what it used."""

    at: float
    model: str
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None


@attrs.frozen(kw_only=True)
class Compaction:
    """A view that was shortened: how many calls of models were answered before it, and by how much."""

    calls: int
    text: str


@attrs.frozen(kw_only=True)
class TraceTotals:
    """The figures of a trace; `problems` are rows that did not end well."""

    turns: int = 0
    calls: int = 0
    tools: int = 0
    decisions: int = 0
    problems: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None
    seconds: float = 0.0

    @classmethod
    def of(cls, rows: Sequence[Row], calls: Sequence[TracedModelCall]) -> Self:
        """Add up what rows and calls of models tell."""
        costs = [call.cost for call in calls if call.cost is not None]
        return cls(
            turns=sum(row.kind == "turn" and row.depth == 0 for row in rows),
            calls=sum(row.kind == "model" for row in rows),
            tools=sum(row.kind == "tool" for row in rows),
            decisions=sum(row.kind == "decision" for row in rows),
            problems=sum(
                row.status in ("failed", "denied", "warning", "unfinished")
                for row in rows
            ),
            input_tokens=sum(call.input_tokens for call in calls),
            output_tokens=sum(call.output_tokens for call in calls),
            cost=sum(costs, Decimal(0)) if costs else None,
            seconds=max((row.end for row in rows), default=0.0),
        )


@attrs.frozen(kw_only=True)
class SessionTrace:
    """All that a page shows of a session and of those it made.

    Args:
        session_id: the session.
        began: the time of its first record, as the log writes it.
        title: how its first prompt begins.
        sessions: how many sessions there are.
        records: how many records were read.
        damaged: how many lines of the logs were no records.
    """

    session_id: str
    began: str = ""
    title: str = ""
    sessions: int = 1
    records: int = 0
    damaged: int = 0
    rows: tuple[Row, ...] = ()
    said: tuple[Said, ...] = ()
    calls: tuple[TracedModelCall, ...] = ()
    compactions: tuple[Compaction, ...] = ()
    totals: TraceTotals = TraceTotals()
