"""`Agent`: what an application describes once and runs as often as it likes.

An agent is a face and no second engine: it becomes a mount plan, a loader and a session.
"""

from __future__ import annotations

from amplifier.agent.agent import Agent
from amplifier.agent.modules import Toolset
from amplifier.agent.result import AgentResult
from amplifier.agent.session import AgentSession, AgentStream
from amplifier.kernel.sessions.output_errors import OutputError, OutputRejectedError

__all__ = [
    "Agent",
    "AgentResult",
    "AgentSession",
    "AgentStream",
    "OutputError",
    "OutputRejectedError",
    "Toolset",
]
