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
    "CallFinished",
    "CallStarted",
    "Journal",
    "JournalRecord",
    "MessageWritten",
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
    TurnStarted | MessageWritten | CallStarted | CallFinished | TurnEnded
)
"""One line of the journal."""


@runtime_checkable
class Journal(Protocol):
    """Where records go; a record is stored when `append` returns."""

    async def append(self, record: JournalRecord) -> None:
        """Store one record.

        Raises:
            Exception: storing failed; the turn stops rather than run ahead of its journal.
        """
