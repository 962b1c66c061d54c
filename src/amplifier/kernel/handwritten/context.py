"""The context as a loop written by hand receives it.

Such a loop stores the results of its calls itself. What handlers injected while a call waited for its result is
stored as soon as the last result is there, so that the loop's next request has it.
"""

from __future__ import annotations

from collections.abc import Sequence

from amplifier.kernel.hooks.decisions import DecisionProcessor
from amplifier_sdk.contracts import ContextManager, Provider
from amplifier_sdk.messages import MessageDict

__all__ = ["LoopContext"]


class LoopContext:
    """The mounted context under another name: all that it has is there."""

    __slots__ = ("_context", "_decisions")

    def __init__(self, context: ContextManager, decisions: DecisionProcessor) -> None:
        self._context = context
        self._decisions = decisions

    async def add_message(self, message: MessageDict, /) -> None:
        """Append a message, and behind it the injections that waited for it."""
        await self._context.add_message(message)
        await self._decisions.store_waiting()

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> Sequence[MessageDict]:
        """Return the context's view."""
        return await self._context.get_messages_for_request(
            token_budget=token_budget, provider=provider
        )

    async def get_messages(self) -> Sequence[MessageDict]:
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
