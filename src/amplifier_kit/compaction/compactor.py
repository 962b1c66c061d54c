"""The compaction of a view: decides what goes, announces it, shows the rest, reports it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, cast, final

import anyio
import attrs

from amplifier_kit.compaction.drafts import ViewDraft
from amplifier_kit.compaction.left_out import NAME
from amplifier_kit.compaction.notices import Loss, notice
from amplifier_kit.compaction.options import CompactionOptions
from amplifier_kit.compaction.reports import Figures, announce, report, warn
from amplifier_kit.compaction.scales import Scale
from amplifier_kit.compaction.shown import ShownLog, gaps
from amplifier_kit.compaction.strategies import by_importance, oldest_first
from amplifier_kit.compaction.summaries import summarize, summary_message
from amplifier_sdk.chat import Usage
from amplifier_sdk.compaction import CompactionResult
from amplifier_sdk.contracts import Coordinator, Provider
from amplifier_sdk.events import ContextCompaction
from amplifier_sdk.history import MessageLog
from amplifier_sdk.messages import MessageDict

__all__ = ["Compactor"]

SHARE: Final = 4
"""A notice takes at most this part of the target, and so does a summary."""

READ: Final = 0.75
"""The part of the budget that the conversation takes in the request for a summary."""

OFTEN: Final = 4
"""A compaction with fewer new messages than this since the one before it comes too often."""

_ORDERS: Final = {
    "progressive": oldest_first,
    "importance": by_importance,
    "summarize": oldest_first,
}


@attrs.frozen(kw_only=True)
class _Request:
    """What a view is compacted for; `target` is in the meter's tokens, without the tools."""

    budget: int
    target: float
    provider: Provider | None


