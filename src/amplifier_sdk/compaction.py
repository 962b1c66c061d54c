"""What a context manager answers when it is asked to show the model less."""

from __future__ import annotations

import attrs

__all__ = ["CompactionResult"]


@attrs.frozen(kw_only=True)
class CompactionResult:
    """How large what the model sees was and is now; tokens are estimates, and the history itself is unchanged."""

    before_messages: int
    after_messages: int
    before_tokens: int
    after_tokens: int
    strategy: str

    @property
    def removed_messages(self) -> int:
        """How many messages the model sees no more."""
        return self.before_messages - self.after_messages

    @property
    def removed_tokens(self) -> int:
        """How many tokens that saves."""
        return self.before_tokens - self.after_tokens
