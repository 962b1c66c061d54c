"""The loop itself; the duties of a turn are those of `amplifier_sdk.Loop`."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from amplifier_sdk import Loop, Provider, Turn, orchestrator
from amplifier_sdk.chat import ToolChoice
from amplifier_sdk.errors import ConfigError, Problem, did_you_mean

__all__ = ["BasicLoop", "LoopConfig"]


@attrs.frozen(kw_only=True)
class LoopConfig:
    """The loop's settings; `None` leaves each to the provider.

    `first_tool` names a tool that the model must call first in each turn, where the provider can force one.
    """

    default_provider: str | None = None
    first_tool: str | None = None
    model: str | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    reasoning_effort: str | None = None


@orchestrator
class BasicLoop(Loop):
    """Asks, runs tools, asks again; the session's limits end a model that never stops."""

    name = "loop-basic"

    def __init__(self, config: LoopConfig) -> None:
        self._config = config

    def provider_name(self, providers: Mapping[str, Provider]) -> str:
        """Choose the configured provider, else the one with the lowest priority."""
        return self._config.default_provider or super().provider_name(providers)

    async def run(self, turn: Turn) -> str:
        """Alternate between the model and its tools until an answer needs none."""
        config = self._config
        choice = self._first_choice(turn)
        while True:
            response = await turn.complete(
                tool_choice=choice,
                model=config.model,
                temperature=config.temperature,
                max_output_tokens=config.max_output_tokens,
                reasoning_effort=config.reasoning_effort,
            )
            if not response.tool_calls:
                return response.text
            await turn.run_tools(response.tool_calls)
            choice = None

    def _first_choice(self, turn: Turn) -> ToolChoice | None:
        name = self._config.first_tool
        if name is None or name in turn.tools:
            return None if name is None else {"type": "tool", "name": name}
        known = ", ".join(turn.tools) or "none"
        hint = did_you_mean(name, list(turn.tools))
        raise ConfigError([Problem("first_tool", f"no tool {name!r} is mounted; mounted: {known}{hint}")])
