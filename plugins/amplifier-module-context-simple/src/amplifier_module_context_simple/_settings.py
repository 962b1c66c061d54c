"""The settings of the simple context."""

from __future__ import annotations

import attrs

from amplifier_kit.compaction import CompactionOptions

__all__ = ["ContextConfig"]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ContextConfig(CompactionOptions):
    """When a view is compacted, how far, and with which instructions; see `CompactionOptions` for the rest.

    Args:
        system_prompt: instructions that stand before everything else.
    """

    system_prompt: str | None = None
