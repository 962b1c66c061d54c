"""The settings of a context that compacts."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from amplifier_sdk.bounds import fraction, share
from amplifier_sdk.values import Value

__all__ = ["CompactionOptions", "MeterName", "StrategyName", "Verbosity"]

StrategyName: TypeAlias = Literal["progressive", "importance", "summarize"]
"""How a context chooses what to leave out."""

MeterName: TypeAlias = Literal["actual", "estimate", "bpe"]
"""How tokens are counted."""

Verbosity: TypeAlias = Literal["minimal", "normal", "verbose"]
"""How detailed a notice is about what the model does not see."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class CompactionOptions(Value):
    """When a view is compacted, how far, and what the model reads about it.

    Args:
        max_tokens: the budget where the provider names no window.
        compact_threshold: the fraction of the budget above which a view is compacted.
        compaction_threshold: another name of the same; it wins where both are given.
        target_usage: the fraction of the budget that a compacted view aims at.
        output_reserve_fraction: the part of the provider's longest answer that is reserved in the window.
        protected_recent: the newest part of the messages that stays until nothing else is left to leave out.
        protected_tool_results: how many of the newest tool results are not shortened.
        pinned_tools: the tools whose results always stay, whole.
        truncate_chars: how many characters of a shortened tool result or prompt are shown.
        max_tool_result_bytes: the longest tool result that is ever shown whole.
        strategy: `progressive` leaves out the oldest first, `importance` what matters least, `summarize` the
            oldest, with a summary by a model in its place.
        token_meter: `estimate` counts words, `actual` corrects that by the usage which the provider reports, `bpe`
            counts as OpenAI's models do (needs `amplifier[tokens]`) and corrects it as well.
        token_margin: how much larger than counted a view is taken to be.
        compaction_notice_enabled: whether a notice says what the model does not see.
        compaction_notice_token_reserve: the most tokens that a notice takes.
        compaction_notice_verbosity: how detailed the notice is.
        compaction_notice_min_level: the level of compaction from which on there is a notice.
        left_out_tool: whether the model gets a tool that reads what was left out.
        summary_provider: the name of the provider that summarises; default the one that is asked.
        summary_timeout: seconds after which a view is compacted without a summary.
        summary_tokens: the most tokens that a summary takes.
        runaway_limit: after how many compactions in a row that miss their target no more are tried until a view
            is larger than the whole budget.
    """

    max_tokens: int = attrs.field(default=200_000, validator=attrs.validators.gt(0))
    compact_threshold: float = attrs.field(default=0.92, validator=fraction)
    compaction_threshold: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(fraction)
    )
    target_usage: float = attrs.field(default=0.5, validator=fraction)
    output_reserve_fraction: float = attrs.field(default=0.5, validator=share)
    protected_recent: float = attrs.field(default=0.3, validator=share)
    protected_tool_results: int = attrs.field(
        default=5, validator=attrs.validators.ge(0)
    )
    pinned_tools: tuple[str, ...] | None = None
    truncate_chars: int = attrs.field(default=250, validator=attrs.validators.ge(1))
    max_tool_result_bytes: int = attrs.field(
        default=131_072, validator=attrs.validators.ge(1)
    )
    strategy: StrategyName = "progressive"
    token_meter: MeterName = "actual"  # noqa: S105  # tokens of a text, not of a login
    token_margin: float = attrs.field(default=0.05, validator=share)
    compaction_notice_enabled: bool = True
    compaction_notice_token_reserve: int = attrs.field(
        default=800, validator=attrs.validators.ge(0)
    )
    compaction_notice_verbosity: Verbosity = "normal"
    compaction_notice_min_level: int = attrs.field(
        default=1, validator=attrs.validators.ge(1)
    )
    left_out_tool: bool = False
    summary_provider: str | None = None
    summary_timeout: float = attrs.field(default=30.0, validator=attrs.validators.gt(0))
    summary_tokens: int = attrs.field(default=1_000, validator=attrs.validators.ge(1))
    runaway_limit: int = attrs.field(default=3, validator=attrs.validators.ge(1))

    @property
    def threshold(self) -> float:
        """The fraction of the budget above which a view is compacted."""
        if self.compaction_threshold is None:
            return self.compact_threshold
        return self.compaction_threshold

    @property
    def target(self) -> float:
        """The fraction of the budget that a compacted view aims at, never above the threshold."""
        return min(self.target_usage, self.threshold)
