"""The settings of the simple context."""

from __future__ import annotations

import attrs

__all__ = ["ContextConfig"]


def _fraction(_: object, attribute: attrs.Attribute[float], value: object) -> None:
    if not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise ValueError(f"{attribute.name} is a fraction above 0 and up to 1; got {value!r}")


@attrs.frozen(kw_only=True)
class ContextConfig:
    """When a view is shortened, and how far.

    Args:
        max_tokens: the budget where the provider names no window.
        compact_threshold: the fraction of the budget above which a view is shortened.
        compaction_threshold: another name of the same; it wins where both are given.
        target_usage: the fraction of the budget that a shortened view aims at.
        system_prompt: instructions that stand before everything else.
    """

    max_tokens: int = attrs.field(default=200_000, validator=attrs.validators.gt(0))
    compact_threshold: float = attrs.field(default=0.92, validator=_fraction)
    compaction_threshold: float | None = attrs.field(default=None, validator=attrs.validators.optional(_fraction))
    target_usage: float = attrs.field(default=0.5, validator=_fraction)
    system_prompt: str | None = None

    @property
    def threshold(self) -> float:
        """The fraction of the budget above which a view is shortened."""
        return self.compact_threshold if self.compaction_threshold is None else self.compaction_threshold
