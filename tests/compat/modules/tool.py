"""A tool as authors write it for the original."""

from typing import Any

import anyio

from amplifier_core import ModuleCoordinator, ToolResult

__amplifier_module_type__ = "tool"


async def mount(coordinator: ModuleCoordinator, config: dict[str, Any] | None = None):
    tool = WordCount()
    tool.coordinator = coordinator
    await coordinator.mount("tools", tool, name=tool.name)
    coordinator.register_contributor(
        "observability.events", "word-count", lambda: ["words:counted"]
    )
    return {"name": "tool-words", "version": "1.0.0"}


class WordCount:
    def __init__(self):
        self.timeout = 0.0001  # its author's, for something else
        self.inputs = []

    @property
    def name(self):
        return "count_words"

    @property
    def description(self):
        return "Counts the words of a text"

    @property
    def input_schema(self):
        return {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        }

    async def execute(self, input: dict[str, Any]) -> ToolResult:
        self.inputs.append(input)
        text = input.get("text", "")
        if not text:
            return ToolResult(success=False, error={"message": "There is no text"})
        if text == "cancel":
            await self.coordinator.request_cancel(True)
            await anyio.sleep(3600)
        self.coordinator.counted = len(text.split())
        await self.coordinator.hooks.emit("words:counted", {"words": text})
        return ToolResult(
            success=True, output={"words": len(text.split())}, metadata={"a": 1}
        )
