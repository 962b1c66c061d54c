"""Steps: open spans. They begin on the loop and end beside it.

A step is current from its beginning to its end, in the task that it happens in and those started from there, so that
what other instrumentations record of a request or a tool call stands below it. An end sets back what was current at
the beginning instead of detaching a token: a token may be used in the very context that made it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter, time_ns
from typing import Final, TypeAlias

import attrs
from opentelemetry.context import Context, attach, get_current
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    get_current_span,
    set_span_in_context,
)

from amplifier_kit.trace_context import caller_of_turn
from amplifier_module_hooks_otel._names import ERROR_TYPE, SPAN_ID
from amplifier_module_hooks_otel._worker import JobWorker

__all__ = ["Attributes", "Content", "OpenSpan", "Steps", "encodable", "short"]

Attributes: TypeAlias = dict[str, str | bool | int | float | list[str]]

Content: TypeAlias = Callable[[], Mapping[str, str]]
"""Makes the attributes that hold what was said; it runs in the worker's thread."""


_LONGEST: Final = 200
"""Characters of a name: a model may ask for a tool of any."""


def short(text: str) -> str:
    """Return the beginning of a name, as an exporter can write it."""
    if len(text) <= _LONGEST and text.isascii():
        return text
    return encodable(text[:_LONGEST])


def encodable(text: str) -> str:
    """Replace halves of characters, with which an exporter could write nothing at all."""
    return text.encode("utf-8", "replace").decode()


@attrs.define(eq=False)
class OpenSpan:
    """An open span; `context` has it as the current one, `before` is what was current when it began.

    `labels` are the attributes that its metrics have as well, `id` is what the session's events call the step.
    `ended` is when it ended, in nanoseconds since the epoch, while its content is waited for.
    """

    span: Span
    context: Context
    before: Context | None
    labels: dict[str, str]
    attributes: Attributes = attrs.field(factory=dict)
    contents: list[Content] = attrs.field(factory=list)
    id: object = None
    error: str | None = None
    ended: int = 0
    first_chunk: float | None = None
    _began: float = attrs.field(factory=perf_counter)

    @property
    def seconds(self) -> float:
        """How long it has been open."""
        return perf_counter() - self._began


@attrs.define(eq=False)
class Steps:
    """Begins and ends the steps of one session."""

    tracer: Tracer
    worker: JobWorker

    def begin(
        self,
        name: str,
        attributes: Attributes,
        labels: dict[str, str],
        parent: Context | None = None,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        is_current: bool = True,
    ) -> OpenSpan:
        """Begin a step below another, else below whatever is current; it becomes current itself."""
        labels = {key: short(value) for key, value in labels.items()}
        before = get_current()
        # The application's baggage and whatever else is current stay so.
        above = _below_caller(before) if parent is None else parent
        span = self.tracer.start_span(
            short(name), above, kind, {**labels, **_short(attributes)}
        )
        context = set_span_in_context(span, above)
        if is_current:
            attach(context)
        return OpenSpan(
            span,
            context,
            before if is_current else None,
            labels,
            id=attributes.get(SPAN_ID),
        )

    def stop(self, step: OpenSpan, error: str | None = None) -> None:
        """Note that a step is over; what was current before it is so again."""
        step.ended, step.error = time_ns(), error
        if step.before is not None:
            attach(step.before)

    def abandon(self, step: OpenSpan, error: str | None) -> None:
        """End a step whose end was not reported, perhaps in another task than the one where it is current."""
        # In another task the old context is that task's own business.
        if get_current_span() is not step.span:
            step.before = None
        self.close(step, error)

    def close(self, step: OpenSpan, error: str | None = None) -> None:
        """End a step's span, in the worker's thread."""
        if not step.ended:
            self.stop(step, error)
        # A span that is not sampled is ended by nobody: nothing is exported of it.
        if step.span.is_recording():
            self.worker.put(partial(_end, step))


def _short(attributes: Attributes) -> Attributes:
    return {
        key: short(value) if isinstance(value, str) else value
        for key, value in attributes.items()
    }


def _end(step: OpenSpan) -> None:
    """Write what is known of a step into its span and end it; it ends whatever becomes of its content."""
    span = step.span
    try:
        span.set_attributes(_short(step.attributes))
        if step.error is not None:
            span.set_attribute(ERROR_TYPE, step.error)
            span.set_status(Status(StatusCode.ERROR))
        for content in step.contents:
            span.set_attributes(
                {name: encodable(text) for name, text in content().items()}
            )
    finally:
        span.end(step.ended)


def _below_caller(current: Context) -> Context:
    """Return the context of what a turn belongs to: the span that is current here, else that of a caller elsewhere."""
    caller = caller_of_turn()
    if caller is None or get_current_span(current).get_span_context().is_valid:
        return current
    remote = SpanContext(
        trace_id=int(caller.trace_id, 16),
        span_id=int(caller.span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(caller.flags),
    )
    return set_span_in_context(NonRecordingSpan(remote), current)
