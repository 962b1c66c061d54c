"""What children spent in turns that were cut off, charged to the session that they worked for.

The journal of a turn says what its session had spent when it was written last, and names the
children whose turns it counts. A child that was still at work says in its own files what it
spent, and for which turn: in its journal, and once that turn is settled in its record. So it
does not matter who is resumed first, or whether somebody has the child open.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Self

import attrs
from anyio import to_thread

from amplifier.app.store.amounts import Amounts, added, subtracted
from amplifier.app.store.interrupted import InterruptedTurn, read_turns
from amplifier.app.store.reader import read_journal
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.states import CutOff, cut_off_below, holder_of
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored import StoredSession, read_record
from amplifier.app.store.writer import SessionWriter
from amplifier_sdk.errors import ConfigError

__all__ = ["charge_cut_off"]


async def charge_cut_off(
    store: ProjectSessions, writer: SessionWriter
) -> tuple[CutOff, ...]:
    """Charge to a session's interrupted turn what its children spent for it; call it before `settle`.

    That stores it, and the journal names each turn of a child that is charged, so that it counts
    once, however often the process is killed in between. A turn that is continued is charged
    nothing: its children are continued with it.

    Returns:
        The children whose turns were cut off; none where the session's own was not.

    Raises:
        OSError: a child's files cannot be read.
    """
    turn = writer.interrupted
    if turn is None:
        return ()
    session_id = writer.record.session_id
    cut_off = await to_thread.run_sync(cut_off_below, store, session_id)
    running = [each.turn_id for each in writer.journal.turns]
    for debt in await to_thread.run_sync(_debts_to, store, session_id):
        if debt.is_open_in(turn, running):
            writer.journal.charge_child(debt.child, debt.turn_id, debt.to_charge)
    return cut_off


@attrs.frozen(kw_only=True)
class _Debt:
    """What a turn of a child that was cut off spent, what came of it included.

    Args:
        child: the child.
        turn_id: its turn.
        works_for: the turn of its parent; `None` where an earlier version does not say.
        spent: what it spent.
    """

    child: str
    turn_id: str
    works_for: str | None
    spent: Amounts

    @classmethod
    def recorded(cls, record: SessionRecord) -> Self | None:
        """Return what the record of a child owes; `None` for nothing."""
        owed = record.owed
        spent = owed.get("spent")
        if not isinstance(spent, Mapping):
            return None
        return cls(
            child=record.session_id,
            turn_id=str(owed.get("turn_id")),
            works_for=str(owed.get("works_for")),
            spent=spent,
        )

    @property
    def to_charge(self) -> Amounts:
        """What it adds to the account of the session that made the child."""
        return added(self.spent, {"children": 1})

    def is_open_in(self, turn: InterruptedTurn, running: Sequence[str]) -> bool:
        """Return whether a turn of the parent owes it and does not count it yet.

        Args:
            turn: the parent's.
            running: its id, and those of others that it was joined with.
        """
        if (self.child, self.turn_id) in turn.children:
            return False
        return self.works_for is None or self.works_for in running


def _debts_to(store: ProjectSessions, session_id: str) -> Sequence[_Debt]:
    """Return what the children of a session owe. It blocks: call it in a thread."""
    (family,) = store.families([session_id])
    debts: defaultdict[str | None, list[_Debt]] = defaultdict(list)
    # children before their parents, the session itself last
    for session in family[:-1]:
        below = debts[session.record.session_id]
        # One that cannot be read is reported where it is resumed itself.
        with suppress(ConfigError, OSError):
            debts[session.record.parent_id] += _debts_of(session, below)
    return debts[session_id]


def _debts_of(session: StoredSession, below: Sequence[_Debt]) -> Iterator[_Debt]:
    turns = read_turns(read_journal(session.folder).records)
    # After the journal: whoever settles a turn writes the record before they clear that.
    record = read_record(session.folder) or session.record
    recorded = _Debt.recorded(record)
    if recorded is not None:
        yield recorded
    before = record.account
    for turn in turns:
        total = turn.total(before)
        spent, before = subtracted(total, before), total
        if recorded is not None and recorded.turn_id == turn.turn_id:
            continue
        is_owed = bool(turn.works_for)
        if turn.works_for is None:
            # It may be running now, in a process of an earlier version.
            is_owed = holder_of(session.folder) is None
        nested = [
            each.to_charge for each in below if each.is_open_in(turn, [turn.turn_id])
        ]
        spent = added(spent, *nested)
        if is_owed and any(spent.values()):
            yield _Debt(
                child=record.session_id,
                turn_id=turn.turn_id,
                works_for=turn.works_for,
                spent=spent,
            )
