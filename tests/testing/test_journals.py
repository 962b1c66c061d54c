"""The journal in memory."""

from __future__ import annotations

import pytest

from amplifier.testing import MemoryJournal, create_test_session
from amplifier_sdk import Journal
from amplifier_sdk.journal import TurnEnded, TurnStarted


async def test_it_keeps_a_turns_records_in_order() -> None:
    journal = MemoryJournal()
    assert isinstance(journal, Journal)

    async with create_test_session("Hi", journal=journal) as session:
        await session.execute("Hello")

    assert journal.kinds == ["TurnStarted", "MessageWritten", "TurnEnded"]
    assert isinstance(journal.records[0], TurnStarted)
    assert journal.records[0].prompt == "Hello"


async def test_it_fails_where_it_is_told_to() -> None:
    journal = MemoryJournal(fails_at=1)
    ended = TurnEnded(turn_id="t", status="completed")

    await journal.append(ended)
    with pytest.raises(OSError, match="no space left"):
        await journal.append(ended)

    assert journal.records == [ended]
