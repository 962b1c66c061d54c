"""The loop itself; the duties of a turn are those of `amplifier_sdk.Loop`."""

from __future__ import annotations

from amplifier_sdk import Loop, Turn, orchestrator
from amplifier_sdk.loops import LoopConfig

__all__ = ["BasicLoop"]


@orchestrator
class BasicLoop(Loop):
    """Asks, runs tools, repeats; the session's limits end a model that never stops."""

    name = "loop-basic"

    def __init__(self, config: LoopConfig) -> None:
        self.config = config

    async def run(self, turn: Turn) -> str:
        """Alternate between the model and its tools until an answer needs none."""
        choice = self.first_choice(turn.tools)
        while True:
            response = await turn.complete(tool_choice=choice)
            if not response.tool_calls:
                return response.text
            await turn.run_tools(response.tool_calls)
            choice = None
