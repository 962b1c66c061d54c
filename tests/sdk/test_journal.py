"""A journal takes records; each says which turn it belongs to."""

from __future__ import annotations

from typing import get_args

import attrs
import pytest

from amplifier_sdk.convert import from_json, to_json
from amplifier_sdk.journal import (
    CallAnswered,
    CallAsked,
    CallFinished,
    CallStarted,
    Journal,
    JournalRecord,
    MessageWritten,
    TurnEnded,
    TurnStarted,
)

RECORDS: list[JournalRecord] = [
    TurnStarted(turn_id="t", prompt="hi"),
    MessageWritten(turn_id="t", message={"role": "assistant", "content": "x"}),
    CallStarted(turn_id="t", call_id="1", tool_name="read"),
    CallAsked(turn_id="t", call_id="1", number=0),
    CallAnswered(turn_id="t", call_id="1", number=0),
    CallFinished(turn_id="t", call_id="1", success=True, output="out"),
    TurnEnded(turn_id="t", status="completed"),
]


class Memory:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.records: list[JournalRecord] = []

    async def append(self, record: JournalRecord) -> None:
        self.records.append(record)


async def test_a_journal_is_what_appends_records() -> None:
    memory = Memory()
    journal: Journal = memory

    for record in RECORDS:
        await journal.append(record)

    assert isinstance(memory, Journal)
    assert memory.records == RECORDS
    assert not isinstance(object(), Journal)


def test_every_kind_of_record_is_tried_here() -> None:
    assert {type(record) for record in RECORDS} == set(get_args(JournalRecord))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_names_its_turn_and_comes_back_from_json(
    record: JournalRecord,
) -> None:
    assert attrs.asdict(record)["turn_id"] == "t"
    assert from_json(to_json(record), type(record)) == record
