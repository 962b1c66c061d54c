"""A journal in memory."""

from __future__ import annotations

from amplifier_sdk.journal import JournalRecord

__all__ = ["MemoryJournal"]


class MemoryJournal:
    """Keeps a session's records in `records`, in the order in which they were written.

    Args:
        fails_at: from which record on storing fails with an `OSError`, counted from 0; `None` means never.
    """

    def __init__(self, *, fails_at: int | None = None) -> None:
        self.records: list[JournalRecord] = []
        self.fails_at: int | None = fails_at

    async def append(self, record: JournalRecord) -> None:
        """Keep one record."""
        if self.fails_at is not None and len(self.records) >= self.fails_at:
            raise OSError("no space left")
        self.records.append(record)

    @property
    def kinds(self) -> list[str]:
        """The names of the records' classes, in order."""
        return [type(record).__name__ for record in self.records]
