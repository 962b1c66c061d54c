"""A session that is open for writing: nobody else writes it meanwhile."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import attrs
from anyio import to_thread

from amplifier.app.store.journal import FileJournal, InterruptedTurn, join_turns
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.transcript import Clean, Transcript
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.kit.appendlog import Damage
from amplifier_sdk.kit.atomic import write_atomically
from amplifier_sdk.messages import MessageDict

__all__ = ["JOURNAL", "MADE_OF", "METADATA", "TRANSCRIPT", "KeptSession", "make_folder", "untold", "write_record"]

METADATA: Final = "metadata.json"
TRANSCRIPT: Final = "transcript.jsonl"
JOURNAL: Final = "journal.jsonl"
MADE_OF: Final = "config.md"
"""The files of a session."""

_PROMPT: Final = 120


@attrs.define(eq=False)
class KeptSession:
    """A stored session and its writer; `SessionStore.open` opens and closes it.

    Args:
        folder: where it is kept.
        record: who it is, as it is stored.
        transcript: what was said.
        journal: what the running turn does; register it as `session.journal`.
    """

    folder: Path
    record: SessionRecord
    transcript: Transcript
    journal: FileJournal
    _clean: Clean | None = None

    def __attrs_post_init__(self) -> None:
        self.journal.turns = untold(self.journal.turns, self.transcript.last_turn)
        self.transcript.forget(turn.turn_id for turn in self.journal.turns)

    @property
    def messages(self) -> list[MessageDict]:
        """The history to go on with, without system messages: what was stored, and the turn that was interrupted."""
        interrupted = self.interrupted
        return [*self.transcript.messages, *(interrupted.messages if interrupted is not None else ())]

    @property
    def interrupted(self) -> InterruptedTurn | None:
        """The turn that was running when the program ended last; `None` when none was."""
        return join_turns(self.journal.turns)

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
        await to_thread.run_sync(_note_made_of, self.folder, text.encode("utf-8", "replace"))

    async def note_prompt(self, prompt: str) -> None:
        """Note how the first prompt begins; call it before the turn."""
        if self.record.prompt or not prompt.strip():
            return
        if self._clean is not None:
            message: MessageDict = {"role": "user", "content": prompt}
            prompt = str((await to_thread.run_sync(self._clean, message))["content"])
        await self.write(attrs.evolve(self.record, prompt=" ".join(prompt.split())[:_PROMPT]))

    async def note_turn(
        self,
        messages: Sequence[MessageDict],
        *,
        usage: Mapping[str, int] | None = None,
        cost_usd: str | None = None,
    ) -> None:
        """Store how the turn that the journal tells left the history; the journal begins anew.

        Args:
            messages: the whole history; system messages are left out.
            usage: tokens of all turns by kind.
            cost_usd: what all turns cost, as decimal text.

        Raises:
            OSError: it was not stored; the journal still tells the turn.
        """
        kept = [message for message in messages if message.get("role") != "system"]
        await self.transcript.store(self.journal.turn_id or "", kept, self._clean)
        await self.journal.begin_anew()
        record = attrs.evolve(self.record, turn_count=self.record.turn_count + 1, updated=time.time())
        if usage is not None:
            record = attrs.evolve(record, usage=usage)
        if cost_usd is not None:
            record = attrs.evolve(record, cost_usd=cost_usd)
        await self.write(record)

    async def settle(self) -> InterruptedTurn | None:
        """Store what the journal tells and the transcript does not have; return a turn that did not come to its end.

        Raises:
            OSError: it was not stored; the journal still tells it.
        """
        turn = self.interrupted
        if turn is None:
            return None
        count = len(self.journal.turns)
        await self.transcript.store(turn.turn_id, self.messages)
        await self.journal.begin_anew()
        await self.write(attrs.evolve(self.record, turn_count=self.record.turn_count + count, updated=time.time()))
        return None if turn.has_ended and not turn.in_doubt else turn

    async def write(self, record: SessionRecord) -> None:
        """Store another record of the same session.

        Raises:
            OSError: it was not stored.
        """
        await to_thread.run_sync(partial(write_record, self.folder, record))
        self.record = record


def untold(turns: Sequence[InterruptedTurn], last_turn: str | None) -> tuple[InterruptedTurn, ...]:
    """Return the turns of a journal that a transcript whose last turn is known does not have."""
    known = next((number for number, turn in enumerate(turns, 1) if turn.turn_id == last_turn), 0)
    return tuple(turns[known:])


def make_folder(folder: Path) -> None:
    """Make a session's folder, and those above it that are missing, for this user alone.

    Raises:
        OSError: the system refuses.
    """
    for part in reversed((folder, *folder.parents)):
        if not part.exists():
            part.mkdir(mode=0o700, exist_ok=True)
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        folder.chmod(0o700)


def write_record(folder: Path, record: SessionRecord) -> None:
    """Write a session's record, all at once.

    Raises:
        OSError: the system refuses; the old one stays.
    """
    import json

    data: Mapping[str, JSONValue] = record.to_dict()
    _write(folder, METADATA, (json.dumps(data, indent=1, ensure_ascii=True) + "\n").encode())


def _note_made_of(folder: Path, data: bytes) -> None:
    file = folder / MADE_OF
    if not file.is_file() or file.read_bytes() != data:
        _write(folder, MADE_OF, data)


def _write(folder: Path, name: str, data: bytes) -> None:
    handle = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        write_atomically(name, data, dir_fd=handle, mode=0o600)
    finally:
        os.close(handle)
