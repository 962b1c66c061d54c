"""What a turn is doing, written before it does it, so that a killed turn is known exactly afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, Self, TypeAlias

import attrs
from anyio import to_thread

from amplifier.app.store.amounts import Amounts, subtracted
from amplifier.app.store.interrupted import (
    CHILD_ENDED,
    WITHHELD_CALLS,
    InterruptedTurn,
    read_turns,
    recorded_turn,
    tool_calls_of,
)
from amplifier_kit.files.appendlog import (
    AppendLog,
    Damage,
    Durability,
    Expected,
)
from amplifier_sdk.convert import to_json
from amplifier_sdk.history import tool_message
from amplifier_sdk.journal import (
    CallAnswered,
    CallAsked,
    CallFinished,
    CallStarted,
    JournalRecord,
    MessageWritten,
    RecordedTurn,
    TurnEnded,
    TurnStarted,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.stores import LogEntry

__all__ = ["EXPECTED", "REMEDY", "FileJournal", "JournalReplica"]

REMEDY: Final = "'amplifier session repair' moves it aside"
"""What helps where a file of a session is no log."""

EXPECTED: Final = Expected(holds="journal", remedy=REMEDY)
"""What such a file is opened for."""

_KINDS: Final[Mapping[type[JournalRecord], str]] = {
    TurnStarted: "turn_started",
    MessageWritten: "message",
    CallStarted: "call_started",
    CallAsked: "call_asked",
    CallAnswered: "call_answered",
    CallFinished: "call_finished",
    TurnEnded: "turn_ended",
}

_Clean: TypeAlias = Callable[[MessageDict], MessageDict]


class JournalReplica(Protocol):
    """Where else the records of a journal stand; a turn does nothing before they do."""

    async def append(self, records: Sequence[LogEntry]) -> None:
        """Store records that the journal's file has by now; what it raises stops the turn."""

    async def begin_anew(self) -> None:
        """Store how the session stands now that its turns are in its transcript, and the empty journal."""


