"""The context as a loop written by hand receives it.

Such a loop stores answers and results itself, as the values that it has, such as
`response.content` and `result.output`. A history is plain JSON data: they are written out
here. What handlers injected while a call waited for its result is stored as soon as the
last result is there, so that the loop's next request has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast, get_args

import attrs

from amplifier.kernel.hooks.decisions import DecisionProcessor
from amplifier_sdk.content import ContentBlock, block_to_dict
from amplifier_sdk.contracts import ContextManager, Provider
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.results import ToolResult

if TYPE_CHECKING:
    from amplifier.kernel.handwritten.prompts import PromptDelivery

__all__ = ["LoopContext"]

_BLOCKS: Final = get_args(ContentBlock)
_RESULT_ROLES: Final = frozenset({"tool", "function"})
_SHOWN_IN_RESULTS: Final = frozenset(
    {"text", "image", "audio", "document", "video", "tool_result"}
)


@attrs.frozen(eq=False, repr=False)
class LoopContext:
    """The mounted context under another name: all that it has is there."""

    _context: ContextManager
    _decisions: DecisionProcessor
    _delivery: PromptDelivery | None = None

    async def add_message(self, message: MessageDict, /) -> None:
        """Append a message, and behind it the injections that waited for it."""
        if self._delivery is not None:
            message = self._delivery.stored(message)
        await self._context.add_message(_plain(message))
        await self._decisions.store_waiting()

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> list[MessageDict]:
        """Return the context's view."""
        return await self._context.get_messages_for_request(
            token_budget=token_budget, provider=provider
        )

    async def get_messages(self) -> list[MessageDict]:
        """Return the whole history."""
        return await self._context.get_messages()

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        """Replace the history."""
        await self._context.set_messages(messages)

    async def clear(self) -> None:
        """Forget everything."""
        await self._context.clear()

    def __getattr__(self, name: str) -> object:
        """Return what else the context has."""
        return getattr(self._context, name)


def _plain(message: MessageDict) -> MessageDict:
    """Return a message as plain JSON data; one that is plain is returned as it is."""
    content: object = message.get("content")
    if content is None or isinstance(content, str):
        return message
    if isinstance(content, Sequence) and any(
        isinstance(block, _BLOCKS) for block in content
    ):
        return {**message, "content": list(map(_written, content))}
    if message.get("role") in _RESULT_ROLES and not _is_shown(content):
        output = cast("JSONValue", content)
        text = ToolResult(output=output).get_serialized_output()
        return {**message, "content": text}
    return message


def _written(block: object) -> JSONValue:
    if isinstance(block, _BLOCKS):
        return block_to_dict(cast("ContentBlock", block))
    return cast("JSONValue", block)


def _is_shown(content: object) -> bool:
    """Whether a tool's message holds blocks for the model; anything else is a value that the tool returned."""
    return isinstance(content, Sequence) and all(
        isinstance(block, Mapping) and block.get("type") in _SHOWN_IN_RESULTS
        for block in content
    )
