"""A session that is open for writing: nobody else writes it meanwhile."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import attrs
from anyio import to_thread

from amplifier.app.store.amounts import subtracted
from amplifier.app.store.interrupted import InterruptedTurn, join_turns
from amplifier.app.store.journal import FileJournal
from amplifier.app.store.recorded import (
    RecordedComposition,
    write_changed,
    write_recorded,
)
from amplifier.app.store.records import SessionRecord, beginning_of
from amplifier.app.store.stored_questions import void_questions
from amplifier.app.store.transcript import Clean, Transcript
from amplifier_kit.files.appendlog import Damage
from amplifier_kit.files.atomic import write_private
from amplifier_sdk.journal import RecordedTurn
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import MessageDict

__all__ = [
    "EVENTS",
    "JOURNAL",
    "MADE_OF",
    "METADATA",
    "TRANSCRIPT",
    "SessionWriter",
    "unrecorded",
    "with_turn",
    "write_record",
]

METADATA: Final = "metadata.json"
TRANSCRIPT: Final = "transcript.jsonl"
JOURNAL: Final = "journal.jsonl"
EVENTS: Final = "served.jsonl"
MADE_OF: Final = "config.md"
"""The files of a session."""


@attrs.define(eq=False)
class SessionWriter:
    """A stored session and its writer; `SessionStore.open` opens and closes it.

    Args:
        folder: where it is stored.
        record: who it is, as it is stored.
        transcript: what was said.
        journal: what the running turn does; register it as `session.journal`.
    """

    folder: Path
    record: SessionRecord
    transcript: Transcript
    journal: FileJournal
    _clean: Clean | None = None
    _noting: anyio.Lock = attrs.field(factory=anyio.Lock)

    def __attrs_post_init__(self) -> None:
        turns = unrecorded(self.journal.turns, self.transcript.last_turn)
        moved = join_turns(self.journal.turns[: len(self.journal.turns) - len(turns)])
        if moved is not None:
            # The process ended before the record said what it spent.
            self.record = with_turn(self.record, moved)
        self.journal.turns = turns
        self.transcript.forget(turn.turn_id for turn in self.journal.turns)

    @property
    def messages(self) -> list[MessageDict]:
        """The history to continue, without system messages: what was stored, and the turn that was interrupted."""
        if self.interrupted is None:
            return self.transcript.messages
        return [*self.transcript.messages, *self.interrupted.messages]

    @property
    def spending(self) -> Mapping[str, JSONValue]:
        """What the session has spent in all: what the journal of a turn that was cut off says, else the record.

        Records of earlier versions have tokens and cost alone.
        """
        turn = self.interrupted
        if turn is None:
            return self.record.account
        return turn.total(self.record.account)

    @property
    def interrupted(self) -> InterruptedTurn | None:
        """The turn that was running when the program ended last; `None` when none was."""
        return join_turns(self.journal.turns)

    def recorded(self, turn_id: str) -> RecordedTurn | None:
        """Return what the journal has of a turn that did not come to its end; `None` where it is none of it."""
        return self.journal.recorded(turn_id, self.record.account)

    def has_ended(self, turn_id: str) -> bool:
        """Whether a turn was the last one and came to its end."""
        turns = self.journal.turns
        if turns:
            return turns[-1].turn_id == turn_id and turns[-1].has_ended
        return self.transcript.last_turn == turn_id

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What could not be read; it is moved aside."""
        return (*self.transcript.damage, *self.journal.damage)

    @property
    def clean(self) -> Clean | None:
        """What takes secrets out of what is written."""
        return self._clean

    def clean_with(self, clean: Clean | None) -> None:
        """Say what takes secrets out of what is written from now on."""
        self._clean = clean
        self.journal.clean_with(clean)

    async def describe(self, text: str) -> None:
        """Note what the session is made of, in the file `config.md`; nothing is written when that says it already.

        Raises:
            OSError: it was not stored.
        """
        data = text.encode("utf-8", "replace")
        await to_thread.run_sync(write_changed, self.folder / MADE_OF, data)

    async def record_composition(
        self,
        recorded: RecordedComposition,
        *,
        provider: str | None,
        model: str | None,
        instructions: Sequence[str] = (),
    ) -> None:
        """Store what the session is made of, and who answers in it; of a child, whose record has its plan, that.

        Raises:
            ConfigError: it is too large to be read again.
            OSError: it was not stored.
        """
        changed = attrs.evolve(
            self.record,
            provider=provider,
            model=model,
            instructions=tuple(instructions),
        )
        if self.record.parent_id is not None and self.record.plan is not None:
            changed = attrs.evolve(changed, plan=recorded.plan)
        else:
            await to_thread.run_sync(write_recorded, self.folder, recorded)
            changed = attrs.evolve(changed, has_composition=True)
        if changed != self.record:
            await self.write(changed)

    async def note_prompt(self, prompt: str) -> None:
        """Note how the first prompt begins; call it before the turn."""
        if self.record.prompt or not prompt.strip():
            return
        if self._clean is not None:
            # The prompt may hold a secret, which lists of sessions would show.
            message: MessageDict = {"role": "user", "content": prompt}
            prompt = str((await to_thread.run_sync(self._clean, message))["content"])
        async with self._noting:
            await self.write(attrs.evolve(self.record, prompt=beginning_of(prompt)))

    async def note_turn(
        self,
        messages: Sequence[MessageDict],
        *,
        spending: Mapping[str, JSONValue] | None = None,
    ) -> None:
        """Store how the journal's turn left the history; the journal begins anew.

        Args:
            messages: the whole history; system messages are left out.
            spending: what the session has spent in all, as `Spending.to_dict` writes it; `None` for as before.

        Raises:
            OSError: it was not stored; the journal still has the turn.
        """
        said = [message for message in messages if message.get("role") != "system"]
        async with self._noting:
            record = attrs.evolve(self.record, turn_count=self.record.turn_count + 1)
            if spending is not None:
                record = record.with_spending(spending)
            await self.store_turn(self.journal.turn_id or "", said, record)

    async def note_spending(self, spending: Mapping[str, JSONValue]) -> None:
        """Store what the session has spent in all, between two turns.

        Raises:
            OSError: it was not stored.
        """
        async with self._noting:
            await self.write(self.record.with_spending(spending))

    async def store_turn(
        self, turn_id: str, messages: Sequence[MessageDict], record: SessionRecord
    ) -> None:
        """Store how a turn left the history, every message of it, then clear the journal.

        Args:
            turn_id: the turn.
            messages: the whole history.
            record: who the session is by now, but for when it was updated.

        Raises:
            OSError: it was not stored; the journal still has the turn.
        """
        # In this order: a process that ends in between leaves the turn in both, never in none,
        # and what it spent in the journal until the record says it.
        await self.transcript.store(turn_id, messages, self._clean)
        await self.write(attrs.evolve(record, updated=time.time()))
        await self.journal.begin_anew()

    def say_in_doubt(self, note: str) -> None:
        """Say more, to the model, of the calls whose end is not known; call it before `settle`."""
        self.journal.turns = tuple(turn.with_note(note) for turn in self.journal.turns)

    async def settle(self) -> InterruptedTurn | None:
        """Store what the journal has and the transcript does not; return a turn that did not come to its end.

        What that turn asked takes no answer any more.

        Raises:
            OSError: it was not stored; the journal still has it.
        """
        turn = self.interrupted
        if turn is None:
            return None
        # first, so that what it asked is closed wherever it is over
        await to_thread.run_sync(void_questions, self.folder, turn.turn_id)
        await self.journal.note_charges()
        turn_count = self.record.turn_count + len(self.journal.turns)
        record = with_turn(attrs.evolve(self.record, turn_count=turn_count), turn)
        await self.store_turn(turn.turn_id, self.messages, record)
        if turn.has_ended and not turn.in_doubt:
            return None
        return turn

    async def write(self, record: SessionRecord) -> None:
        """Store another record of the same session.

        Raises:
            ConfigError: it is too large to be read again.
            OSError: it was not stored.
        """
        await to_thread.run_sync(partial(write_record, self.folder, record))
        self.record = record


def unrecorded(
    turns: Sequence[InterruptedTurn], last_turn: str | None
) -> tuple[InterruptedTurn, ...]:
    """Return the turns of a journal that a transcript whose last turn is known does not have."""
    known = next(
        (number for number, turn in enumerate(turns, 1) if turn.turn_id == last_turn), 0
    )
    return tuple(turns[known:])


def with_turn(record: SessionRecord, turn: InterruptedTurn) -> SessionRecord:
    """Return the record of a session with what a turn that was cut off spent, and owes; twice is as once."""
    before = record.account
    total = turn.total(before)
    if turn.spending is None and not turn.owed:
        return record
    if turn.works_for and record.owed.get("turn_id") != turn.turn_id:
        owed: JSONObject = {
            "turn_id": turn.turn_id,
            "works_for": turn.works_for,
            "spent": {**subtracted(total, before)},
        }
        record = attrs.evolve(record, owed=owed)
    return record.with_spending(total)


def write_record(folder: Path, record: SessionRecord) -> None:
    """Write a session's record, all at once.

    Raises:
        ConfigError: it is too large to be read again; the old one stays.
        OSError: the system refuses; likewise.
    """
    write_private(folder / METADATA, record.to_bytes())
