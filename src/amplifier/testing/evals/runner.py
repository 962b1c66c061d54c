"""One run of an agent in a session of its own, with an account that is right also where the run fails."""

from __future__ import annotations

from decimal import Decimal
from typing import Final, Never, TypeVar

import attrs

from amplifier.agent.agent import Agent
from amplifier.agent.result import AgentResult
from amplifier.kernel.budgets.expenses import Spending
from amplifier_sdk.chat import ToolCall, Usage
from amplifier_sdk.content import ToolCallBlock
from amplifier_sdk.messages import Message

__all__ = ["NO_USAGE", "RunUsage", "run_agent", "tool_calls_of"]

OutputT = TypeVar("OutputT")

NO_USAGE: Final = Usage(input_tokens=0, output_tokens=0, total_tokens=0)
"""What a run has used of which its provider reported nothing: its cost is not known."""


@attrs.define(eq=False)
class RunUsage:
    """What a run has used so far; `None` where its provider reported nothing."""

    usage: Usage | None = None


async def run_agent(
    agent: Agent[Never, OutputT], prompt: str, account: RunUsage
) -> AgentResult[OutputT]:
    """Answer a prompt as `Agent.run` does, and book what that used."""
    opened = agent.session()
    try:
        async with opened:
            return await opened.run(prompt)
    finally:
        # a run that raised has been paid for as well
        account.usage = _usage_of(opened.session.spending)


def _usage_of(spending: Spending) -> Usage | None:
    if spending.provider_calls == 0:
        # no model answered: that this cost nothing is known
        return attrs.evolve(NO_USAGE, cost_usd=Decimal(0))
    return spending.usage


def tool_calls_of(result: AgentResult[object]) -> tuple[ToolCall, ...]:
    """Return the tool calls that the model made in a run, in their order."""
    return tuple(
        ToolCall(id=block.id, name=block.name, arguments=dict(block.input))
        for message in result.messages
        for block in Message.from_dict(message).blocks
        if isinstance(block, ToolCallBlock)
    )
