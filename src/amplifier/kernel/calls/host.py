"""The host: the one provider call and the one tool call behind `amplifier_sdk.contracts.TurnHost`.

A loop decides the order of the calls; what happens each time is the host's. One host serves a session's
turns, one after the other.
"""

from __future__ import annotations

from amplifier.kernel.calls.provider import ProviderCalls
from amplifier.kernel.calls.steering import SteeringCalls
from amplifier.kernel.calls.tool import ToolCalls

__all__ = ["Host"]


class Host(ProviderCalls, ToolCalls, SteeringCalls):
    """Runs the calls of one session's turns."""

    __slots__ = ()
