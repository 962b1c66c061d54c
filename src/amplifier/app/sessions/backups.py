"""The copies of files that a session's backup module made, as an application uses them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from amplifier_sdk.contracts import Coordinator

__all__ = [
    "BackupCopy",
    "RestoredPaths",
    "SessionBackups",
    "backups_of",
    "copies_since",
]

_CAPABILITY: Final = "session.backups"


class BackupCopy(Protocol):
    """What was at a path before a call changed it."""

    @property
    def number(self) -> int:
        """Counts from 1 in a session."""
        ...

    @property
    def turn(self) -> str:
        """The turn of the call, or one of a restore."""
        ...

    @property
    def path(self) -> Path:
        """Where it was."""
        ...


class RestoredPaths(Protocol):
    """What came of a restore."""

    @property
    def paths(self) -> tuple[str, ...]:
        """What is as it was."""
        ...

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be done, and why."""
        ...


@runtime_checkable
class SessionBackups(Protocol):
    """What a module such as `hooks-backup` offers as `session.backups`."""

    async def entries(self) -> Sequence[BackupCopy]:
        """Return the copies, the earliest first."""
        ...

    async def difference(self, entry: BackupCopy, /) -> str:
        """Compare a copy with what is at its path now."""
        ...

    async def restore(self, entries: Iterable[BackupCopy], /) -> RestoredPaths:
        """Restore each path to its earliest state among some copies."""
        ...


def backups_of(coordinator: Coordinator) -> SessionBackups | None:
    """Return a session's backups; `None` where no module makes any."""
    found = coordinator.get_capability(_CAPABILITY)
    if isinstance(found, SessionBackups):
        return found
    return None


def copies_since(
    copies: Iterable[BackupCopy], turns: Collection[str]
) -> list[BackupCopy]:
    """Return what was copied since the first of some turns began, whichever turn or restore it was for."""
    every = list(copies)
    first = min((copy.number for copy in every if copy.turn in turns), default=None)
    if first is None:
        return []
    return [copy for copy in every if copy.number >= first]
