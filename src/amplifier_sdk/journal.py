"""The journal: what the host writes down while a turn runs, so that nothing is in doubt afterwards.

Order: the prompt, the assistant message with its calls, a started mark per call, the call's effect, its
result, the end of the turn; and what enters the history besides. A call without a mark was not started; a call
with a mark and no result is in doubt. An application registers a `Journal` as the capability `session.journal`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import attrs

from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.values import Value

__all__ = [
    "CallAnswered",
    "CallAsked",
    "CallFinished",
    "CallStarted",
    "Journal",
    "JournalRecord",
    "MessageWritten",
    "RecordedAnswer",
    "RecordedTurn",
    "TurnEnded",
    "TurnStarted",
]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class TurnStarted(Value):
    """A turn begins with this prompt."""

    turn_id: str
    prompt: str


@attrs.frozen(kw_only=True, eq=False, repr=False)
class MessageWritten(Value):
    """The model's message, with its calls, before any of them starts; or what handlers inject, or a person typed.

    With the model's message comes `spending`: what the session has spent at that moment in all, as JSON data.
    """

    turn_id: str
    message: MessageDict
    # with the message, so that a crash behind it forgets nothing that was paid for
    spending: Mapping[str, JSONValue] | None = None


@attrs.frozen(kw_only=True, eq=False, repr=False)
class CallStarted(Value):
    """A tool call starts: from here on its effect may exist."""

    turn_id: str
    call_id: str
    tool_name: str


@attrs.frozen(kw_only=True, eq=False, repr=False)
class CallAsked(Value):
    """A call whose tool asks before it does anything asks a person: it has done nothing so far.

    `number` is the question's among those of the call.
    """

    turn_id: str
    call_id: str
    number: int


@attrs.frozen(kw_only=True, eq=False, repr=False)
class CallAnswered(Value):
    """A question of a call was answered: from here on its effect may exist."""

    turn_id: str
    call_id: str
    number: int


@attrs.frozen(kw_only=True, eq=False, repr=False)
class CallFinished(Value):
    """A tool call's result is known; `spending` is what the session has spent at that moment in all, as JSON data."""

    turn_id: str
    call_id: str
    success: bool
    output: str
    spending: Mapping[str, JSONValue] | None = None


@attrs.frozen(kw_only=True, eq=False, repr=False)
class TurnEnded(Value):
    """A turn ended and its history is closed."""

    turn_id: str
    status: Literal["completed", "cancelled", "failed"]


JournalRecord: TypeAlias = (
    TurnStarted
    | MessageWritten
    | CallStarted
    | CallAsked
    | CallAnswered
    | CallFinished
    | TurnEnded
)
"""One line of the journal."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class RecordedAnswer(Value):
    """What a journal has of one answer of the model.

    Args:
        message: the assistant message.
        started: the ids of its calls that were started.
        finished: the ends of its calls by their ids, as far as they are known.
        asked: the questions of its calls that nobody had answered, as pairs of the call's id and their number.
        withheld: the ids of its calls whose arguments are not recorded as they were, since they had a secret in them.
    """

    message: MessageDict
    started: frozenset[str] = frozenset()
    finished: Mapping[str, CallFinished] = attrs.field(factory=dict)
    withheld: frozenset[str] = frozenset()
    asked: frozenset[tuple[str, int]] = frozenset()

    def is_waiting(self, call_id: str) -> bool:
        """Whether a call waited for a person when it was left."""
        return any(asking == call_id for asking, _ in self.asked)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class RecordedTurn(Value):
    """A turn as its journal has it, from which it is continued after whoever ran it stopped in the middle.

    The turn runs from its beginning, and what is recorded is not repeated: the model is asked for no answer that is
    there, and no finished call runs again. A call that was started and has no end is in doubt, and runs again only
    where its tool is `idempotent`, or asks before it does anything and waited for the answer.

    Args:
        turn_id: the turn, as its records call it: 32 hexadecimal digits.
        answers: what the model answered, in order; none in a turn that begins now.
        is_begun: whether the journal has its beginning.
        spending: what the turn has spent so far, as JSON data.
    """

    turn_id: str
    answers: tuple[RecordedAnswer, ...] = ()
    is_begun: bool = False
    spending: Mapping[str, JSONValue] = attrs.field(factory=dict)


@runtime_checkable
class Journal(Protocol):
    """Where records go; a record is stored when `append` returns."""

    async def append(self, record: JournalRecord) -> None:
        """Store one record.

        Raises:
            Exception: storing failed; the turn stops rather than run ahead of its journal.
        """
