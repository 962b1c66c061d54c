"""What flows while a turn runs: a provider's deltas, and the events that a reader of the turn sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, Union

import attrs

from amplifier_sdk.chat import ChatResponse, Degradation, ToolCall, Usage
from amplifier_sdk.results import ToolResult
from amplifier_sdk.values import Value

if TYPE_CHECKING:
    from amplifier_sdk.progress import ToolReport  # few tools report

__all__ = [
    "Delta",
    "SteeringInjected",
    "StreamEvent",
    "StreamItem",
    "TextDelta",
    "ThinkingDelta",
    "ToolCallDelta",
    "ToolEvent",
    "ToolFinished",
    "ToolStarted",
    "TurnFinished",
    "UsageReported",
]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class TextDelta(Value):
    """A piece of the answer's text; `index` is the content block it belongs to."""

    text: str
    index: int = 0

    def merged(self, other: TextDelta) -> TextDelta:
        """Join with the delta that follows directly."""
        return TextDelta(text=self.text + other.text, index=self.index)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ThinkingDelta(Value):
    """A piece of the model's visible thinking."""

    text: str
    index: int = 0

    def merged(self, other: ThinkingDelta) -> ThinkingDelta:
        """Join with the delta that follows directly."""
        return ThinkingDelta(text=self.text + other.text, index=self.index)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ToolCallDelta(Value):
    """A piece of a tool call as it forms; `arguments` is a fragment of JSON text.

    `id` and `name` stand in every delta of a call, so that any one of them identifies the call.
    """

    id: str
    name: str
    arguments: str
    index: int = 0

    def merged(self, other: ToolCallDelta) -> ToolCallDelta:
        """Join with the delta that follows directly."""
        return attrs.evolve(self, arguments=self.arguments + other.arguments)


Delta: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta
"""What a provider's stream yields before the `ChatResponse` that ends it."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ToolStarted(Value):
    """A tool call passed its checks and starts to run; `call` has the arguments with which it runs."""

    call: ToolCall


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ToolFinished(Value):
    """A tool call ended; a refused or failed one as well. `call` is the call as it ran."""

    call: ToolCall
    result: ToolResult


@attrs.frozen(kw_only=True, eq=False, repr=False)
class UsageReported(Value):
    """An answer ended and its provider said what it used; `total` is the turn's so far, without child sessions."""

    provider: str
    usage: Usage
    total: Usage


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SteeringInjected(Value):
    """A text that was typed while the agent worked (`session.steer`) is part of the conversation now."""

    text: str


@attrs.frozen(kw_only=True, eq=False, repr=False)
class TurnFinished(Value):
    """The turn's last event.

    It has the turn's answer and why the last answer of the model ended: `length` means that it is cut. `usage`
    is `None` where no provider reported any; it and `tool_calls` include those of child sessions, of which
    `children` turns ran. `limit` names the limit that ended the turn early. `unread` are the texts that
    `session.steer` was given too late for this turn; they wait for the next one. `degradations` say in what answers of
    the turn are not what was asked for.
    """

    text: str
    usage: Usage | None = None
    iterations: int = 0
    finish_reason: str | None = None
    tool_calls: int = 0
    children: int = 0
    limit: str | None = None
    unread: tuple[str, ...] = ()
    degradations: tuple[Degradation, ...] = ()


# `Union` and not `|`: a name in quotes has no `|` at runtime
ToolEvent: TypeAlias = Union[ToolStarted, "ToolReport", ToolFinished]
"""What a tool call does, as the events of a turn."""

StreamEvent: TypeAlias = (
    Delta | UsageReported | ToolEvent | SteeringInjected | TurnFinished
)
"""What `session.stream` yields."""

StreamItem: TypeAlias = Delta | ChatResponse
"""What a provider's `stream` yields: deltas, then one `ChatResponse`."""
