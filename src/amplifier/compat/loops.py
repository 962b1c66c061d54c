"""Loops of the original as the session runs them: what they receive is what they know, and owes all that it owed."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Mapping
from typing import Protocol, cast

from amplifier.compat.contexts import ShownContext
from amplifier.compat.original.hooks import HookRegistry
from amplifier.compat.providers import ShownProvider
from amplifier.compat.tools import ShownTool
from amplifier.kernel.turn.registry import HookRegistry as KernelRegistry
from amplifier_sdk.contracts import ContextManager, Hooks, Provider, Tool

__all__ = ["AdaptedLoop", "OriginalLoop"]


class OriginalLoop(Protocol):
    """What a loop of the original has."""

    def execute(self, **arguments: object) -> Awaitable[object]:
        """Run it once."""


class AdaptedLoop:
    """A loop of the original as the session runs it."""

    needs_provider: bool = False  # it says itself what it does without one

    def __init__(self, original: OriginalLoop, coordinator: object) -> None:
        self.original: OriginalLoop = original
        self._coordinator = coordinator

    async def execute(
        self,
        prompt: str,
        context: ContextManager,
        providers: Mapping[str, Provider],
        tools: Mapping[str, Tool],
        hooks: Hooks,
    ) -> str:
        """Run one turn."""
        arguments: dict[str, object] = {
            "prompt": prompt,
            "context": ShownContext(context),
            "providers": {
                name: ShownProvider(provider) for name, provider in providers.items()
            },
            "tools": {name: ShownTool(tool) for name, tool in tools.items()},
            "hooks": HookRegistry.over(cast("KernelRegistry", hooks)),
        }
        # the contract's five arguments are all that older loops take
        if _takes_coordinator(self.original):
            arguments["coordinator"] = self._coordinator
        return cast("str", await self.original.execute(**arguments))


def _takes_coordinator(loop: OriginalLoop) -> bool:
    parameters = inspect.signature(loop.execute).parameters
    return "coordinator" in parameters or any(
        each.kind is each.VAR_KEYWORD for each in parameters.values()
    )
