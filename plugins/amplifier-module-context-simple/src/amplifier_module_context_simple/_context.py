"""The context: an append-only log, and views of it that fit a budget.

Shortening never touches the history. A view that is too large leaves out the oldest turns whole, and within
the running turn the oldest calls together with their results. What is left out grows only when a view is
too large again, so that a vendor's prompt cache stays warm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from amplifier_module_context_simple._pieces import pieces
from amplifier_module_context_simple._settings import ContextConfig
from amplifier_module_context_simple._tokens import budget_of, estimate
from amplifier_sdk import Coordinator, MessageDict, Provider, context
from amplifier_sdk.events import (
    CONTEXT_COMPACTION,
    CONTEXT_POST_COMPACT,
    CONTEXT_PRE_COMPACT,
    ContextCompaction,
    ContextPostCompact,
    ContextPreCompact,
)
from amplifier_sdk.history import MessageLog

if TYPE_CHECKING:
    from amplifier_sdk import CompactionResult

__all__ = ["SimpleContext"]

STRATEGY: Final = "drop_oldest"


@context
class SimpleContext:
    """Keeps every message and returns views that fit the model's window."""

    def __init__(self, config: ContextConfig, coordinator: Coordinator) -> None:
        self._config = config
        self._hooks = coordinator.hooks
        self._log = MessageLog()
        self._tokens: list[int] = []
        self._total = 0
        self._skipped: tuple[tuple[int, int], ...] = ()
        self._skipped_tokens = 0
        self._reset()

    async def add_message(self, message: MessageDict, /) -> None:
        """Append a message.

        Raises:
            ValueError: it has no role.
        """
        if not isinstance(message.get("role"), str):
            raise ValueError(f"A message needs a 'role'; got {message!r:.200}")
        self._append(message)

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> Sequence[MessageDict]:
        """Return a view that fits the budget, or the provider's window; the history stays whole."""
        budget = token_budget if token_budget is not None else budget_of(provider, self._config.max_tokens)
        if self._total - self._skipped_tokens > budget * self._config.threshold:
            await self._shorten(budget)
        return self._log.view(self._skipped)

    async def get_messages(self) -> Sequence[MessageDict]:
        """Return the whole history."""
        return self._log.view()

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        """Replace the history."""
        self._log = MessageLog()
        self._tokens, self._total = [], 0
        self._skipped, self._skipped_tokens = (), 0
        for message in messages:
            self._append(message)

    async def clear(self) -> None:
        """Forget everything but the configured instructions."""
        await self.set_messages(())
        self._reset()

    async def get_token_count(self) -> int:
        """Return the estimated tokens of the whole history."""
        return self._total

    async def compact(self) -> CompactionResult:
        """Show the model less from now on: `target_usage` of what it sees; the history stays whole."""
        from amplifier_sdk import CompactionResult  # only whoever asks for less needs it

        before, before_tokens = self._shown()
        await self._shorten(before_tokens)
        after, after_tokens = self._shown()
        return CompactionResult(
            before_messages=before,
            after_messages=after,
            before_tokens=before_tokens,
            after_tokens=after_tokens,
            strategy=STRATEGY,
        )

    def _reset(self) -> None:
        if self._config.system_prompt is not None:
            self._append({"role": "system", "content": self._config.system_prompt})

    def _append(self, message: MessageDict) -> None:
        self._log.append(message)
        tokens = estimate(message)
        self._tokens.append(tokens)
        self._total += tokens

    def _shown(self) -> tuple[int, int]:
        """Return how many messages and tokens the model sees."""
        return len(self._log) - _length(self._skipped), self._total - self._skipped_tokens

    async def _shorten(self, budget: int) -> None:
        """Leave out the oldest exchanges until the view is down to the target."""
        before, before_tokens = self._shown()
        target = budget * min(self._config.target_usage, self._config.threshold)
        skipped, tokens = self._choose(target)
        if tokens <= self._skipped_tokens:
            return
        await self._announce(before, before_tokens)
        self._skipped, self._skipped_tokens = skipped, tokens
        await self._report(before, before_tokens, budget, int(target))

    def _choose(self, target: float) -> tuple[tuple[tuple[int, int], ...], int]:
        """Choose the ranges to leave out: whole pieces, the oldest first, until the rest meets the target."""
        left_out: list[int] = []
        tokens = 0
        for piece in pieces(self._log.view()):
            if self._total - tokens <= target:
                break
            left_out += piece
            tokens += sum(self._tokens[index] for index in piece)
        return _ranges(left_out), tokens

    async def _announce(self, messages: int, tokens: int) -> None:
        if self._hooks.has_handlers(CONTEXT_PRE_COMPACT):
            payload = ContextPreCompact(
                message_count=messages,
                token_count=tokens,
                before_messages=messages,
                before_tokens=tokens,
                strategy=STRATEGY,
            )
            await self._hooks.emit(CONTEXT_PRE_COMPACT, payload)

    async def _report(self, before: int, before_tokens: int, budget: int, target: int) -> None:
        after, after_tokens = self._shown()
        if self._hooks.has_handlers(CONTEXT_POST_COMPACT):
            payload = ContextPostCompact(
                message_count=after,
                token_count=after_tokens,
                after_messages=after,
                after_tokens=after_tokens,
                removed_messages=before - after,
                removed_tokens=before_tokens - after_tokens,
                strategy=STRATEGY,
            )
            await self._hooks.emit(CONTEXT_POST_COMPACT, payload)
        if self._hooks.has_handlers(CONTEXT_COMPACTION):
            figures = ContextCompaction(
                before_tokens=before_tokens,
                after_tokens=after_tokens,
                before_messages=before,
                after_messages=after,
                messages_removed=before - after,
                budget=budget,
                target_tokens=target,
                messages_truncated=0,  # messages are shown whole or not at all
                user_messages_stubbed=0,
                strategy_level=1,
                system_messages_preserved=sum(m.get("role") == "system" for m in self._log.view()),
            )
            await self._hooks.emit(CONTEXT_COMPACTION, figures)


def _ranges(indexes: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Join ascending indexes into ranges."""
    ranges: list[tuple[int, int]] = []
    for index in indexes:
        if ranges and ranges[-1][1] == index:
            ranges[-1] = (ranges[-1][0], index + 1)
        else:
            ranges.append((index, index + 1))
    return tuple(ranges)


def _length(ranges: Sequence[tuple[int, int]]) -> int:
    return sum(stop - first for first, stop in ranges)
