"""The events that loops send besides the canonical ones; those of a choice are in `amplifier_sdk.loops.selection`."""

from __future__ import annotations

from typing import Final

from amplifier_sdk.events import Event, EventFields

__all__ = [
    "RATE_LIMIT_DELAY",
    "STEERING_INJECTED",
    "RateLimitDelay",
    "SteeringEntered",
]


class SteeringEntered(EventFields):
    """A text that was typed while the agent worked is in the conversation; `waiting` are still to come."""

    text: str
    waiting: int


class RateLimitDelay(EventFields):
    """A loop waits before it asks again; `delay` is in seconds."""

    delay: float


STEERING_INJECTED: Final = Event[SteeringEntered]("orchestrator:steering_injected")
RATE_LIMIT_DELAY: Final = Event[RateLimitDelay]("orchestrator:rate_limit_delay")
