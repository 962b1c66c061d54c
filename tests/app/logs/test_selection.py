"""Lines are selected by event, level, time, text and fields."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.app.logs.reader import LogLine
from amplifier.app.logs.selection import LineFilter, parse_since
from amplifier_kit.logs.records import LEVELS, LogLevel, encode_record
from amplifier_sdk.errors import ConfigError
from tests.app.logs.records import Story, at

RECORD = Story("abc").tell(
    "tool:post",
    iteration=2,
    level="warning",
    tool_name="read_file",
    result={"success": False, "output": "Ünder way", "none": None},
    duration=1.5,
    event="inner",
)
LINE = LogLine(encode_record(RECORD).rstrip(), RECORD)


@pytest.mark.parametrize(
    "selection",
    [
        LineFilter(),
        LineFilter(events=("llm:*", "tool:*")),
        LineFilter(events=("tool:post",)),
        LineFilter(level="warning"),
        LineFilter(since=at(1)[:23]),
        LineFilter(terms=("ünder WAY",)),
        LineFilter(terms=("tool_name=read_file", "iteration=2")),
        LineFilter(terms=("tool_name=read_*",)),
        LineFilter(terms=("result.success=false",)),
        LineFilter(terms=("data.result.none=null",)),
        LineFilter(terms=("duration=1.5", "session_id=abc", "level=warning")),
        LineFilter(terms=("event=inner",)),
        LineFilter(terms=("event=tool:*",)),
    ],
    ids=repr,
)
def test_a_line_that_fits_is_wanted(selection: LineFilter) -> None:
    assert selection.wants(LINE)
    assert selection.may_want(LINE.data)


VALUES = st.recursive(
    st.sampled_from(["kelvin", "\u212aelvin", 'a "quoted" word', "tab\tx", "é", "null"])
    | st.none()
    | st.booleans()
    | st.sampled_from([7, 1e-05, 1e22]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["key", "event", "é"]), inner, max_size=2)
    ),
    max_leaves=3,
)
PATTERNS = ["kelvin", "*elv*", "k[e]lvin", "*quoted*", "null", "1e-05", "tool:*", "*x*"]
KEYS = ["key", "data", "data.key", "key.key", "event", "level", "parent_id", "é"]


@given(
    value=VALUES,
    pattern=st.sampled_from(PATTERNS),
    key=st.sampled_from(KEYS),
    level=st.sampled_from(LEVELS),
    is_text=st.booleans(),
    ensure_ascii=st.booleans(),
)
def test_no_line_that_is_wanted_is_passed_over_undecoded(
    value: object,
    pattern: str,
    key: str,
    level: LogLevel,
    is_text: bool,
    ensure_ascii: bool,
) -> None:
    record = Story("abc").tell("tool:post", level="warning", key=value)
    written = json.loads(encode_record(record))
    line = LogLine(json.dumps(written, ensure_ascii=ensure_ascii).encode(), record)
    term = pattern if is_text else f"{key}={pattern}"
    selection = LineFilter(events=("tool:*", pattern), level=level, terms=(term,))

    assert selection.may_want(line.data) or not selection.wants(line)


def test_lines_that_cannot_be_wanted_are_passed_over() -> None:
    for selection in (
        LineFilter(terms=("elsewhere",)),
        LineFilter(terms=("tool_nam=read_file",)),
        LineFilter(terms=("tool_name=write_*",)),
        LineFilter(level="error"),
        LineFilter(events=("llm:*",)),
    ):
        assert selection.is_filtering
        assert not selection.may_want(LINE.data)
    for selection in (
        LineFilter(),
        LineFilter(terms=("iteration=2",)),
        LineFilter(events=("*",)),
    ):
        assert not selection.is_filtering


@pytest.mark.parametrize(
    "selection",
    [
        LineFilter(events=("tool:pre", "tool")),
        LineFilter(level="error"),
        LineFilter(since=at(1.001)[:23]),
        LineFilter(terms=("elsewhere",)),
        LineFilter(terms=("way", "tool_name=write_file")),
        LineFilter(terms=("result.success.deeper=false",)),
        LineFilter(terms=("nothing=",)),
        LineFilter(terms=("session_id.x=abc",)),
    ],
    ids=repr,
)
def test_a_line_that_does_not_fit_is_not(selection: LineFilter) -> None:
    assert not selection.wants(LINE)


def test_damage_is_never_wanted() -> None:
    assert not LineFilter().wants(LogLine(b"?", None))


NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30s", "2026-03-01T11:59:30.000"),
        (" 10m", "2026-03-01T11:50:00.000"),
        ("2h", "2026-03-01T10:00:00.000"),
        ("1d", "2026-02-28T12:00:00.000"),
        ("1w", "2026-02-22T12:00:00.000"),
        ("999999999w", ""),
        ("2026-01-31T08:00Z", "2026-01-31T08:00:00.000"),
        ("2026-01-31T08:00:01.5+02:00", "2026-01-31T06:00:01.500"),
    ],
)
def test_times_are_spans_or_dates(text: str, expected: str) -> None:
    assert parse_since(text, NOW) == expected


def test_a_date_without_a_zone_is_the_local_one() -> None:
    local = datetime(2026, 1, 31, 8).astimezone(UTC)  # the local time is meant
    assert parse_since("2026-01-31 08:00") == f"{local:%Y-%m-%dT%H:%M:%S}.000"


@pytest.mark.parametrize("text", ["", "yesterday", "10x", "0001-01-01T00:00+14:00"])
def test_no_time_is_an_error_that_says_what_is_one(text: str) -> None:
    with pytest.raises(ConfigError, match="10m"):
        parse_since(text)
