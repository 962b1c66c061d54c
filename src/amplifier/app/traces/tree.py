"""The tree of a trace's steps: which of them a record is about, by the ids that it carries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final

import attrs

from amplifier.app.traces.model import Kind, Row, Section, Status
from amplifier.app.traces.texts import words
from amplifier_kit.logs.records import LogRecord

__all__ = ["StepTree", "TraceStep", "rows_of"]

_OF_A_TURN: Final = frozenset(
    {
        "execution:end",
        "execution:start",
        "prompt:complete",
        "prompt:submit",
        "session:resume",
        "session:start",
    }
)
"""Events whose span is the turn itself."""

_DECIDED_ABOUT: Final[Mapping[str, Kind]] = {"tool": "tool", "provider": "model"}
"""What decisions are about, by how the names of their events begin."""


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


@attrs.define(eq=False)
class StepTree:
    """Steps, the outermost in `tops`; `now` is the time of the record that is read, in seconds since the epoch."""

    now: float = 0.0
    tops: list[TraceStep] = attrs.field(factory=list)
    _turns: dict[tuple[str, str], TraceStep] = attrs.field(factory=dict)
    _iterations: dict[tuple[str, str, int], TraceStep] = attrs.field(factory=dict)
    _spans: dict[str, TraceStep] = attrs.field(factory=dict)
    _turn_spans: set[str] = attrs.field(factory=set)
    _counts: Counter[str] = attrs.field(factory=Counter)

    def turn(self, record: LogRecord) -> TraceStep | None:
        """Return the turn of a record; one that a tool call made stands inside of that."""
        if record.turn_id is None:
            return None
        if record.event in _OF_A_TURN and record.span_id is not None:
            self._turn_spans.add(record.span_id)
        key = (record.session_id, record.turn_id)
        if key not in self._turns:
            self._counts[record.session_id] += 1
            turn = self._turns[key] = self.make("turn", record)
            above, who = None, "Turn"
            if record.parent_id is not None:
                above = self._spans.get(record.parent_span_id or "")
                who = f"{words(record.session_id.rpartition('_')[2], 40)}, turn"
            turn.name = f"{who} {self._counts[record.session_id]}"
            self.place(turn, above)
        return self._turns[key]

    def around(self, record: LogRecord) -> TraceStep | None:
        """Return what a step of a record stands in: its iteration, else its turn."""
        turn = self.turn(record)
        if turn is None or record.iteration is None:
            return turn
        key = (record.session_id, record.turn_id or "", record.iteration)
        if key not in self._iterations:
            step = self._iterations[key] = self.make("iteration", record)
            step.name, step.status = f"Iteration {record.iteration + 1}", "ok"
            self.place(step, turn)
        return self._iterations[key]

    def span(self, record: LogRecord, kind: Kind) -> TraceStep:
        """Return the step that a record is about, made when it is heard of first."""
        known = self.known(record)
        if known is not None and known.kind == kind:
            return known
        step = self.make(kind, record)
        self.place(step, self.around(record))
        if record.span_id is not None:
            self._spans[record.span_id] = step
        return step

    def known(self, record: LogRecord) -> TraceStep | None:
        """Return the call of a model or a tool that a record is about, if it was heard of."""
        return self._spans.get(record.span_id or "")

    def decided_about(self, record: LogRecord) -> TraceStep | None:
        """Return the step that a hook's decision is about, made when it is heard of here first; `None` for a turn."""
        known, span = self.known(record), record.span_id
        if known is not None or span is None or span in self._turn_spans:
            return known
        kind = _DECIDED_ABOUT.get(str(record.data.get("hook_event")).partition(":")[0])
        if kind is None:
            return None
        return self.span(record, kind)

    def make(self, kind: Kind, record: LogRecord) -> TraceStep:
        """Make a step that begins now and stands nowhere yet."""
        return TraceStep(kind, words(record.session_id), self.now, latest=self.now)

    def place(self, step: TraceStep, above: TraceStep | None) -> None:
        """Put a step inside of another, or outermost."""
        if above is None:
            self.tops.append(step)
        else:
            above.put(step)
        step.reach(self.now)
