"""The events of a delegation: one when an agent begins, one when it ended, however that was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NotRequired, TypeAlias

from amplifier_sdk.events import Event, EventFields
from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "TASK_AGENT_COMPLETED",
    "TASK_AGENT_RESUMED",
    "TASK_AGENT_SPAWNED",
    "TASK_EVENTS",
    "AgentCompleted",
    "AgentResumed",
    "AgentSpawned",
    "EndStatus",
]

EndStatus: TypeAlias = Literal["completed", "cancelled", "failed"]
"""How an agent's turn ended."""


class AgentSpawned(EventFields):
    """An agent is about to begin, in a child session of its own."""

    agent: str
    sub_session_id: str
    parent_session_id: str
    inherit_context: str
    depth_left: int


class AgentResumed(EventFields):
    """An agent goes on in the child session that it had; `agent` is there where it is known."""

    agent: NotRequired[str]
    sub_session_id: str
    parent_session_id: str


class AgentCompleted(EventFields):
    """An agent ended; `duration` in seconds, `spending` what its session spent in this turn, `error` why it failed."""

    agent: NotRequired[str]
    sub_session_id: str
    parent_session_id: str
    success: bool
    status: EndStatus
    duration: float
    limit: NotRequired[str]
    turn_count: NotRequired[int]
    spending: NotRequired[Mapping[str, JSONValue]]
    error: NotRequired[Mapping[str, JSONValue]]


TASK_AGENT_SPAWNED: Final = Event[AgentSpawned]("task:agent_spawned")
"""Emitted before an agent's child session is made."""

TASK_AGENT_RESUMED: Final = Event[AgentResumed]("task:agent_resumed")
"""Emitted before a child session is resumed."""

TASK_AGENT_COMPLETED: Final = Event[AgentCompleted]("task:agent_completed")
"""Emitted once for each of the other two, also when the agent failed, was refused or was cancelled."""

TASK_EVENTS: Final = (
    str(TASK_AGENT_SPAWNED),
    str(TASK_AGENT_RESUMED),
    str(TASK_AGENT_COMPLETED),
)
"""All of them, by name."""
