"""The log's form: what is written is read again, and every line is JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_kit.logs.files import rotated_name
from amplifier_kit.logs.records import (
    LogRecord,
    decode_record,
    encode_record,
    read_log,
    roles_of,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)


def record(seq: int = 1, **data: object) -> LogRecord:
    return LogRecord(
        ts="2025-01-01T00:00:00.000+00:00",
        level="info",
        event="tool:pre",
        session_id="s",
        seq=seq,
        turn_id="t",
        iteration=0,
        data=data,  # type: ignore[arg-type]  # tests give what JSON has
    )


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_a_record_comes_back_as_it_went_in(data: dict[str, object]) -> None:
    assert decode_record(encode_record(record())) == record()
    written = LogRecord(
        ts="",
        level="error",
        event="e",
        session_id="s",
        seq=2,
        data=data,  # type: ignore[arg-type]
    )

    assert decode_record(encode_record(written)) == written


def test_what_json_lacks_is_written_as_text() -> None:
    line = encode_record(
        record(number=math.nan, half="\ud83d!", inside=[math.inf, (1.5, None)])
    )

    def refuse(name: str) -> None:
        raise AssertionError(name)

    assert json.loads(line, parse_constant=refuse)["data"] == {
        "number": "nan",
        "half": "\\ud83d!",
        "inside": ["inf", [1.5, None]],
    }


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[]",
        "{}",
        "null",
        b"\xff",
        encode_record(record()).replace(b'"ver":"1.', b'"ver":"2.'),
        encode_record(record()).replace(b'"amplifier.log"', b'"other"'),
        encode_record(record()).replace(b'"data":{}', b'"data":[]'),
        "[" * 9_999,
        encode_record(record()).replace(b'"ts":"2025', b'"ts":["2025"],"x":"'),
        encode_record(record()).replace(b'"turn_id":"t"', b'"turn_id":7'),
        encode_record(record()).replace(b'"iteration":0', b'"iteration":"0"'),
    ],
)
def test_another_line_is_refused(line: str | bytes) -> None:
    with pytest.raises(ValueError, match="no line of a log of version 1"):
        decode_record(line)


def test_log_read_with_earlier_files_and_without_damaged_lines(
    tmp_path: Path,
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"torn\n' + encode_record(record(3)))
    rotated_name(path, 1).write_bytes(encode_record(record(2)))
    rotated_name(path, 2).write_bytes(encode_record(record(1)))

    assert [found.seq for found in read_log(path)] == [1, 2, 3]


def test_a_log_that_is_not_there_is_told(tmp_path: Path) -> None:
    for path in (tmp_path / "events.jsonl", tmp_path / "nowhere" / "events.jsonl"):
        with pytest.raises(FileNotFoundError, match="events"):
            next(read_log(path))


@pytest.mark.parametrize(
    ("messages", "reported"),
    [
        ([], "0 messages"),
        ([{"role": "user"}], "1 message: user"),
        (
            [{"role": "system"}, {"content": "x"}, "text"],
            "3 messages: system, None, str",
        ),
        (
            [{"role": str(index)} for index in range(8)],
            "8 messages: 0, 1, 2, 3, 4, 5, 6, 7",
        ),
        (
            [{"role": str(index)} for index in range(100)],
            "100 messages: 0, 1, 2, 3, …, 96, 97, 98, 99",
        ),
    ],
)
def test_history_is_told_by_roles_of_long_one_those_of_ends(
    messages: list[object], reported: str
) -> None:
    assert roles_of(messages) == reported
