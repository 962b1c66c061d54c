"""The values that delegation gives and keeps."""

from __future__ import annotations

import json

import pytest

from amplifier_sdk import JSONValue
from amplifier_sdk.delegation import ChildRecord, ChildResult, ChildStore


def test_a_result_reads_as_a_value_and_as_plain_data() -> None:
    result = ChildResult(
        output="found",
        session_id="c1",
        spending={"total_tokens": 3},
        metadata={"task": "t"},
    )

    assert (result["output"], result["session_id"], result["status"]) == (
        "found",
        "c1",
        "completed",
    )
    assert json.loads(json.dumps(result.to_dict())) == {
        "output": "found",
        "session_id": "c1",
        "status": "completed",
        "limit": None,
        "turn_count": 1,
        "spending": {"total_tokens": 3},
        "metadata": {"task": "t"},
    }
    assert dict(result) == result.to_dict()
    assert (result.get("output"), result.get("outptu", "none")) == ("found", "none")
    assert "status" in result
    assert len(result) == 7
    with pytest.raises(KeyError):
        result["outptu"]


@pytest.mark.parametrize(
    ("content", "output"),
    [
        ("found", "found"),
        ([{"type": "text", "text": "fo"}, {"type": "text", "text": "und"}], "found"),
        ([{"type": "thinking", "thinking": "hm"}], ""),
    ],
    ids=["text", "blocks", "thoughts"],
)
def test_last_result_is_text_of_the_last_answer(
    content: JSONValue, output: str
) -> None:
    record = ChildRecord(
        session_id="c1",
        parent_id="p",
        agent_name="a",
        plan={},
        messages=[
            {"role": "assistant", "content": "earlier"},
            {"role": "assistant", "content": content},
            {"role": "user", "content": "later"},
        ],
        turn_count=2,
    )

    result = record.last_result

    assert (result.output, result.session_id, result.turn_count) == (output, "c1", 2)


def test_a_store_is_known_by_what_it_does() -> None:
    class Shelf:
        async def save(self, record: ChildRecord, /) -> None: ...

        async def load(self, session_id: str, /) -> ChildRecord | None: ...

    assert isinstance(Shelf(), ChildStore)
    assert not isinstance({}, ChildStore)
