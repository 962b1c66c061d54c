"""The context: messages in memory, views that fit, instructions that stay."""

from __future__ import annotations

from amplifier_kit.compaction import CompactingContext
from amplifier_module_context_simple._settings import ContextConfig
from amplifier_sdk import Coordinator, MessageDict, context

__all__ = ["SimpleContext"]


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
