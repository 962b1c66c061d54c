"""Steps: what a trace is put together from while the records are read; each becomes a row in the end."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import attrs

from amplifier.app.traces.model import Kind, Row, Section, Status

__all__ = ["TraceStep", "rows_of"]


@attrs.define(eq=False)
class TraceStep:
    """A step that may still go on; times are seconds since the epoch, `end` is `None` while it has not ended."""

    kind: Kind
    session: str
    start: float
    name: str = ""
    hint: str = ""
    end: float | None = None
    latest: float = 0.0
    status: Status = "unfinished"
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None
    sections: list[Section] = attrs.field(factory=list)
    inside: list[TraceStep] = attrs.field(factory=list)
    above: TraceStep | None = None

    def put(self, step: TraceStep) -> None:
        """Put a step inside of this one."""
        step.above = self
        self.inside.append(step)

    def note(self, title: str, text: str) -> int:
        """Add to the details, unless there is nothing to add or it stands there; return which section it is."""
        section = Section(title, text)
        # Two events of a step often carry the same text, such as a call's arguments.
        if section in self.sections:
            return self.sections.index(section)
        self.sections.append(section)
        return len(self.sections) - 1

    def reach(self, moment: float) -> None:
        """Note that something happened in it, and in what it is in, at a time."""
        step: TraceStep | None = self
        while step is not None:
            step.latest = max(step.latest, moment)
            step = step.above

    def finish(self, moment: float, seconds: float = 0.0) -> None:
        """Note that it ended; `seconds` is how long it took at least."""
        # Clocks may be set back between two records: no step ends before it began.
        self.end = max(moment, self.start, self.start + seconds)
        self.reach(self.end)

    def spend(
        self, input_tokens: int, output_tokens: int, cost: Decimal | None
    ) -> None:
        """Add what a model used, to this step and those that it is in."""
        step: TraceStep | None = self
        while step is not None:
            step.input_tokens += input_tokens
            step.output_tokens += output_tokens
            if cost is not None:
                step.cost = (step.cost or Decimal(0)) + cost
            step = step.above


def rows_of(tops: list[TraceStep], origin: float) -> Iterator[tuple[TraceStep, Row]]:
    """Yield the rows of steps, outermost first, in the order of a tree."""
    # A stack and no recursion: a log may nest steps to any depth.
    waiting = [(step, 0) for step in reversed(tops)]
    while waiting:
        step, depth = waiting.pop()
        yield step, _row(step, depth, origin)
        waiting += [(inner, depth + 1) for inner in reversed(step.inside)]


def _row(step: TraceStep, depth: int, origin: float) -> Row:
    # A step may begin before the first record, by how long that says it took.
    start = max(0.0, step.start - origin)
    end = (step.latest if step.end is None else step.end) - origin
    return Row(
        kind=step.kind,
        depth=depth,
        name=step.name or step.kind,
        hint=step.hint,
        start=start,
        end=max(start, end),
        status=step.status,
        input_tokens=step.input_tokens,
        output_tokens=step.output_tokens,
        cost=step.cost,
        sections=tuple(step.sections),
        session=step.session,
    )
