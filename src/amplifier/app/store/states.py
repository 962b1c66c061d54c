"""How a stored session stands now: open in a process, cut off in the middle of a turn, or neither."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from amplifier.app.store.interrupted import InterruptedTurn
from amplifier.app.store.leases import LEASE, LeaseState
from amplifier.app.store.reader import interrupted_turn, read_journal
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored import StoredSession
from amplifier_kit.files.locks import LockedError, WriterLock
from amplifier_sdk.errors import ConfigError

__all__ = ["CutOff", "State", "cut_off_below", "holder_of", "resumable", "state_of"]

State: TypeAlias = Literal["open", "interrupted", "idle", "damaged"]
"""`open`: some process has it; `interrupted`: its last turn was cut off; `damaged`: a file of it cannot be read."""


@attrs.frozen(kw_only=True)
class CutOff:
    """A session whose turn was running when the program ended."""

    session: StoredSession
    turn: InterruptedTurn


def state_of(folder: Path) -> State:
    """Say how the session of a folder stands. It blocks: call it in a thread."""
    try:
        if holder_of(folder) is not None:
            return "open"
        if any(not piece.is_tail for piece in read_journal(folder).damage):
            return "damaged"
        if interrupted_turn(folder) is None:
            return "idle"
        return "interrupted"
    except (ConfigError, OSError):
        return "damaged"


def holder_of(folder: Path | str) -> str | None:
    """Say who has the session of a folder open, or its lease; `None` for nobody. It blocks: call it in a thread.

    The locks tell, which end with their process. They are tried only where their files stand: mostly nowhere.

    Raises:
        OSError: a lock cannot be tried.
    """
    try:
        # Of every session there is: a pattern takes four times as long.
        found = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    if LEASE in found:
        owner = _lease_owner(Path(folder))
        if owner is not None:
            return owner
    names = sorted(name for name in found if name.endswith(".lock"))
    for file in (Path(folder, name) for name in names):
        try:
            WriterLock.take(file.with_suffix(""), timeout=0).release()
        except LockedError as error:
            return str(error.owner or "another process")
        except ModuleNotFoundError:
            # what locks comes with an extra; without it nobody can know
            return None
    return None


def _lease_owner(folder: Path) -> str | None:
    try:
        lease = LeaseState.read(folder)
    except ConfigError as error:
        # whoever has it would be overwritten: opening the session says what helps
        return error.in_one_line
    if lease.is_live:
        return lease.owner
    return None


def cut_off_below(store: ProjectSessions, session_id: str) -> tuple[CutOff, ...]:
    """Return what came of a session and was cut off, those that made others first. It blocks: call it in a thread.

    Raises:
        OSError: the system refuses.
    """
    (family,) = store.families([session_id])
    cut_off: list[CutOff] = []
    for session in reversed(family):
        if session.record.session_id == session_id:
            continue
        # One that cannot be read is reported where it is resumed itself.
        with suppress(ConfigError, OSError):
            turn = interrupted_turn(session.folder)
            if turn is not None and holder_of(session.folder) is None:
                cut_off.append(CutOff(session=session, turn=turn))
    return tuple(cut_off)


def resumable(cut_off: Iterable[CutOff], parent_id: str) -> str:
    """Tell a model which of its sessions were cut off: it may have got the id of none of them; empty for none."""
    records = (each.session.record for each in cut_off)
    names = ", ".join(
        f"{record.session_id} (agent {record.agent_name})"
        for record in records
        if record.parent_id == parent_id
    )
    if names:
        return f"These sessions ran for you then, and can be resumed: {names}."
    return ""