@attrs.define(eq=False)
class FileJournal:
    """The journal of a session, the capability `session.journal`; it holds what the transcript does not have yet.

    `turns` are those that it had when it was opened, `turn_id` is the one that it records now, and `works_for` the
    turn of the session's parent that this one is a part of. `replica` gets every record as well, where there is one.
    `before_turn` is what is done once, before the beginning of the next turn is recorded.
    """

    _log: AppendLog
    turns: tuple[InterruptedTurn, ...]
    _records: tuple[LogEntry, ...] = ()
    turn_id: str | None = None
    works_for: str = ""
    replica: JournalReplica | None = None
    before_turn: list[Callable[[], Awaitable[None]]] = attrs.field(factory=list)
    _clean: _Clean | None = None
    _charges: list[tuple[str, str, str, Amounts]] = attrs.field(factory=list)

    @classmethod
    async def open(cls, path: Path, durability: Durability = "written") -> Self:
        """Open the file of a session, or begin one.

        Raises:
            LockedError: somebody else writes it.
            LogFormatError: it is something else, or a newer version's.
            OSError: the system refuses.
        """
        log = await AppendLog.open(path, holds=EXPECTED, durability=durability)
        records = tuple(log.take())
        return cls(log, read_turns(records), records)

    def recorded(self, turn_id: str, before: Amounts) -> RecordedTurn | None:
        """Return what it had of a turn, the last one and not ended, when it was opened; `None` of any other.

        Args:
            turn_id: the turn.
            before: what the session had spent before the turn.
        """
        if not self.turns:
            return None
        last = self.turns[-1]
        if last.turn_id != turn_id or last.has_ended:
            return None
        spent = subtracted(last.total(before), before)
        return attrs.evolve(recorded_turn(self._records, turn_id), spending=spent)

    @property
    def durability(self) -> Durability:
        """What a record means: it outlives the process, or also a power failure."""
        return self._log.durability

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What could not be read."""
        return self._log.damage

    def clean_with(self, clean: _Clean | None) -> None:
        """Say what returns the message that the file gets in a message's place."""
        self._clean = clean

    async def append(self, record: JournalRecord) -> None:
        """Store one record.

        Raises:
            OSError: it was not stored; the turn stops.
        """
        if isinstance(record, TurnStarted):
            while self.before_turn:
                await self.before_turn[0]()
                del self.before_turn[0]
        written = record
        if self._clean is not None:
            written = await to_thread.run_sync(_cleaned, record, self._clean)
        data = to_json(written)
        withheld = [*_withheld(record, written)]
        if withheld and isinstance(data, dict):
            data = {**data, WITHHELD_CALLS: withheld}
        if isinstance(record, TurnStarted) and isinstance(data, dict):
            data = {**data, "works_for": self.works_for}
        await self._write(_KINDS[type(record)], data)
        self.turn_id = record.turn_id

    async def note_child(self, session_id: str, turn_id: str, spent: Amounts) -> None:
        """Note what a turn of a child spent that ends now.

        The running turn's own records say it only when its call of the child has ended.

        Raises:
            OSError: it was not stored.
        """
        if self.turn_id is not None:  # else nothing runs that it could be cut off with
            await self._note_child(self.turn_id, session_id, turn_id, spent)

    def charge_child(self, session_id: str, turn_id: str, spent: Amounts) -> None:
        """Let the last of `turns` count what a turn of a child spent that was cut off with it; see `note_charges`."""
        *before, last = self.turns
        self._charges.append((last.turn_id, session_id, turn_id, spent))
        charged = attrs.evolve(
            last,
            owed=(*last.owed, spent),
            children=last.children | {(session_id, turn_id)},
        )
        self.turns = (*before, charged)

    async def note_charges(self) -> None:
        """Store what `charge_child` let the turns count: they are over.

        Raises:
            OSError: it was not stored.
        """
        while self._charges:
            await self._note_child(*self._charges[0])
            del self._charges[0]

    async def begin_anew(self) -> None:
        """Forget the turns, which are in the transcript.

        Raises:
            OSError: the system refuses; the journal is as it was, and does no harm.
        """
        self.turns, self._records = (), ()
        await self._log.replace(())
        if self.replica is not None:
            await self.replica.begin_anew()

    async def aclose(self) -> None:
        """Close the file."""
        await self._log.aclose()

    async def _note_child(
        self, turn_id: str, child: str, child_turn: str, spent: Amounts
    ) -> None:
        data: JSONObject = {
            "turn_id": turn_id,
            "child": child,
            "child_turn": child_turn,
            "spent": {**spent},
        }
        await self._write(CHILD_ENDED, data)

    async def _write(self, kind: str, data: JSONValue) -> None:
        await self._log.append(kind, data)
        records = self._log.take()
        if self.replica is not None:
            await self.replica.append(records)


def _cleaned(record: JournalRecord, clean: _Clean) -> JournalRecord:
    """Return a record without secrets in what was said; what says which turn and call it is stays."""
    match record:
        case TurnStarted(prompt=prompt):
            said: MessageDict = {"role": "user", "content": prompt}
            return attrs.evolve(record, prompt=_text(clean(said)))
        case MessageWritten(message=message):
            return attrs.evolve(record, message=clean(message))
        case CallFinished(call_id=call, output=output):
            answer = clean(tool_message(call, "", output))
            return attrs.evolve(record, output=_text(answer))
        case CallStarted() | CallAsked() | CallAnswered() | TurnEnded():
            return record


def _withheld(record: JournalRecord, written: JournalRecord) -> Iterator[str]:
    """Yield the ids of the calls of a message that are not written as the model made them."""
    match record, written:
        case MessageWritten(message=made), MessageWritten(message=held) if made != held:
            stored = tool_calls_of(held)
            for call_id, arguments in tool_calls_of(made).items():
                if stored.get(call_id) != arguments:
                    yield call_id
        case _:
            return


def _text(message: MessageDict) -> str:
    return str(message.get("content"))
