"""What a run came to."""

from __future__ import annotations

from typing import Generic, TypeVar

import attrs

from amplifier_sdk.chat import Degradation, Usage
from amplifier_sdk.messages import MessageDict

__all__ = ["AgentResult"]

OutputT_co = TypeVar("OutputT_co", covariant=True)


@attrs.frozen(kw_only=True, eq=False)
class AgentResult(Generic[OutputT_co]):
    """The answer of one run, and what it took.

    Args:
        output: the answer; a value of the agent's output type, or its text.
        text: the model's last answer as it was written.
        session_id: the session in which it ran.
        usage: what the run's model calls have used, those of sub-agents and of rejected answers included; `None`
            where no provider reported any.
        messages: the conversation as it is now.
        limit: the limit that ended the run early, if one did.
        degradations: in what its answers are not what was asked for, such as text in place of a vendor's schema mode.
    """

    output: OutputT_co
    text: str
    session_id: str
    usage: Usage | None = None
    messages: tuple[MessageDict, ...] = ()
    limit: str | None = None
    degradations: tuple[Degradation, ...] = ()
