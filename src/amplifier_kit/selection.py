"""The events with which `loop-events` lets handlers choose, and reports what failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NotRequired

from amplifier_sdk.events import Event, EventFields

if TYPE_CHECKING:  # payloads are plain dicts at run time
    from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "DECISION_PROVIDER_RESOLUTION",
    "DECISION_TOOL_RESOLUTION",
    "ERROR_PROVIDER",
    "ERROR_TOOL",
    "TOOL_SELECTED",
    "TOOL_SELECTING",
    "ProviderFailed",
    "ProviderResolution",
    "ToolFailed",
    "ToolResolution",
    "ToolSelected",
    "ToolSelecting",
]


class ToolResolution(EventFields):
    """Which tool shall answer a call? Handlers answer `{choice, score, reason}` as data."""

    tool: str
    tool_input: Mapping[str, JSONValue]
    tool_call_id: str
    candidates: Sequence[str]


class ProviderResolution(EventFields):
    """Which provider shall answer the next request? Handlers answer `{choice, score, reason}` as data."""

    candidates: Sequence[str]


class ToolSelecting(EventFields):
    """A tool is about to be selected for a call; a handler may deny the call or change `tool`."""

    tool: str
    tool_input: Mapping[str, JSONValue]
    tool_call_id: str
    candidates: Sequence[str]


class ToolSelected(EventFields):
    """A tool was selected; `requested` is the one that the model called, `reason` why it is another."""

    tool: str
    requested: str
    tool_call_id: str
    reason: NotRequired[str]
    score: NotRequired[float]


class ToolFailed(EventFields):
    """A call of a turn failed, for whatever reason."""

    tool: str
    tool_call_id: str
    error: Mapping[str, JSONValue]


class ProviderFailed(EventFields):
    """No provider answered a request; the turn fails with this error."""

    error: Mapping[str, JSONValue]
    provider: str | None
    retryable: bool


DECISION_TOOL_RESOLUTION: Final = Event[ToolResolution]("decision:tool_resolution")
DECISION_PROVIDER_RESOLUTION: Final = Event[ProviderResolution](
    "decision:provider_resolution"
)
TOOL_SELECTING: Final = Event[ToolSelecting]("tool:selecting")
TOOL_SELECTED: Final = Event[ToolSelected]("tool:selected")
ERROR_TOOL: Final = Event[ToolFailed]("error:tool")
ERROR_PROVIDER: Final = Event[ProviderFailed]("error:provider")
