"""What a stored session was made of, wherever in its family that is recorded."""

from __future__ import annotations

import attrs

from amplifier.app.store.recorded import COMPOSITION, RecordedComposition, read_recorded
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored import read_record
from amplifier_sdk.errors import ConfigError, Problem

__all__ = ["find_recorded", "subject_of"]


def find_recorded(
    store: ProjectSessions, record: SessionRecord
) -> RecordedComposition | None:
    """Return what a session was made of; `None` where that was never recorded.

    A child was made by its parent: its plan is in its record, the rest is recorded with its nearest ancestor.

    Raises:
        ConfigError: it was recorded and cannot be read.
    """
    if record.parent_id is not None and record.plan is not None:
        root, known = _root_of(store, record), None
        if root is not None:
            known = find_recorded(store, root)
        return attrs.evolve(
            known or RecordedComposition(plan={}),
            plan=record.plan,
            is_literal=True,
            agent_name=record.agent_name or "",
            provider=None,
            model=None,
        )
    folder = store.folder(record.session_id)
    recorded = read_recorded(folder)
    # Lost is not the same as never recorded: nothing else may stand in for it unasked.
    if recorded is None and record.has_composition:
        problem = Problem(COMPOSITION, f"the file is missing in {folder}")
        raise ConfigError([problem], subject=subject_of(record))
    return recorded


def subject_of(record: SessionRecord) -> str:
    """Name what a session was made of, for an error about it."""
    return f"recorded composition of session {record.session_id!r}"


def _root_of(store: ProjectSessions, record: SessionRecord) -> SessionRecord | None:
    """Return the session from which all of a family came, as far as it is stored."""
    # Records that name each other as parents must not be followed for ever.
    seen = {record.session_id}
    while record.parent_id is not None and record.parent_id not in seen:
        seen.add(record.parent_id)
        parent = read_record(store.folder(record.parent_id))
        if parent is None:
            return None
        record = parent
    if record.parent_id is None:
        return record
    return None
