"""The settings of the persistent context."""

from __future__ import annotations

from typing import Literal

import attrs

from amplifier_kit.compaction import CompactionOptions

__all__ = ["PersistentConfig", "Retention"]

_positive = attrs.validators.optional(attrs.validators.gt(0))


@attrs.frozen(kw_only=True)
class Retention:
    """How much of a conversation stays in its file when a session opens it; the rest goes to the archive beside it.

    Whole turns go, the oldest first; before them what was cleared, repaired or replaced. The last turn stays.

    Args:
        max_age_days: turns that ended longer ago go.
        max_messages: so many messages stay at most.
        max_bytes: so many bytes the messages in the file take at most.
        keep_roles: messages of these roles stay, whatever their turn.
    """

    max_age_days: float | None = attrs.field(default=None, validator=_positive)
    max_messages: int | None = attrs.field(default=None, validator=_positive)
    max_bytes: int | None = attrs.field(default=None, validator=_positive)
    keep_roles: tuple[str, ...] = ("system", "developer")

    @property
    def is_limited(self) -> bool:
        """Whether anything ever goes."""
        return (
            self.max_age_days is not None
            or self.max_messages is not None
            or self.max_bytes is not None
        )


@attrs.frozen(kw_only=True)
class PersistentConfig(CompactionOptions):
    """Where the conversation is stored and what it begins with; the rest says what the model sees of it.

    Args:
        transcript_path: the file; default one for the session.
        durability: `written`, a message outlives the process as soon as it is added; `sync`, also a power failure.
        memory_files: files whose texts a new conversation begins with, as instructions.
        system_prompt: instructions that a new conversation begins with, before those.
        retention: how much of an old conversation stays in the file.
        lock_timeout: seconds to wait for another session that lets go of the file.
    """

    transcript_path: str | None = None
    durability: Literal["written", "sync"] = "written"
    memory_files: tuple[str, ...] = ()
    system_prompt: str | None = None
    retention: Retention = attrs.field(factory=Retention)
    lock_timeout: float = attrs.field(default=0.5, validator=attrs.validators.ge(0))
