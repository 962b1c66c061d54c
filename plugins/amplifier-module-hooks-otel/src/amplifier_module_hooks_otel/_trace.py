"""The trace of one session: the turn that is heard, and what its steps have in common.

The span of a turn stands below whatever is current in the task that runs it: a span of the application, or the tool
call that a child session works for. Below it stand its iterations, and in each of them the request to the model and
the tool calls of the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import attrs
from opentelemetry.context import Context

from amplifier_kit.redaction import redactor_of
from amplifier_module_hooks_otel import _names as names
from amplifier_module_hooks_otel._content import ContentWriter
from amplifier_module_hooks_otel._facts import child_name, usage_of, with_error
from amplifier_module_hooks_otel._metrics import Instruments
from amplifier_module_hooks_otel._steps import Attributes, OpenSpan, Steps
from amplifier_sdk import Coordinator, Usage
from amplifier_sdk.bounds import count, seconds
from amplifier_sdk.redaction import REDACTOR

__all__ = ["UNFINISHED", "Data", "SpanTrace", "TelemetryConfig", "TurnTrace"]

Data: TypeAlias = Mapping[str, object]

UNFINISHED: Final = "unfinished"
"""The error of a step whose end was not reported."""


@attrs.define(eq=False)
class SpanTrace:
    """What is known while a session is heard; `turn` is the one that runs, `agent_name` what its metadata say."""

    coordinator: Coordinator
    config: TelemetryConfig
    steps: Steps
    metrics: Instruments | None
    turn: TurnTrace | None = None
    agent_name: str | None = None
    _last: str | None = None
    _writes: tuple[object, ContentWriter] | None = None

    @property
    def agent(self) -> str | None:
        """The agent's name, if it has one."""
        coordinator = self.coordinator
        return (
            self.config.agent_name
            or self.agent_name
            or child_name(coordinator.session_id, coordinator.parent_id)
        )

    def turn_of(self, data: Data, *, is_framed: bool = False) -> TurnTrace | None:
        """Return the turn that an event belongs to; its first one begins it, and one that is over has no more."""
        id, own = data.get("turn_id"), self.coordinator.session_id
        if (
            not isinstance(id, str)
            # Events may come after a turn's end, and would begin it a second time.
            or id == self._last
            or data.get("session_id", own) != own
        ):
            return None
        if self.turn is not None and self.turn.id == id:
            return self.turn
        self.abandon()
        attributes: Attributes = {**self.common(data), names.TURN_ID: id}
        if self.coordinator.parent_id is not None:
            attributes[names.PARENT_SESSION] = self.coordinator.parent_id
        labels, agent = {names.OPERATION: "invoke_agent"}, self.agent
        if agent is not None:
            labels[names.AGENT_NAME] = agent
        name = "invoke_agent"
        if agent is not None:
            name = f"invoke_agent {agent}"
        step = self.steps.begin(name, attributes, labels, is_current=is_framed)
        self.turn = TurnTrace(id, step, is_framed)
        return self.turn

    def abandon(self) -> None:
        """End what is open of a turn whose end was not reported."""
        if self.turn is not None:
            self.end(
                self.turn,
                UNFINISHED if self.turn.is_framed else None,
                is_reported=False,
            )

    def end(
        self, turn: TurnTrace, error: str | None, *, is_reported: bool = True
    ) -> None:
        """End a turn, and whatever of it is still open."""
        self.turn, self._last = None, turn.id
        # Inner steps first, so that what was current is set back in order.
        for step in reversed([*turn.requests.values(), *turn.calls.values()]):
            self.steps.abandon(step, error or UNFINISHED)
        if turn.iteration is not None:
            self.steps.close(turn.iteration, error)
        if turn.usage is not None:
            turn.step.attributes.update(usage_of(turn.usage))
        seconds = turn.step.seconds
        (self.steps.close if is_reported else self.steps.abandon)(turn.step, error)
        if self.metrics is not None:
            self.metrics.agent.record(seconds, with_error(turn.step), turn.step.context)

    def common(self, data: Data) -> Attributes:
        """Return what joins a span with the session's events."""
        attributes: Attributes = {names.CONVERSATION_ID: self.coordinator.session_id}
        for key, attribute in (
            ("span_id", names.SPAN_ID),
            ("iteration", names.ITERATION),
        ):
            value = data.get(key)
            if isinstance(value, (str, int)):
                attributes[attribute] = value
        return attributes

    def writer(self) -> ContentWriter:
        """Return the writer with the session's redactor; modules may offer another one at any time."""
        offered = self.coordinator.get_capability(REDACTOR)
        if self._writes is None or self._writes[0] is not offered:
            self._writes = (
                offered,
                ContentWriter(redactor_of(self.coordinator), self.config.max_content),
            )
        return self._writes[1]


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


@attrs.frozen(kw_only=True)
class TelemetryConfig:
    """The configuration; the module's README describes each key."""

    agent_name: str | None = None
    capture_content: bool = False
    iteration_spans: bool = True
    metrics: bool = True
    provider_names: Mapping[str, str] = attrs.field(factory=dict)
    max_content: int = attrs.field(default=32_768, validator=count)
    queue_size: int = attrs.field(default=4_096, validator=count)
    flush_timeout: float = attrs.field(default=2.0, validator=seconds)
