"""Which session a person means: by its id, by the beginning of it, or by its name.

Records are read as they are written, unchecked, so that a damaged session is found as well,
and no more of them than it takes: of an id none, of a long beginning those that begin so.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Self

import attrs

from amplifier.app.store.stored import (
    StoredSession,
    has_history,
    read_outline,
    read_record,
)
from amplifier.app.store.writer import METADATA
from amplifier_kit.files.names import folder_beginnings, folder_name
from amplifier_sdk.errors import ConfigError, Problem

__all__ = [
    "NoSuchSessionError",
    "Outline",
    "find_outline",
    "find_session",
    "outlines_in",
]

_LONG: Final = 8
"""How many characters of an id nobody gives a session as its name."""
_WRITTEN_ID: Final = re.compile(rb'"session_id": ?("(?:[^"\\\n]|\\.)*")')


class NoSuchSessionError(ConfigError):
    """No session has such an id or name, damaged ones included."""


@attrs.frozen(kw_only=True)
class Outline:
    """What the record of a folder says of who it is, as far as it can be read."""

    folder: Path
    session_id: str
    name: str | None = None
    parent_id: str | None = None
    is_read: bool = True

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Read the record of a folder; without one that can be read its name gives the id."""
        written = read_outline(folder)
        session_id, name, parent = map(written.get, ("session_id", "name", "parent_id"))
        if not isinstance(session_id, str) or folder_name(session_id) != folder.name:
            session_id = _id_of(folder)
        return cls(
            folder=folder,
            session_id=session_id,
            name=name if isinstance(name, str) else None,
            parent_id=parent if isinstance(parent, str) else None,
            is_read=bool(written),
        )

    @property
    def is_session(self) -> bool:
        """Whether the folder is one of a session at all, damaged or not."""
        return (self.folder / METADATA).exists() or has_history(self.folder)


def find_session(roots: Sequence[Path], name: str) -> StoredSession:
    """Return the session of an id, of the beginning of one, or of a name.

    Args:
        roots: the folders in which the folders of sessions stand.
        name: what a person calls it.

    Raises:
        ConfigError: there is none, or several, which it names; or it is damaged.
    """
    folder = find_outline(roots, name).folder
    record = read_record(folder)
    if record is None:  # deleted since
        raise _refused(name, "no such session any more")
    return StoredSession(folder=folder, record=record)


def find_outline(roots: Sequence[Path], name: str) -> Outline:
    """Return which session `find_session` finds, also where that is damaged.

    Raises:
        ConfigError: there is none, or several; names them.
    """
    exact = [Outline.of(root / folder_name(name)) for root in roots]
    found = [each for each in exact if each.session_id == name and each.is_session]
    if not found and len(name) >= _LONG:
        begins = folder_beginnings(name)
        found = _begun(outlines_in(roots, begins), name)
    if not found:
        every = list(outlines_in(roots))
        found = [each for each in every if each.name == name] or _begun(every, name)
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(each.session_id for each in found[:10])
        raise _refused(name, f"ambiguous; the sessions are {ids}")
    problem = Problem(name, "no such session; 'amplifier session list' shows them")
    raise NoSuchSessionError([problem], subject="choice of a session")


def outlines_in(
    roots: Iterable[Path], begins: tuple[str, ...] = ("",)
) -> Iterator[Outline]:
    """Yield who is in the folders that stand in others; a folder that cannot be read has none.

    Args:
        roots: the folders in which they stand.
        begins: what the names of the folders begin with.
    """
    for root in roots:
        try:
            names = sorted(os.listdir(root))
        except OSError:
            continue
        begun = (name for name in names if name.startswith(begins))
        yield from (Outline.of(root / name) for name in begun)


def _begun(outlines: Iterable[Outline], begin: str) -> list[Outline]:
    """Return the sessions whose ids begin so.

    The ids of a session's children begin with its own: a beginning means the session, and
    a child only where it begins no other id.
    """
    if not begin:
        return []
    begun = [each for each in outlines if each.session_id.startswith(begin)]
    begun = [each for each in begun if each.is_session]
    roots = [each for each in begun if each.is_read and each.parent_id is None]
    ids = {each.session_id for each in begun}
    return roots or [each for each in begun if each.parent_id not in ids]


def _id_of(folder: Path) -> str:
    """Return the id of a session whose record is damaged, or the folder's name instead.

    A folder is called as the id that it is of, or carries its digest.
    """
    try:
        found = _WRITTEN_ID.search((folder / METADATA).read_bytes())
        session_id = str(json.loads(found[1])) if found else folder.name
    except (OSError, ValueError):
        return folder.name
    return session_id if folder_name(session_id) == folder.name else folder.name


def _refused(name: str, problem: str) -> ConfigError:
    return ConfigError.of(name, problem, subject="choice of a session")
