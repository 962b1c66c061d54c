"""The context: messages in memory, views that fit, instructions that stay; and its settings."""

from __future__ import annotations

import attrs

from amplifier_kit.compaction import CompactingContext, CompactionOptions
from amplifier_sdk import Coordinator, MessageDict, context

__all__ = ["ContextConfig", "SimpleContext"]


@context
class SimpleContext(CompactingContext):
    """Keeps every message as long as the session lives, and returns views that fit the model's window."""

    def __init__(self, config: ContextConfig, coordinator: Coordinator) -> None:
        prompt = config.system_prompt
        self._instructions: list[MessageDict] = (
            [] if prompt is None else [{"role": "system", "content": prompt}]
        )
        super().__init__(config, coordinator, self._instructions)

    async def clear(self) -> None:
        """Forget everything but the configured instructions."""
        self.replace(self._instructions)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ContextConfig(CompactionOptions):
    """When a view is compacted, how far, and with which instructions; see `CompactionOptions` for the rest.

    Args:
        system_prompt: instructions that stand before everything else.
    """

    system_prompt: str | None = None
