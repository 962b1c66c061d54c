"""The `content_block:*` and `thinking:*` events of one answer, balanced however it ends."""

from __future__ import annotations

from typing import Final

import attrs

from amplifier.kernel.hooks.dispatcher import HookDispatcher
from amplifier_sdk.chat import ChatResponse
from amplifier_sdk.content import (
    ContentBlock,
    ReasoningBlock,
    ThinkingBlock,
    block_to_dict,
)
from amplifier_sdk.events import (
    CONTENT_BLOCK_DELTA,
    CONTENT_BLOCK_END,
    CONTENT_BLOCK_START,
    THINKING_DELTA,
    THINKING_FINAL,
    ContentBlockDelta,
    ContentBlockEnd,
    ContentBlockStart,
    ThinkingDeltaText,
    ThinkingFinal,
)
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.streaming import Delta, TextDelta, ThinkingDelta

__all__ = ["BLOCK_EVENTS", "BlockEvents"]

BLOCK_EVENTS: Final = (
    CONTENT_BLOCK_START,
    CONTENT_BLOCK_DELTA,
    CONTENT_BLOCK_END,
    THINKING_DELTA,
    THINKING_FINAL,
)
"""The events of blocks: when nobody hears one of them, none is announced."""


@attrs.define(eq=False, repr=False)
class BlockEvents:
    """Announces an answer's blocks as they form and as they are whole."""

    hooks: HookDispatcher
    _open: dict[int, str] = attrs.field(factory=dict)

    async def grow(self, delta: Delta) -> None:
        """Announce a delta, and its block if it is the first."""
        await self._start(delta.index, _kind(delta))
        await self.hooks.emit(
            CONTENT_BLOCK_DELTA, ContentBlockDelta(block_index=delta.index, delta=delta)
        )
        if isinstance(delta, ThinkingDelta):
            await self.hooks.emit(THINKING_DELTA, ThinkingDeltaText(text=delta.text))

    async def finish(self, response: ChatResponse) -> None:
        """Announce every block of the whole answer as ended."""
        total = len(response.content)
        for index, block in enumerate(response.content):
            await self._start(index, block.type, total)
            await self._end(index, block_to_dict(block), total)
            await self._thought(block)
        await self.abandon()

    async def abandon(self) -> None:
        """End the blocks that began and will not be whole."""
        # a copy, since each end takes its block out
        for index, kind in list(self._open.items()):
            await self._end(index, {"type": kind, "incomplete": True})

    async def _start(self, index: int, kind: str, total: int | None = None) -> None:
        if index in self._open:
            return
        self._open[index] = kind
        start = ContentBlockStart(block_type=kind, block_index=index)
        if total is not None:
            start["total_blocks"] = total
        await self.hooks.emit(CONTENT_BLOCK_START, start)

    async def _end(
        self, index: int, block: JSONObject, total: int | None = None
    ) -> None:
        self._open.pop(index, None)
        end = ContentBlockEnd(block_index=index, block=block)
        if total is not None:
            end["total_blocks"] = total
        await self.hooks.emit(CONTENT_BLOCK_END, end)

    async def _thought(self, block: ContentBlock) -> None:
        match block:
            case ThinkingBlock():
                await self.hooks.emit(
                    THINKING_FINAL, ThinkingFinal(text=block.thinking)
                )
            case ReasoningBlock() if block.text:  # most of it is encrypted
                await self.hooks.emit(THINKING_FINAL, ThinkingFinal(text=block.text))
            case _:
                pass


def _kind(delta: Delta) -> str:
    match delta:
        case TextDelta():
            return "text"
        case ThinkingDelta():
            return "thinking"
        case _:
            return "tool_call"