@final
@attrs.define(eq=False)
class Compactor:
    """Compacts the views of one history, one at a time.

    Args:
        options: when and how.
        coordinator: the session's.
        scale: counts.
        log: the history.
        shown: what the model sees of it.
        pinned: the ids of calls that stay; it may grow.
    """

    _options: CompactionOptions
    _coordinator: Coordinator
    _scale: Scale
    _log: MessageLog
    _shown: ShownLog
    _pinned: Collection[str]
    _lock: anyio.Lock = attrs.field(factory=anyio.Lock, init=False)
    _breaker: _RunawayBreaker = attrs.field(init=False)
    _shortened: set[int] = attrs.field(factory=set, init=False)
    _changed: int = attrs.field(default=-1, init=False)
    _level: int = attrs.field(default=0, init=False)
    _summary: str = attrs.field(default="", init=False)
    _is_warned: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._breaker = _RunawayBreaker(self._options.runaway_limit)

    async def fit(self, budget: int, provider: Provider | None) -> None:
        """Compact the view if it is larger than the threshold; say so where it stays larger than the budget."""
        async with self._lock:
            # checked anew under the lock: the view may have been compacted while
            # this waited
            if not self.is_needed(budget, provider):
                self._is_warned = False
                return
            factor = self._scale.factor(provider)
            # the meter counts in its own unit, and the tools are sent whatever is
            # compacted
            target = budget * self._options.target / factor - self._scale.tools
            request = _Request(budget=budget, target=target, provider=provider)
            await self._compact(request)
            opened = self._breaker.record(
                len(self._log), reached=self._shown.tokens <= target
            )
            await self._complain(budget, provider, opened=opened)

    def is_needed(self, budget: int, provider: Provider | None) -> bool:
        """Tell whether a view is larger than the threshold; with the breaker open, than the whole budget."""
        return self._load(provider) > budget * (
            1.0 if self._breaker.is_open else self._options.threshold
        )

    async def compact(self) -> CompactionResult:
        """Compact the view to `target_usage` of what it is."""
        async with self._lock:
            before = self._figures(None)
            tokens = self._shown.tokens
            request = _Request(
                budget=tokens, target=tokens * self._options.target_usage, provider=None
            )
            strategy = await self._compact(request)
            after = self._figures(None)
        return CompactionResult(
            before_messages=before.messages,
            after_messages=after.messages,
            before_tokens=before.tokens,
            after_tokens=after.tokens,
            strategy=strategy,
        )

    def _load(self, provider: Provider | None) -> float:
        return (self._shown.tokens + self._scale.tools) * self._scale.factor(provider)

    async def _compact(self, request: _Request) -> str:
        """Show less, if anything can go; return the strategy that was followed."""
        draft = self._draft(request.target)
        # nothing that may go would make it smaller
        if draft.level == 0:
            return self._options.strategy
        before = self._figures(request.provider)
        system = sum(message.get("role") == "system" for message in self._log.view())
        # before anything changes, so that a handler can store what is about to be
        # left out
        await announce(self._coordinator.hooks, before, self._options.strategy)
        # the last await before the view changes: messages may be added until
        # here, and `show` puts them behind
        strategy, usage = await self._summarize(draft, request)
        self._apply(draft, request.target)
        after = self._figures(request.provider)
        figures = ContextCompaction(
            before_tokens=before.tokens,
            after_tokens=after.tokens,
            before_messages=before.messages,
            after_messages=after.messages,
            messages_removed=len(draft.left_out),
            messages_truncated=draft.truncated,
            user_messages_stubbed=draft.stubbed,
            strategy_level=draft.level,
            budget=request.budget,
            target_tokens=int(request.target),
            protected_recent=self._options.protected_recent,
            protected_tool_results=self._options.protected_tool_results,
            system_messages_preserved=system,
            left_out=self._shown.left_out,
        )
        await report(self._coordinator.hooks, before, after, strategy, figures, usage)
        return strategy

    def _draft(self, target: float) -> ViewDraft:
        draft = ViewDraft(
            self._shown.items,
            self._log,
            self._options,
            pinned=self._pinned,
            count=self._scale.count_message,
            order=_ORDERS[self._options.strategy],
        )
        reserved = self._most_of_notice(target) + self._most_of_summary(target)
        draft.shrink(target - self._shown.head_tokens - reserved)
        return draft

    def _most_of_notice(self, target: float) -> int:
        if not self._options.compaction_notice_enabled:
            return 0
        return min(
            self._options.compaction_notice_token_reserve, max(0, int(target)) // SHARE
        )

    def _most_of_summary(self, target: float) -> int:
        if self._options.strategy != "summarize":
            return 0
        return min(self._options.summary_tokens, max(0, int(target)) // SHARE)

    async def _summarize(
        self, draft: ViewDraft, request: _Request
    ) -> tuple[str, Usage | None]:
        """Ask for a summary where one is wanted; without an answer the plain strategy holds, and that is said."""
        strategy = self._options.strategy
        if strategy != "summarize" or not draft.left_out or self._breaker.is_open:
            return "progressive" if strategy == "summarize" else strategy, None
        lost = [self._log.stored(number) for number in draft.lost]
        try:
            provider = self._summarizer(request.provider)
            limit = int(request.budget * READ / self._scale.factor(request.provider))
            # the summary so far goes along, so that nothing is lost by being left
            # out twice
            text, usage = await summarize(
                lost,
                self._summary,
                provider,
                self._options,
                limit=limit,
                count=self._scale.count,
            )
        except Exception as error:
            # a foreign provider's; the view is compacted without it
            reason = str(error) or type(error).__name__
            await warn(
                self._coordinator.hooks,
                f"The conversation is compacted without a summary: {reason}",
            )
            return "progressive", None
        self._summary = text
        return strategy, usage

    def _summarizer(self, asked: Provider | None) -> Provider:
        name = self._options.summary_provider
        if name is None:
            if asked is None:
                raise LookupError(
                    "nobody is asked here; name a provider in 'summary_provider'"
                )
            return asked
        mounted = cast("Mapping[str, object]", self._coordinator.get("providers"))
        provider = mounted.get(name)
        if not isinstance(provider, Provider):
            raise LookupError(
                f"no provider {name!r} is mounted, which 'summary_provider' names"
            )
        return provider

    def _apply(self, draft: ViewDraft, target: float) -> None:
        """Show what the draft leaves; nothing is awaited here, so that a view is never half of this."""
        items = draft.shown
        self._level = max(self._level, draft.level)
        self._changed = max(self._changed, draft.changed)
        self._shortened.update(draft.shortened_numbers)
        # what is left out now is no longer shown in a shorter form
        self._shortened.intersection_update(item.number for item in items)
        notes = self._notes(gaps([item.number for item in items], draft.length), target)
        saved = self._shown.tokens - self._shown.head_tokens - draft.tokens
        # what is said would take more than what went
        if sum(map(self._scale.count_message, notes)) >= saved:
            notes = []
        self._shown.show(
            items,
            notes,
            before=draft.boundary_after(self._changed),
            length=draft.length,
        )

    def _notes(
        self, left_out: Sequence[tuple[int, int]], target: float
    ) -> list[MessageDict]:
        """Write what stands in the place of what is not shown."""
        options, notes = self._options, []
        if self._summary:
            notes.append(
                summary_message(
                    self._summary, self._most_of_summary(target), self._scale.count
                )
            )
        if (
            options.compaction_notice_enabled
            and self._level >= options.compaction_notice_min_level
        ):
            loss = Loss(
                left_out=left_out,
                shortened=sorted(self._shortened),
                messages=[
                    self._log.stored(n)
                    for first, last in left_out
                    for n in range(first, last + 1)
                ],
                tool=NAME if options.left_out_tool else None,
            )
            limit = self._most_of_notice(target)
            text = notice(
                loss, options.compaction_notice_verbosity, limit, self._scale.count
            )
            notes += [] if text is None else [text]
        return notes

    def _figures(self, provider: Provider | None) -> Figures:
        tokens = round(self._shown.tokens * self._scale.ratio(provider))
        return Figures(messages=self._shown.messages, tokens=tokens)

    async def _complain(
        self, budget: int, provider: Provider | None, *, opened: bool
    ) -> None:
        """Say, once until a view fits again, that it is larger than the budget, or that the breaker opened."""
        load = self._load(provider)
        if load > budget and not self._is_warned:
            self._is_warned = True
            await warn(
                self._coordinator.hooks,
                f"What must be shown takes about {load:,.0f} tokens of {budget:,}{self._reasons()}",
            )
        elif opened:
            times = f"The conversation was compacted {self._options.runaway_limit} times in a row to little avail"
            then = f"from now on it is compacted only when it is larger than its budget of {budget:,} tokens"
            await warn(self._coordinator.hooks, f"{times}: {then}{self._reasons()}")

    def _reasons(self) -> str:
        """Name what takes the room, and the remedy."""
        items = self._shown.items
        system = sum(
            item.tokens for item in items if item.message.get("role") == "system"
        )
        rest = sum(item.tokens for item in items) - system
        system += self._shown.head_tokens
        parts = f"tools {self._scale.tools:,}, system messages {system:,}, pins and the running turn {rest:,}"
        remedy = "Choose a model with a larger window or raise 'max_tokens', mount fewer tools, pin less"
        return f" ({parts}). {remedy}, or let tools return less"


@attrs.define(eq=False)
class _RunawayBreaker:
    """Counts compactions in a row that missed their target or came right after another: at `limit` it opens."""

    limit: int
    _in_a_row: int = 0
    _last: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether views are compacted only when they are larger than the whole budget."""
        return self._in_a_row >= self.limit

    def record(self, messages: int, *, reached: bool) -> bool:
        """Take in a compaction, or the try of one, of a history of so many messages; return whether it opened by it."""
        was_open = self.is_open
        often = self._last is not None and messages - self._last < OFTEN
        self._last = messages
        if reached and not often:
            self._in_a_row = 0
        else:
            self._in_a_row += 1
        return self.is_open and not was_open
