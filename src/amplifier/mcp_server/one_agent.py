"""A loop that has one agent work, so that what it does is a turn of the session."""

from __future__ import annotations

from typing import ClassVar

import attrs

from amplifier_sdk.contracts import ContextManager, Hooks, Provider, Tool
from amplifier_sdk.delegation import ChildResult, SessionSpawn

__all__ = ["OneAgent"]


@attrs.define(eq=False)
class OneAgent:
    """A loop that delegates its prompt and asks no model itself; `result` is what came of it.

    The turn around it is recorded, limited and cancelled as any other.

    Args:
        agent: the agent's name.
        spawn: runs it.
    """

    name: ClassVar[str] = "one-agent"
    needs_provider: ClassVar[bool] = False

    agent: str
    spawn: SessionSpawn
    result: ChildResult | None = None

    async def execute(
        self,
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        """Have the agent work and return its answer."""
        # the contract's; delegating needs none of them
        del context, providers, tools, hooks
        self.result = await self.spawn(agent_name=self.agent, instruction=prompt)
        return self.result.output
