"""The events that loops send besides the canonical ones."""

from __future__ import annotations

from typing import Final

from amplifier_sdk.events import Event, EventFields

__all__ = [
    "BASE_EVENTS",
    "RATE_LIMIT_DELAY",
    "STEERING_INJECTED",
    "STOPPING",
    "RateLimitDelay",
    "SteeringEntered",
    "Stopping",
]


class SteeringEntered(EventFields):
    """A text that was typed while the agent worked is in the conversation; `waiting` are still to come."""

    text: str
    waiting: int


class RateLimitDelay(EventFields):
    """A loop waits before its next request; `delay` is in seconds."""

    delay: float


class Stopping(EventFields):
    """A loop is about to end its turn with `response`; a handler that denies keeps it at work with the reason.

    `continued` is how many times handlers have continued this turn already.
    """

    response: str
    continued: int


STEERING_INJECTED: Final = Event[SteeringEntered]("orchestrator:steering_injected")
RATE_LIMIT_DELAY: Final = Event[RateLimitDelay]("orchestrator:rate_limit_delay")
STOPPING: Final = Event[Stopping]("orchestrator:stopping")

# As plain texts: they are compared with names that modules write.
BASE_EVENTS: Final = frozenset({str(STOPPING)})
"""The events here that every loop on the base class sends where somebody hears them; no module declares them."""
