"""Damaged files: only the record that is hit is lost, it is kept aside, and the next one is whole."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs
import pytest

from amplifier_kit.files.appendlog import (
    AppendLogFile,
    Damage,
    Expected,
    LogFormatError,
    encode_line,
)
from amplifier_kit.files.appendlog._scan import scan
from amplifier_sdk import JSONValue
from amplifier_sdk.stores import LogEntry
from tests.kit.files.appendlog.systems import System

NOTES = Expected(holds="notes")
NEW = {"text": "written afterwards"}


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    System().install(monkeypatch)


def line(data: JSONValue) -> bytes:
    return encode_line(LogEntry(kind="note", data=data, at=1.5))


def note(number: int) -> JSONValue:
    return {
        "role": "user",
        "content": f"number {number} — žluť 🙂 " + "." * (number % 40),
    }


def written(path: Path, count: int) -> bytes:
    log = AppendLogFile.open(path, NOTES)
    for number in range(count):
        log.append(line(note(number)))
    log.close()
    return path.read_bytes()


class Opened:
    """What was found in a damaged file, after which a record was appended and the file opened again."""

    def __init__(self, path: Path, data: bytes) -> None:
        path.write_bytes(data)
        self.writer = path.with_name(f"{path.name}.damaged")
        self.writer.unlink(missing_ok=True)
        log = AppendLogFile.open(path, NOTES)
        self.records = [record.data for record in log.records]
        self.damage: Sequence[Damage] = log.damage
        log.append(line(NEW))
        log.close()
        again = AppendLogFile.open(path, NOTES)
        self.later = [record.data for record in again.records]
        self.later_damage = again.damage
        again.close()

    def holds(self, wanted: Sequence[JSONValue]) -> bool:
        """Tell whether exactly these were found, and later these and the new one, without any more damage."""
        pieces = b"".join(piece.data + b"\n" for piece in self.damage)
        stored = self.writer.read_bytes() if self.writer.exists() else b""
        whole = self.records == list(wanted) and self.later == [*wanted, NEW]
        return whole and not self.later_damage and stored == pieces


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes.jsonl"


def test_cut_at_any_byte_of_last_three_records_costs_what_cut(
    path: Path,
) -> None:
    data = written(path, 6)
    lines = data.split(b"\n")
    start = len(b"\n".join(lines[:4])) + 1
    for end in range(start, len(data)):
        count = (
            data[: end + 1].count(b"\n") - 1
            if data[end : end + 1] == b"\n"
            else data[:end].count(b"\n") - 1
        )

        assert Opened(path, data[:end]).holds(
            [note(number) for number in range(count)]
        ), end


def test_cut_at_any_byte_of_log_with_one_record_leaves_log(path: Path) -> None:
    data = written(path, 1)
    for end in range(len(data) - 1):
        assert Opened(path, data[:end]).holds([]), end
    assert Opened(path, data[:-1]).holds([note(0)])


def tails() -> Iterator[bytes]:
    chance = random.Random(7)  # the same every time
    yield from (b"\0" * count for count in range(1, 66, 4))
    yield from (b"\0" * count + b"\n" for count in range(1, 66, 4))
    yield from (
        chance.randbytes(chance.randrange(1, 200)).strip(b"\n") + b"!"
        for _ in range(200)
    )
    yield from (chance.randbytes(chance.randrange(1, 60)) + b"!\n" for _ in range(100))


def test_whatever_stands_behind_the_last_record_costs_nothing(path: Path) -> None:
    data = written(path, 3)
    for tail in tails():
        assert Opened(path, data + tail).holds([note(0), note(1), note(2)]), tail


def flips(data: bytes, number: int, count: int) -> Iterator[bytes]:
    """Yield the file with one bit flipped in a line, at its ends and anywhere between."""
    chance = random.Random(number)  # the same every time
    lines = data.split(b"\n")
    begin = len(b"\n".join(lines[:number])) + 1
    end = begin + len(lines[number])
    for place in [
        begin,
        begin + 8,
        end - 1,
        *(chance.randrange(begin, end) for _ in range(count)),
    ][:count]:
        flipped = bytearray(data)
        flipped[place] ^= 1 << chance.randrange(8)
        yield bytes(flipped)


def test_flipped_bit_among_hundred_lines_costs_one_record(
    path: Path,
) -> None:
    data = written(path, 100)
    for number in range(100):
        (flipped,) = flips(data, number + 1, 1)

        assert Opened(path, flipped).holds(
            [note(other) for other in range(100) if other != number]
        ), number


def test_a_flipped_bit_anywhere_in_a_hundred_lines_is_found(path: Path) -> None:
    data = written(path, 100)
    for number in range(100):
        wanted = [note(other) for other in range(100) if other != number]
        for flipped in flips(data, number + 1, 18):
            found = scan(path, flipped, NOTES)

            assert [record.data for record in found.records] == wanted, number
            assert found.damage


def test_a_flipped_bit_in_a_line_break_costs_nothing(path: Path) -> None:
    data = written(path, 12)
    everything = [note(number) for number in range(12)]
    for place in (place for place, byte in enumerate(data) if byte == 0x0A):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[place] ^= 1 << bit

            assert Opened(path, bytes(flipped)).holds(everything), (place, bit)


def test_a_flipped_bit_in_the_header_costs_no_record(path: Path) -> None:
    data = written(path, 4)
    for place in range(data.index(b"\n")):
        flipped = bytearray(data)
        flipped[place] ^= 4
        assert Opened(path, bytes(flipped)).holds(
            [note(number) for number in range(4)]
        ), place
    assert path.read_bytes().startswith(b'{"crc":"')
    assert b'"amplifier-log"' in path.read_bytes().split(b"\n")[0]


@pytest.mark.parametrize(
    "stray",
    [
        b"123",
        b"[]",
        b"{}",
        b"null",
        b'"text"',
        b'{"role":"user"}',
        b"\xff\xfe",
        b"\0\0",
    ],
)
def test_a_line_that_is_no_record_is_set_aside(path: Path, stray: bytes) -> None:
    lines = written(path, 3).splitlines(keepends=True)
    for place in range(1, len(lines) + 1):
        data = b"".join((*lines[:place], stray, b"\n", *lines[place:]))
        assert Opened(path, data).holds([note(0), note(1), note(2)]), place


def test_blank_lines_are_nothing(path: Path) -> None:
    data = written(path, 2)

    opened = Opened(path, data.replace(b"\n", b"\n\n"))

    assert opened.damage == ()
    assert opened.later == [note(0), note(1), NEW]


def test_a_file_of_blank_lines_becomes_a_log(path: Path) -> None:
    assert Opened(path, b"\n\n").holds([])


def test_records_without_a_header_are_read_and_get_one(path: Path) -> None:
    data = written(path, 2)

    assert Opened(path, data[data.index(b"\n") + 1 :]).holds([note(0), note(1)])
    assert b'"amplifier-log"' in path.read_bytes()


def test_damage_names_its_place_cause_and_new_location(path: Path) -> None:
    data = written(path, 3)
    lines = data.splitlines(keepends=True)
    path.write_bytes(
        b"".join(
            (
                lines[0],
                lines[1],
                lines[2].replace(b"number", b"figure"),
                lines[3],
                b'{"crc":"00',
            )
        )
    )

    log = AppendLogFile.open(path, NOTES)
    middle, tail = log.damage
    log.close()

    stored = path.with_name("notes.jsonl.damaged")
    assert (middle.line, middle.is_tail, middle.kept_in) == (3, False, stored)
    assert (tail.line, tail.is_tail, tail.kept_in, tail.data) == (
        5,
        True,
        stored,
        b'{"crc":"00',
    )
    assert (
        str(tail) == f"line 5, 10 bytes: the checksum does not fit; moved to {stored}"
    )
    assert stored.read_bytes().splitlines() == [middle.data, tail.data]
    assert stored.stat().st_mode & 0o777 == 0o600


def test_what_the_opener_objects_to_is_set_aside_too(path: Path) -> None:
    written(path, 3)

    def check(record: LogEntry) -> str | None:
        return "it is the second" if record.data == note(1) else None

    log = AppendLogFile.open(path, Expected(holds="notes", check=check))
    log.close()

    assert [record.data for record in log.records] == [note(0), note(2)]
    assert [piece.reason for piece in log.damage] == ["it is the second"]


def test_damaged_file_without_records_is_not_taken_for_ours(
    path: Path,
) -> None:
    data = written(path, 1)
    path.write_bytes(data.replace(b'{"crc":"', b'{"???":"?'))

    with pytest.raises(LogFormatError, match="it is no log; name another file"):
        AppendLogFile.open(path, NOTES)
    log = AppendLogFile.open(path, attrs.evolve(NOTES, is_named=True))
    log.close()
    assert (log.records, len(log.damage)) == ((), 2)
    assert log.damage[0].kept_in == path.with_name("notes.jsonl.damaged")


def test_a_flipped_bit_in_a_log_without_records_leaves_a_log(path: Path) -> None:
    log = AppendLogFile.open(path, NOTES)
    log.replace(())
    log.close()
    data = path.read_bytes()
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        found = scan(path, bytes(damaged), NOTES)
        assert found.damage, bit
        assert not any(piece.is_tail for piece in found.damage), bit
        if bit % 8 == 2:
            assert Opened(path, bytes(damaged)).holds([]), bit


@pytest.mark.parametrize(
    ("damaged", "found"),
    [
        (lambda data: data + b'{"crc":"12', [0, 1]),
        (lambda data: data.replace(b"number 0", b"number 7"), [1]),
        (lambda data: data[data.index(b"\n") + 1 :], [0, 1]),
    ],
    ids=["torn", "middle", "header"],
)
@pytest.mark.parametrize("fails_at", range(2, 12))
def test_damage_that_cannot_be_set_aside_costs_nothing_more(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    damaged: Callable[[bytes], bytes],
    found: list[int],
    fails_at: int,
) -> None:
    path.write_bytes(damaged(written(path, 2)))
    System(fails_at=fails_at, for_good=True).install(monkeypatch)

    log = AppendLogFile.open(path, NOTES)
    assert [record.data for record in log.records] == [note(number) for number in found]
    if fails_at == 2:
        assert all(str(piece).endswith("left where it is") for piece in log.damage)
    System().install(monkeypatch)
    log.append(line(NEW))
    log.close()

    again = AppendLogFile.open(path, NOTES)
    again.close()
    assert [record.data for record in again.records] == [
        *(note(number) for number in found),
        NEW,
    ]
