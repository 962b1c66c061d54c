"""The turn that is heard."""

from __future__ import annotations

import attrs
from opentelemetry.context import Context

from amplifier_module_hooks_otel._steps import OpenSpan
from amplifier_sdk import Usage

__all__ = ["TurnTrace"]


@attrs.define(eq=False)
class TurnTrace:
    """A turn: its span, that of its iteration, and what is open of it.

    `requests` are the open requests to a model by the ids of their steps, `calls` the open tool calls by theirs.
    `usage` is what its requests used, `error` how the last one failed.
    `is_framed` says that the turn's end will be reported: a loop written by hand may not.
    """

    id: str
    step: OpenSpan
    is_framed: bool
    iteration: OpenSpan | None = None
    number: object = None
    requests: dict[str, OpenSpan] = attrs.field(factory=dict)
    calls: dict[str, OpenSpan] = attrs.field(factory=dict)
    usage: Usage | None = None
    error: str | None = None

    def above(self, number: object) -> Context:
        """Return the context of what a step belongs to: its iteration, where that has a span, else the turn."""
        # A step of an earlier iteration may begin late; it would stand below the wrong
        # one.
        if self.iteration is None or number != self.number:
            return self.step.context
        return self.iteration.context

    def find(self, id: object) -> OpenSpan | None:
        """Return the open step of an id."""
        return next(
            (
                step
                for step in (*self.requests.values(), *self.calls.values())
                if step.id == id
            ),
            None,
        )
