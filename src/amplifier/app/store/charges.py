"""What children spent in turns that were cut off, charged to the session that they worked for.

The journal of a turn says what its session had spent when it was written last, the children
whose turns had ended by then included. A child that was still at work has what it spent in
its own journal alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from anyio import to_thread

from amplifier.app.store.amounts import Amounts, added, highest
from amplifier.app.store.states import CutOff, cut_off_below
from amplifier.app.store.store import SessionStore
from amplifier.app.store.writer import KeptSession
from amplifier_kit.files.locks import LockedError
from amplifier_sdk.errors import ConfigError

__all__ = ["charge_cut_off"]


async def charge_cut_off(store: SessionStore, kept: KeptSession) -> tuple[CutOff, ...]:
    """Add to a session's record what its children spent in turns that were cut off with its own.

    Each child's record says it as well from then on, so that it counts once: a process that
    is killed in between counts it twice rather than never.

    Returns:
        The children whose turns were cut off; none where the session's own was not.

    Raises:
        OSError: it could not be stored.
    """
    turn = kept.interrupted
    if turn is None:
        return ()
    session_id = kept.record.session_id
    cut_off = await to_thread.run_sync(cut_off_below, store, session_id)
    # The parent of one whose turn had ended but for its last record has counted it, and
    # the record of one that was charged before says all of it.
    counted = turn.children.union(*(each.turn.children for each in cut_off))
    open_ = [
        each for each in cut_off if each.key not in counted and any(each.spent.values())
    ]
    if open_:
        total = added(kept.spending, *map(_owed, open_))
        await kept.write(kept.record.with_spending(total))
    for each in open_:
        # Who has it open by now counts it itself.
        with suppress(LockedError, ConfigError):
            await _charge(store, each, open_)
    return cut_off


def _owed(child: CutOff) -> Amounts:
    """Return what a turn of a child adds to the account of the session that made it."""
    return added(child.spent, {"children": 1})


async def _charge(
    store: SessionStore, child: CutOff, cut_off: Sequence[CutOff]
) -> None:
    """Say in a child's record what it spent by now, and those that it made."""
    known = child.session.record
    family, owed = {known.session_id}, [child.spent]
    for each in cut_off:  # those that made others come first
        if each.session.record.parent_id in family:
            family.add(each.session.record.session_id)
            owed.append(_owed(each))
    async with store.open(known) as kept:
        total = highest(kept.record.account, added(known.account, *owed))
        await kept.write(kept.record.with_spending(total))
