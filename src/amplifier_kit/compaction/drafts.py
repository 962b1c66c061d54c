"""A draft of a smaller view: what is shortened and what is left out, level by level, until it fits its target."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from math import ceil
from typing import Final

from amplifier_kit.compaction.options import CompactionOptions
from amplifier_kit.compaction.pieces import (
    RESULT_ROLES,
    TurnSpan,
    calls_of,
    latest_prompt,
    result_ids,
    split,
)
from amplifier_kit.compaction.shown import Shown
from amplifier_kit.compaction.strategies import Order, oldest_first
from amplifier_kit.compaction.truncation import shortened
from amplifier_sdk.history import MessageLog
from amplifier_sdk.messages import MessageDict

__all__ = ["LEVELS", "ViewDraft"]

LEVELS: Final = (
    "shorten a quarter of the tool results",
    "shorten half of the tool results",
    "leave out steps before the newest four fifths",
    "shorten three quarters of the tool results",
    "leave out steps before the newest three fifths",
    "shorten all tool results but the newest",
    "leave out steps before the protected part",
    "shorten the first prompt",
    "leave out all but the running step",
    "shorten the newest tool results too",
)
"""What each level does, from 1 on; a view takes only as much of them as it needs.

Where age is not what decides, steps of all ages before the protected part go from level 3 on.
"""

FOUR_FIFTHS: Final = 0.8
THREE_FIFTHS: Final = 0.6


class ViewDraft:
    """A view that gets smaller; whoever made it decides whether it is taken.

    Args:
        shown: what the model sees by now of the history, in order.
        history: the whole of it.
        options: what is protected.
        pinned: the ids of calls that stay, with their results.
        count: counts a message.
        order: which steps go first.
    """

    def __init__(
        self,
        shown: Sequence[Shown],
        history: MessageLog,
        options: CompactionOptions,
        *,
        pinned: Collection[str],
        count: Callable[[MessageDict], int],
        order: Order,
    ) -> None:
        self.tokens: int = sum(item.tokens for item in shown)
        self.length: int = len(history)
        self.level: int = 0
        self._shortened: list[int] = []
        self.left_out: set[int] = set()
        self._shown = list(shown)
        self._history = history
        self._options = options
        self._count = count
        self._order = order
        self._goes_by_age = order is oldest_first
        self._messages = [item.message for item in shown]
        self._turns = split(self._messages)
        self._running = _running_step(self._turns, latest_prompt(self._messages))
        self._pinned = _pinned_calls(self._messages, pinned, options.pinned_tools or ())

    def shrink(self, target: float) -> None:
        """Go up the levels until the view has at most `target` tokens or nothing is left to do."""
        if self.tokens <= target:
            return
        for level, actions in enumerate(self._levels(), start=1):
            for action in actions:
                before = self.tokens
                action()
                if self.tokens < before:
                    self.level = level
                if self.tokens <= target:
                    return

    @property
    def shown(self) -> list[Shown]:
        """What the model sees then."""
        return [
            item for place, item in enumerate(self._shown) if place not in self.left_out
        ]

    @property
    def changed(self) -> int:
        """The number of the last message that is another or none now; -1 where all are as they were."""
        places = [*self._shortened, *self.left_out]
        return max((self._shown[place].number for place in places), default=-1)

    @property
    def shortened_numbers(self) -> list[int]:
        """The numbers of the messages that are shorter now."""
        return [self._shown[place].number for place in self._still_shortened]

    @property
    def lost(self) -> list[int]:
        """The numbers of the messages that are left out now."""
        return [self._shown[place].number for place in sorted(self.left_out)]

    def boundary_after(self, number: int) -> int:
        """Return the number of the first message behind this one that parts no call from its result.

        Where there is none, the last such message at all.
        """
        groups = [
            group
            for turn in self._turns
            for group in (turn.prompts, *turn.steps)
            if group
        ]
        bound, ends = 0, -1
        for group in sorted(groups, key=min):
            if group[0] > ends and group[0] not in self.left_out:
                bound = self._shown[group[0]].number
                if bound > number:
                    return bound
            ends = max(ends, group[-1])
        return bound

    @property
    def stubbed(self) -> int:
        """How many prompts are shorter now."""
        return sum(
            self._messages[place].get("role") not in RESULT_ROLES
            for place in self._still_shortened
        )

    @property
    def truncated(self) -> int:
        """How many tool results are shorter now."""
        return len(self._still_shortened) - self.stubbed

    @property
    def _still_shortened(self) -> list[int]:
        return [place for place in self._shortened if place not in self.left_out]

    def _levels(self) -> Iterator[Iterator[Callable[[], None]]]:
        """Yield each level's actions; they are worked out when the level is reached."""
        results = self._results()
        older = results[: max(0, len(results) - self._options.protected_tool_results)]
        first = next((turn for turn in self._turns if self._is_question(turn)), None)
        recent = self._options.protected_recent
        yield self._shorten(older[: ceil(len(older) / 4)])
        yield self._shorten(older[: ceil(len(older) / 2)])
        yield self._leave_out(
            max(recent, FOUR_FIFTHS if self._goes_by_age else 0), first
        )
        yield self._shorten(older[: ceil(len(older) * 3 / 4)])
        yield self._leave_out(
            max(recent, THREE_FIFTHS if self._goes_by_age else 0), first
        )
        yield self._shorten(older)
        yield self._leave_out(recent, first)
        yield self._shorten(self._stubs(first))
        yield self._leave_out(0, None)
        yield self._shorten(results)

    def _stubs(self, first: TurnSpan | None) -> list[int]:
        """Return the places of the first prompt, unless the model has to answer it now."""
        if first is None or first.is_latest:
            return []
        return [place for place in first.prompts if not self._is_pinned(place)]

    def _results(self) -> list[int]:
        """Return the places of the tool results that may be shortened, the oldest first."""
        return [
            place
            for place, message in enumerate(self._messages)
            if message.get("role") in RESULT_ROLES and not self._is_pinned(place)
        ]

    def _is_question(self, turn: TurnSpan) -> bool:
        return any(
            self._messages[place].get("role") == "user" for place in turn.prompts
        )

    def _is_pinned(self, place: int) -> bool:
        message = self._messages[place]
        metadata = message.get("metadata")
        if isinstance(metadata, Mapping) and metadata.get("pinned") is True:
            return True
        if not self._pinned:
            return False
        return not self._pinned.isdisjoint(
            (*result_ids(message), *(call_id for call_id, _ in calls_of(message)))
        )

    def _shorten(self, places: Sequence[int]) -> Iterator[Callable[[], None]]:
        for place in places:
            if place not in self.left_out:
                yield partial(self._shorten_one, place)

    def _shorten_one(self, place: int) -> None:
        item = self._shown[place]
        # What is shown may be short of the whole already, and the note has to tell of all that is missing.
        message = shortened(
            self._history.stored(item.number), self._options.truncate_chars, item.number
        )
        tokens = item.tokens
        if message is not item.message:
            tokens = self._count(message)
        # the note about what is missing may take more than was saved
        if tokens < item.tokens:
            self.tokens -= item.tokens - tokens
            self._shown[place] = Shown(item.number, message, tokens)
            self._shortened.append(place)

    def _leave_out(
        self, protected: float, spared: TurnSpan | None
    ) -> Iterator[Callable[[], None]]:
        """Yield what leaves out the steps before the protected part, each with its prompt when it was its last.

        Args:
            protected: the newest part of the messages that stays.
            spared: the turn whose prompts stay.
        """
        border = len(self._shown) * (1 - protected)
        turns: dict[int, TurnSpan] = {}
        groups: list[list[int]] = []
        for turn in self._turns:
            for group in self._groups(turn, spared):
                # a step goes as a whole: a call without its result would be
                # refused by vendors
                if group[-1] < border and self._may_go(group):
                    turns[group[0]] = turn
                    groups.append(group)
        for step in self._order(self._messages, groups):
            yield partial(self._leave_out_one, step, turns[step[0]], spared)

    def _groups(self, turn: TurnSpan, spared: TurnSpan | None) -> list[list[int]]:
        """Return what is left of a turn, in what goes together: its steps; when none is left, its prompts."""
        steps = [step for step in turn.steps if step[0] not in self.left_out]
        if steps:
            return steps
        is_left = bool(turn.prompts) and turn.prompts[0] not in self.left_out
        if is_left and self._may_lose_prompts(turn, spared):
            return [turn.prompts]
        return []

    def _may_lose_prompts(self, turn: TurnSpan, spared: TurnSpan | None) -> bool:
        return not turn.is_latest and turn is not spared and self._may_go(turn.prompts)

    def _may_go(self, group: Sequence[int]) -> bool:
        return group is not self._running and not any(map(self._is_pinned, group))

    def _leave_out_one(
        self, group: Sequence[int], turn: TurnSpan, spared: TurnSpan | None
    ) -> None:
        self._remove(group)
        if self.left_out.issuperset(
            step[0] for step in turn.steps
        ) and self._may_lose_prompts(turn, spared):
            self._remove(turn.prompts)

    def _remove(self, group: Sequence[int]) -> None:
        gone = [place for place in group if place not in self.left_out]
        self.tokens -= sum(self._shown[place].tokens for place in gone)
        self.left_out.update(gone)


def _running_step(turns: Sequence[TurnSpan], latest: int) -> list[int] | None:
    """Return the last step if it is behind the latest prompt: the model has not answered it yet."""
    steps = [step for turn in turns for step in turn.steps]
    last = max(steps, key=lambda step: step[-1], default=None)
    if last is not None and last[-1] > latest:
        return last
    return None


def _pinned_calls(
    messages: Sequence[MessageDict], pinned: Collection[str], tools: Collection[str]
) -> frozenset[str]:
    """Return the ids of the calls that stay: the given ones, and all calls of the given tools."""
    if not tools:
        return frozenset(pinned)
    of_tools = {
        call_id
        for message in messages
        for call_id, name in calls_of(message)
        if name in tools
    }
    named = {
        call_id
        for message in messages
        if message.get("name") in tools
        for call_id in result_ids(message)
    }
    return frozenset((*pinned, *of_tools, *named))
