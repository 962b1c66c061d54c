"""A log is read from either end and from a time on, in bounded memory, damage and all."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.app.logs import reader
from amplifier.app.logs.merge import Logs
from amplifier.app.logs.reader import LONGEST_LINE, LogSnapshot
from amplifier.app.logs.selection import LineFilter
from amplifier_kit.logs.files import rotated_name
from amplifier_kit.logs.records import LogRecord, encode_record
from tests.app.logs.records import Story, at, write_log

PIECES = st.one_of(
    st.binary(max_size=40).map(lambda junk: junk.replace(b"\n", b"")),
    st.integers(0, 200_000).map(lambda size: b"x" * size),
    st.text(max_size=30).map(
        lambda text: encode_record(Story().tell("e", text=text)).rstrip()
    ),
)


@given(
    st.lists(PIECES, max_size=6),
    st.binary(max_size=5).map(lambda tail: tail.replace(b"\n", b"")),
)
def test_both_ways_give_the_same_lines(pieces: list[bytes], torn: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        path.write_bytes(b"".join(piece + b"\n" for piece in pieces) + torn)
        with LogSnapshot.take(path) as log:
            forwards = [
                (line.data.rstrip(b"\r"), line.record) for line in log.forwards()
            ]
            backwards = [
                (line.data.rstrip(b"\r"), line.record) for line in log.backwards()
            ]
            assert forwards == backwards[::-1]
            assert log.is_torn is bool(torn)
            wanted = [piece for piece in pieces if piece.strip()]
            assert [data for data, _ in forwards] == [
                piece.rstrip(b"\r") for piece in wanted
            ]


def reported(count: int, size: int = 10) -> list[LogRecord]:
    story = Story()
    return [story.tell(f"e{number}", text="x" * size) for number in range(count)]


def test_earlier_files_come_first(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    records = reported(6)
    for number, name in enumerate((rotated_name(path, 2), rotated_name(path, 1), path)):
        write_log(name, records[number * 2 : number * 2 + 2])

    with LogSnapshot.take(path) as log:
        assert [line.record.event for line in log.forwards() if line.record] == [
            f"e{n}" for n in range(6)
        ]
        assert [line.record.event for line in log.backwards() if line.record] == [
            f"e{n}" for n in range(5, -1, -1)
        ]


@pytest.mark.parametrize("seconds", [0, 1, 2.5, 700, 1499.999, 1500, 1501, 9000])
def test_reading_begins_at_a_time(tmp_path: Path, seconds: float) -> None:
    records = reported(1500, size=300)
    path = tmp_path / "events.jsonl"
    write_log(rotated_name(path, 1), [*records[:700], b"damaged\n"])
    write_log(
        path, [*records[700:1000], b"\n" + b"?" * 70_000 + b"\n", *records[1000:]]
    )
    since = at(seconds)[:23]

    with Logs.take([path]) as logs:
        found = list(logs.select(LineFilter(since=since)))

    assert found == [record for record in records if record.ts[:23] >= since]


@pytest.mark.figures
def test_of_a_long_log_the_last_lines_are_read_from_its_end(tmp_path: Path) -> None:
    records = reported(20_000, size=300)
    path = write_log(tmp_path / "events.jsonl", records)

    tracemalloc.start()
    with Logs.take([path]) as logs:
        found = list(logs.select(LineFilter(), 3))
        _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert found == records[-3:]
    assert peak < 1_000_000


@pytest.mark.parametrize("last", [None, 100])
def test_what_is_no_record_is_counted(tmp_path: Path, last: int | None) -> None:
    records = reported(4)
    odd = encode_record(records[0]).replace(b'"ts":"2026', b'"ts":["2026"],"x":"')
    parts: list[LogRecord | bytes] = [
        records[0],
        b"\x00\xff\n",
        b"\n",
        records[1],
        odd,
        b"[" * 100_000 + b"\n",
        records[2],
        b"{}\n",
        records[3],
    ]
    path = write_log(tmp_path / "events.jsonl", [*parts, b'{"ts": "torn'])

    with Logs.take([path]) as logs:
        assert list(logs.select(LineFilter(), last)) == records
        assert logs.damaged == 4
        logs.count_torn()
        assert logs.damaged == 5


@pytest.mark.parametrize("last", [None, 100])
def test_a_line_without_end_costs_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int | None
) -> None:
    monkeypatch.setattr(reader, "LONGEST_LINE", 100_000)
    records = [attrs.evolve(record, data={}) for record in reported(2)]
    path = write_log(
        tmp_path / "events.jsonl", [records[0], b"x" * 450_000 + b"\n", records[1]]
    )

    with Logs.take([path]) as logs:
        assert list(logs.select(LineFilter(), last)) == records
        assert logs.damaged == 1
    assert LONGEST_LINE > 262_144


def test_several_logs_are_one_by_time(tmp_path: Path) -> None:
    first, second = Story("a"), Story("b", start=0.5)
    for _ in range(3):
        first.tell("x")
        second.tell("y")
    write_log(tmp_path / "a.jsonl", [first.records[0], b"damage\n", *first.records[1:]])
    write_log(tmp_path / "b.jsonl", second.records)
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "none.jsonl"]

    with Logs.take(paths) as logs:
        assert [record.session_id for record in logs.select(LineFilter())] == [
            "a",
            "b",
            "a",
            "b",
            "a",
            "b",
        ]
        assert [record.session_id for record in logs.select(LineFilter(), 4)] == [
            "a",
            "b",
            "a",
            "b",
        ]
        assert [
            record.event for record in logs.select(LineFilter(since=at(3)[:23]), 1)
        ] == ["y"]
        assert list(logs.select(LineFilter(), 0)) == []


@pytest.mark.parametrize("last", [None, 100])
def test_only_lines_that_may_be_wanted_are_decoded(
    tmp_path: Path, last: int | None
) -> None:
    records = reported(3000, size=300)
    damage = [b"no record\n", b"neither is tool:post\n"]
    path = write_log(tmp_path / "events.jsonl", [*records[:10], *damage, *records[10:]])

    with Logs.take([path]) as logs:
        assert list(logs.select(LineFilter(terms=("E77",)), last)) == [
            record for record in records if "e77" in record.event
        ]
        assert logs.damaged == 0
    with Logs.take([path]) as logs:
        assert list(logs.select(LineFilter(events=("tool:*",)), last)) == []
        assert logs.damaged == 1
