"""The events of a compaction: before, after, and with every figure."""

from __future__ import annotations

import attrs

from amplifier_sdk.chat import Usage
from amplifier_sdk.contracts import Hooks
from amplifier_sdk.events import (
    CONTEXT_COMPACTION,
    CONTEXT_POST_COMPACT,
    CONTEXT_PRE_COMPACT,
    USER_NOTIFICATION,
    ContextCompaction,
    ContextPostCompact,
    ContextPreCompact,
    UserNotification,
)

__all__ = ["Figures", "announce", "report", "warn"]


@attrs.frozen(kw_only=True)
class Figures:
    """How large a view is, in messages of the history and in tokens with all that stands among them."""

    messages: int
    tokens: int


async def announce(hooks: Hooks, before: Figures, strategy: str) -> None:
    """Emit `context:pre_compact`."""
    if hooks.has_handlers(CONTEXT_PRE_COMPACT):
        payload = ContextPreCompact(
            message_count=before.messages,
            token_count=before.tokens,
            before_messages=before.messages,
            before_tokens=before.tokens,
            strategy=strategy,
        )
        await hooks.emit(CONTEXT_PRE_COMPACT, payload)


async def report(
    hooks: Hooks,
    before: Figures,
    after: Figures,
    strategy: str,
    figures: ContextCompaction,
    usage: Usage | None,
) -> None:
    """Emit `context:post_compact` and `context:compaction`.

    Args:
        hooks: where.
        before: the view as it was.
        after: the view as it is.
        strategy: how it was compacted.
        figures: the figures of the compaction.
        usage: what a summary took.
    """
    if hooks.has_handlers(CONTEXT_POST_COMPACT):
        payload = ContextPostCompact(
            message_count=after.messages,
            token_count=after.tokens,
            after_messages=after.messages,
            after_tokens=after.tokens,
            removed_messages=before.messages - after.messages,
            removed_tokens=before.tokens - after.tokens,
            strategy=strategy,
        )
        if usage is not None:
            payload["usage"] = usage
        await hooks.emit(CONTEXT_POST_COMPACT, payload)
    if hooks.has_handlers(CONTEXT_COMPACTION):
        await hooks.emit(CONTEXT_COMPACTION, figures)


async def warn(hooks: Hooks, message: str) -> None:
    """Emit `user:notification` with a warning of the context."""
    await hooks.emit(
        USER_NOTIFICATION,
        UserNotification(message=message, level="warning", source="context"),
    )
