"""Child sessions in the store: stored like any other, with what was asked of them and the plan of their last turn.

Neither is stored with its secrets: a child's plan is made anew from that of its parent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import cast

import attrs
from anyio import to_thread

from amplifier.app.store.amounts import added, subtracted
from amplifier.app.store.charges import charge_cut_off
from amplifier.app.store.journal import FileJournal
from amplifier.app.store.plan_secrets import conceal
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored import read_record
from amplifier.app.store.transcript import Clean
from amplifier.app.store.writer import SessionWriter
from amplifier_kit.files.appendlog import Durability
from amplifier_sdk.delegation import ChildRecord, ProviderPreference
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.journal import RecordedTurn
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.secret import WITHHELD, withhold

__all__ = ["StoredChildren"]


@attrs.define(eq=False, kw_only=True)
class StoredChildren:
    """The capability `session.children`: children outlive the process of their parent, and are journaled as it is.

    Args:
        store: where sessions are stored.
        root: the session that children are made of, where it is stored itself.
        working_dir: where the person works.
        durability: what a record in a child's files means, as in its parent's.
        clean: returns what takes secrets out of what is written, as far as something does by then.
    """

    store: ProjectSessions
    root: SessionWriter | None = None
    working_dir: str = ""
    durability: Durability = "written"
    clean: Callable[[], Clean | None] = attrs.field(default=lambda: None, repr=False)
    _open: dict[str, SessionWriter] = attrs.field(factory=dict, init=False, repr=False)

    @asynccontextmanager
    async def open(self, record: ChildRecord, /) -> AsyncIterator[FileJournal]:
        """Have a child for one turn: who it is and what its history begins with are stored first.

        Raises:
            LockedError: another process has it open.
            ConfigError: its record is too large, damaged, or a newer version's.
            OSError: the system refuses.
        """
        new = self._new(record)
        async with self.store.open(new, durability=self.durability) as writer:
            writer.clean_with(self.clean())
            # Before the first record: a kill in the child's turn must show which turn
            # of its parent owes it.
            parent = self._parent(record.parent_id)
            if parent is not None:
                writer.journal.works_for = parent.journal.turn_id or ""
            # Before its first turn: a child that is cut off in it has what it began with.
            if not record.turn_count:
                await writer.transcript.store("", record.messages, writer.clean)
            self._open[record.session_id] = writer
            try:
                yield writer.journal
            finally:
                del self._open[record.session_id]

    async def save(self, record: ChildRecord, /) -> None:
        """Store a child, in place of what was stored under its id.

        Raises:
            LockedError: another process has it open.
            ConfigError: its record is too large, damaged, or a newer version's.
            OSError: the system refuses.
        """
        writer = self._open.get(record.session_id)
        if writer is None:
            async with self.open(record):
                return await self.save(record)
        new = self._new(record)
        turn_id = writer.journal.turn_id or f"turn-{record.turn_count}"
        parent = self._parent(record.parent_id)
        if parent is not None:
            # Only what this turn added: earlier turns of the child were counted before.
            spent = subtracted(new.spending, writer.record.account)
            spent = added(spent, {"children": 1})
            # Before the child's turn is stored: a kill in between leaves that in the
            # child's journal, and this note prevents charging it again.
            await parent.journal.note_child(record.session_id, turn_id, spent)
        about = attrs.evolve(
            writer.record,
            turn_count=record.turn_count,
            plan=new.plan,
            provider_preferences=new.provider_preferences,
            request=new.request,
        ).with_spending(new.spending)
        return await writer.store_turn(turn_id, record.messages, about)

    async def unfinished(
        self, session_id: str, /
    ) -> tuple[ChildRecord, RecordedTurn] | None:
        """Return a child as it was before its last turn, and what is recorded of that; `None` where it ended.

        Raises:
            LockedError: another process has it open.
            ConfigError: it is damaged, or a newer version's.
            OSError: the system refuses.
        """
        stored = await self._stored(session_id)
        if stored is None:
            return None
        async with self.store.open(stored, durability=self.durability) as writer:
            turns = writer.journal.turns
            recorded = writer.recorded(turns[-1].turn_id) if turns else None
            if recorded is None:
                return None
            # its account is that before the turn: what the turn spent is a part of what is recorded
            return self._record(writer, writer.transcript.messages), recorded

    async def load(self, session_id: str, /) -> ChildRecord | None:
        """Return what was stored under an id, or `None`; a turn that was interrupted is closed and counted.

        Raises:
            LockedError: another process has it open.
            ConfigError: it is damaged, or a newer version's.
            OSError: the system refuses.
        """
        stored = await self._stored(session_id)
        if stored is None:
            return None
        async with self.store.open(stored, durability=self.durability) as writer:
            await charge_cut_off(self.store, writer)
            await writer.settle()
            return self._record(writer, writer.messages)

    async def _stored(self, session_id: str) -> SessionRecord | None:
        """Return the record of a child that can be resumed."""
        stored = await to_thread.run_sync(read_record, self.store.folder(session_id))
        if (
            stored is None
            or stored.parent_id is None
            or stored.plan is None
            or stored.session_id != session_id
        ):
            # one without a plan was imported: what it would be made of is somebody else's word
            return None
        return stored

    def _record(
        self, writer: SessionWriter, messages: Sequence[MessageDict]
    ) -> ChildRecord:
        stored = writer.record
        assert stored.parent_id is not None
        assert stored.plan is not None
        return ChildRecord(
            session_id=stored.session_id,
            parent_id=stored.parent_id,
            agent_name=stored.agent_name or "",
            plan=stored.plan,
            messages=messages,
            turn_count=stored.turn_count,
            provider_preferences=cast(
                "tuple[ProviderPreference, ...]", stored.provider_preferences
            ),
            request=cast(
                "Mapping[str, JSONValue]", _complete(stored.request, stored.session_id)
            ),
            spending=stored.spending,
        )

    def _parent(self, session_id: str) -> SessionWriter | None:
        """Return the open session that makes a child, where it is stored."""
        parent = self._open.get(session_id, self.root)
        if parent is not None and parent.record.session_id == session_id:
            return parent
        return None

    def _new(self, record: ChildRecord) -> SessionRecord:
        return SessionRecord(
            session_id=record.session_id,
            parent_id=record.parent_id,
            agent_name=record.agent_name,
            working_dir=self.working_dir,
            plan=conceal(record.plan),
            provider_preferences=tuple(
                {**cast("Mapping[str, str]", each)}
                for each in record.provider_preferences
            ),
            request=cast("Mapping[str, JSONValue]", withhold(record.request)),
            spending=record.spending,
        )


def _complete(value: object, session_id: str, path: str = "request") -> object:
    """Return what was asked of a child, unless a part of it was a secret, which is stored nowhere."""
    if value == WITHHELD:
        problem = Problem(path, "this secret is not stored; begin a new child")
        raise ConfigError([problem], subject=f"record of session {session_id!r}")
    if isinstance(value, Mapping):
        for key, item in value.items():
            _complete(item, session_id, f"{path}.{key}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            _complete(item, session_id, f"{path}[{number}]")
    return value
