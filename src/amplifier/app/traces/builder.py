"""Building a trace of records: a pure function from what the log holds to what the page shows.

Records come in the order of time, of a session and of those it made. Whatever is missing, doubled, in the wrong order
or of a strange form costs its own place in the picture and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import attrs

from amplifier.app.logs.statistics import amount, cost_of, seconds_of
from amplifier.app.logs.summaries import (
    decision_words,
    message_of,
    result_text,
    summary_of,
    text_of,
)
from amplifier.app.traces.model import (
    Compaction,
    Said,
    SessionTrace,
    Status,
    TracedModelCall,
    TraceTotals,
)
from amplifier.app.traces.texts import Texts, answer_sections, arguments_words, words
from amplifier.app.traces.tree import StepTree, TraceStep, rows_of
from amplifier_kit.logs.records import LogRecord
from amplifier_kit.open_data import as_object
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["build_trace"]

_INSIDE_OTHERS: Final = frozenset(
    {
        "content_block:delta",
        "content_block:end",
        "content_block:start",
        "llm:request",
        "llm:response",
        "orchestrator:complete",
        "orchestrator:stopping",
        "session:end",
        "session:resume",
        "session:start",
        "thinking:delta",
        "thinking:final",
    }
)
"""Events that tell nothing which another row does not show."""

_OF_TURNS: Final = frozenset(
    {"execution:end", "execution:start", "prompt:complete", "prompt:submit"}
)
_COMPACTIONS: Final = frozenset({"context:compaction", "context:post_compact"})


def build_trace(records: Iterable[LogRecord], session_id: str) -> SessionTrace:
    """Put a session's records together as a trace.

    Args:
        records: its records and those of the sessions it made, by time.
        session_id: the session.
    """
    builder = _Builder()
    for record in records:
        builder.add(record)
    return builder.finish(session_id)


@attrs.define(eq=False)
class _Builder:
    """What was put together so far; steps are known by the ids that records carry."""

    texts: Texts = attrs.field(factory=Texts)
    count: int = 0
    began: str = ""
    title: str = ""
    tree: StepTree = attrs.field(factory=StepTree)
    said: list[tuple[str, TraceStep, int]] = attrs.field(factory=list)
    calls: list[TracedModelCall] = attrs.field(factory=list)
    compactions: list[Compaction] = attrs.field(factory=list)
    sessions: set[str] = attrs.field(factory=set)
    origin: float | None = None

    def add(self, record: LogRecord) -> None:
        """Take in the next record."""
        self.count += 1
        now = self.tree.now = _moment(record.ts, self.tree.now)
        if self.origin is None:
            self.origin, self.began = now, record.ts
        # The logs of several sessions, and a clock that was set back, give earlier times.
        self.origin = min(self.origin, now)
        self.sessions.add(record.session_id)
        turn = self.tree.turn(record)
        if turn is not None:
            turn.reach(now)
        match record.event:
            case event if event in _OF_TURNS and turn is not None:
                self._report_turn(turn, record)
            case "provider:request" | "provider:response" | "provider:error":
                self._report_call(record)
            case "tool:pre" | "tool:post" | "tool:error":
                self._report_tool(record)
            case "hook:decided":
                self._report_decision(record)
            case event if event not in _INSIDE_OTHERS:
                self._report_note(record)
            case _:
                pass

    def finish(self, session_id: str) -> SessionTrace:
        """Return the trace."""
        origin = self.origin or 0.0
        pairs = list(rows_of(self.tree.tops, origin))
        numbers = {id(step): number for number, (step, _) in enumerate(pairs)}
        rows = tuple(row for _, row in pairs)
        return SessionTrace(
            session_id=words(session_id),
            began=words(self.began, 40),
            title=self.title,
            sessions=len(self.sessions),
            records=self.count,
            rows=rows,
            said=tuple(
                Said(role=role, row=numbers[id(step)], section=at)
                for role, step, at in self.said
            ),
            calls=tuple(
                attrs.evolve(call, at=max(0.0, call.at - origin)) for call in self.calls
            ),
            compactions=tuple(self.compactions),
            totals=TraceTotals.of(rows, self.calls),
        )

    def _report_turn(self, turn: TraceStep, record: LogRecord) -> None:
        data = record.data
        if record.event in ("execution:start", "prompt:submit"):
            turn.hint = words(data.get("prompt"))
            self.title = self.title or turn.hint
            self._say("user", turn, "Prompt", data.get("prompt"))
        elif record.event == "prompt:complete":
            turn.note("Answer", self.texts.of(data.get("response")))
        else:
            status = text_of(data.get("status"))
            turn.status = _STATUSES.get(status, "failed")
            turn.finish(self.tree.now)
            if turn.status != "ok":
                turn.note("Status", self.texts.of(status))

    def _report_call(self, record: LogRecord) -> None:
        data = record.data
        step = self.tree.span(record, "model")
        named = (text_of(data.get(key)) for key in ("provider", "model"))
        step.name = words(" ".join(filter(None, named)), 80)
        if record.event == "provider:request":
            messages = data.get("messages")
            if messages is not None:
                step.note("Messages sent", self.texts.of(messages))
            return
        step.finish(self.tree.now, seconds_of(data))
        if record.event == "provider:error":
            self._fail(step, data.get("error"))
            return
        step.status = "ok"
        for role, title, text in answer_sections(data, self.texts):
            at = step.note(title, text)
            if role is not None:
                self.said.append((role, step, at))
                step.hint = step.hint or words(text)
        self._account(step, data.get("usage"))

    def _account(self, step: TraceStep, usage: JSONValue) -> None:
        if not isinstance(usage, Mapping):
            return
        # Vendors leave some of the figures open, which a page need not list.
        used = {key: value for key, value in usage.items() if value is not None}
        step.note("Usage", self.texts.of(used))
        read, written = map(amount, map(usage.get, ("input_tokens", "output_tokens")))
        cost = cost_of(usage)
        step.spend(read, written, cost)
        cached = min(read, amount(usage.get("cache_read_tokens")))
        self.calls.append(
            TracedModelCall(
                at=self.tree.now,
                model=step.name,
                input_tokens=read,
                cached_tokens=cached,
                output_tokens=written,
                cost=cost,
            )
        )

    def _report_tool(self, record: LogRecord) -> None:
        data = record.data
        step = self.tree.span(record, "tool")
        step.name = words(data.get("tool_name"), 80)
        arguments = data.get("tool_input")
        if arguments:
            step.hint = step.hint or arguments_words(arguments)
            step.note("Arguments", self.texts.of(arguments))
        if record.event == "tool:pre":
            return
        step.finish(self.tree.now, seconds_of(data))
        if record.event == "tool:error":
            self._fail(step, data.get("error"))
            return
        result, title = data.get("result"), "Result"
        step.status = "ok"
        if as_object(result).get("success") is False:
            step.status, title = "failed", "Failure"
        self._say("tool", step, title, result_text(result))

    def _fail(self, step: TraceStep, error: JSONValue) -> None:
        text = hint = message_of(error)
        match as_object(error).get("type"):
            case "denied":
                step.status, hint = "denied", text.removeprefix("denied: ")
            case "cancelled":
                step.status = "cancelled"
            case _:
                step.status = "failed"
        step.hint = words(hint)
        at = step.note("Error", self.texts.of(text))
        if step.kind == "tool":
            self.said.append(("tool", step, at))

    def _report_decision(self, record: LogRecord) -> None:
        data = record.data
        about = self.tree.decided_about(record)
        step = self.tree.make("decision", record)
        # The record is written when the decision is made.
        step.start -= seconds_of(data)
        step.finish(self.tree.now)
        step.status = "denied" if data.get("action") == "deny" else "ok"
        step.name = words(data.get("module") or data.get("handler"), 80)
        decision, why = decision_words(data)
        step.hint = words(f"{decision}: {why}" if why else decision)
        step.note("Decision", self.texts.of(decision))
        for key, title in _DECIDED.items():
            if data.get(key):
                step.note(title, self.texts.of(data[key]))
        self.tree.place(step, about or self.tree.around(record))
        injection = data.get("injection")
        if isinstance(injection, Mapping):
            role = words(injection.get("role"), 20) or "system"
            self._say(role, step, "Injected", injection.get("content"))

    def _report_note(self, record: LogRecord) -> None:
        step = self.tree.make("note", record)
        step.name = words(record.event, 80)
        step.finish(self.tree.now)
        step.status = _LEVELS.get(record.level, "ok")
        step.hint = words(summary_of(record))
        about = self.tree.known(record)
        self.tree.place(step, about if about is not None else self.tree.around(record))
        at = step.note("Event", self.texts.of(dict(record.data)))
        if record.event in _COMPACTIONS:
            self.compactions.append(Compaction(calls=len(self.calls), text=step.hint))
            self.said.append(("compaction", step, at))

    def _say(self, role: str, step: TraceStep, title: str, value: JSONValue) -> None:
        """Add a message to a step and to the conversation, once."""
        at = step.note(title, self.texts.of(value))
        # The prompt comes with two events, and lies a few entries back at most.
        if not any(one is step and section == at for _, one, section in self.said[-4:]):
            self.said.append((role, step, at))


_DECIDED: Final = {
    "reason": "Reason",
    "changed": "Changed",
    "question": "Question",
    "message": "Message to the person",
}
_STATUSES: Mapping[str, Status] = {
    "success": "ok",
    "completed": "ok",
    "cancelled": "cancelled",
    "denied": "denied",
}
_LEVELS: Mapping[str, Status] = {"warning": "warning", "error": "failed"}


def _moment(ts: str, otherwise: float) -> float:
    """Return a record's time in seconds since the epoch; of one that has none the time of the one before."""
    try:
        return datetime.fromisoformat(ts).timestamp()
    except (ValueError, OverflowError, OSError):
        return otherwise
