"""What a model sees of a history: the history itself, or a log of its own once something is shown otherwise.

Messages that are added stand behind what was there, so a view costs nothing and begins as the one before it. Tokens
are counted late: as long as a bound that needs no reading of texts is below the limit, nobody has to know them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, final

import attrs

from amplifier_kit.compaction.meters import most_tokens
from amplifier_sdk.history import MessageLog, MessageView
from amplifier_sdk.messages import MessageDict

__all__ = ["Shown", "ShownLog", "gaps"]

INSERTED: Final = -1
"""The number of what is in no history: a factory's instructions, notices."""


class Shown(NamedTuple):
    """A message as a model sees it, its number in the history, and its tokens by the meter."""

    number: int
    message: MessageDict
    tokens: int


@final
@attrs.define(eq=False)
class ShownLog:
    """The messages that a model sees of a history, with their numbers in it and their tokens.

    Args:
        history: the whole history, still empty.
        count: counts a message.
    """

    _history: MessageLog
    _count: Callable[[MessageDict], int]
    _log: MessageLog = attrs.field(init=False)
    _numbers: list[int] | None = attrs.field(default=None, init=False)
    """`None` while the history itself is shown."""
    _counts: list[int] = attrs.field(factory=list, init=False)
    _known: int = attrs.field(default=0, init=False)
    _bound: int = attrs.field(default=0, init=False)
    _head: MessageDict | None = attrs.field(default=None, init=False)
    _past: tuple[int, int] = attrs.field(default=(0, 0), init=False)
    """How much of the history was counted, and its tokens."""

    def __attrs_post_init__(self) -> None:
        self._log = self._history

    @property
    def messages(self) -> int:
        """How many messages of the history are shown."""
        if self._numbers is None:
            return len(self._log)
        return len(self._numbers) - self._numbers.count(INSERTED)

    @property
    def most(self) -> int:
        """A figure that the tokens shown are not above by a built-in meter."""
        return self._known + self._bound

    @property
    def tokens(self) -> int:
        """The tokens shown; each message is counted once."""
        self._measure()
        return self._known

    @property
    def history_tokens(self) -> int:
        """The tokens of the whole history."""
        if self._numbers is None:
            return self.tokens
        counted, tokens = self._past
        tokens += sum(
            self._count(self._history.stored(number))
            for number in range(counted, len(self._history))
        )
        self._past = (len(self._history), tokens)
        return tokens

    @property
    def head_tokens(self) -> int:
        """The tokens of what stands before the history."""
        if self._head is not None:
            return self._counts[0]
        return 0

    @property
    def left_out(self) -> list[tuple[int, int]]:
        """The numbers of the messages that are not shown, as ranges (first, last), both included."""
        if self._numbers is None:
            return []
        return gaps(
            [number for number in self._numbers if number != INSERTED],
            len(self._history),
        )

    @property
    def items(self) -> list[Shown]:
        """What is shown of the history, counted."""
        self._measure()
        numbers = range(len(self._log)) if self._numbers is None else self._numbers
        shown = zip(numbers, self._log.view(), self._counts, strict=True)
        return [
            Shown(number, message, tokens)
            for number, message, tokens in shown
            if number != INSERTED
        ]

    def view(self) -> MessageView:
        """Return what is shown at this moment."""
        return self._log.view()

    def added(
        self, message: MessageDict, shown: MessageDict, limit: int | None = None
    ) -> None:
        """Take in the message that was just put behind the history.

        Args:
            message: what was put there.
            shown: the form in which it is shown.
            limit: what `most_tokens` says of that form, if it is known.
        """
        self._bound += most_tokens(shown) if limit is None else limit
        # as long as the history itself is shown, a view costs nothing and copies
        # nothing
        if self._numbers is None and shown is message:
            return
        number = len(self._history) - 1
        if self._numbers is None:
            self._log = MessageLog(self._history.view()[:number])
            self._numbers = list(range(number))
        self._log.append(shown)
        self._numbers.append(number)

    def begin_with(self, message: MessageDict | None) -> None:
        """Show a message before all others that is not in the history, instead of the one that was given before."""
        # the same text keeps the log, and with it the bytes that a vendor has
        # cached
        if message == self._head:
            return
        start = 1
        if self._head is None:
            start = 0
        numbers = self._numbers
        if numbers is None:
            numbers = list(range(len(self._log)))
        head = [] if message is None else [message]
        counts = [self._count(message) for message in head]
        self._measure()
        self._log = MessageLog([*head, *self._log.view()[start:]])
        self._numbers = [*(INSERTED for _ in head), *numbers[start:]]
        self._counts = [*counts, *self._counts[start:]]
        self._known = sum(self._counts)
        self._head = message

    def show(
        self,
        items: Sequence[Shown],
        notes: Sequence[MessageDict],
        *,
        before: int,
        length: int,
    ) -> None:
        """Show these messages of the history from now on, and what was added since they were drafted.

        Args:
            items: the messages, in the order of their numbers.
            notes: what stands among them, of no history.
            before: the number before which the notes stand.
            length: how many messages the history had when `items` were drafted.
        """
        # messages may have been added since the draft was made; they stay behind
        # it
        seen = len(self._log) - (len(self._history) - length)
        added = self._log.view()[seen:]
        numbers = range(len(self._log)) if self._numbers is None else self._numbers
        notices = [Shown(INSERTED, note, self._count(note)) for note in notes]
        if self._head is None:
            head = []
        else:
            head = [Shown(INSERTED, self._head, self._counts[0])]
        old = [item for item in items if item.number < before]
        shown = [*head, *old, *notices, *items[len(old) :]]
        self._numbers = [*(item.number for item in shown), *numbers[seen:]]
        self._log = MessageLog([*(item.message for item in shown), *added])
        self._counts = [item.tokens for item in shown]
        self._known = sum(self._counts)
        self._bound = sum(map(most_tokens, added))

    def _measure(self) -> None:
        """Count what is not counted yet."""
        for place in range(len(self._counts), len(self._log)):
            tokens = self._count(self._log.stored(place))
            self._counts.append(tokens)
            self._known += tokens
        self._bound = 0


def gaps(numbers: Sequence[int], length: int) -> list[tuple[int, int]]:
    """Return which numbers below `length` are missing among ascending ones, as ranges (first, last)."""
    return [
        (low + 1, high - 1)
        for low, high in pairwise([-1, *numbers, length])
        if high - low > 1
    ]
