"""Failing system calls and kills, at every call of a log's life: what was acknowledged is there, whole and once."""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from amplifier_kit.files.appendlog import (
    AppendError,
    AppendLogFile,
    Durability,
    Expected,
    encode_line,
)
from amplifier_sdk import JSONValue
from amplifier_sdk.stores import LogEntry
from tests.kit.files.appendlog.systems import KilledError, System

NOTES: Final = Expected(holds="notes")


def line(data: JSONValue) -> bytes:
    return encode_line(LogEntry(kind="note", data=data, at=1.5))


class Life:
    """A log is opened, filled, compacted, filled again and closed; each step may fail."""

    def __init__(self, path: Path, durability: Durability) -> None:
        self.path = path
        self.durability = durability
        self.known: list[JSONValue] = ["a", "c"]
        self.possible: list[list[JSONValue]] = []

    def live(self) -> int:
        """Live through it, and return how many steps failed."""
        failed = 0
        with suppress(KilledError):
            try:
                log = AppendLogFile.open(
                    self.path, NOTES, durability=self.durability, timeout=0
                )
            except OSError:
                return 1
            try:
                for number in range(3):
                    failed += self.append(log, number)
                failed += self.attempt(log.sync)
                failed += self.replace(log)
                failed += self.append(log, 3)
            finally:
                failed += self.attempt(log.close)
        return failed

    def attempt(self, step: object) -> int:
        assert callable(step)
        try:
            step()
        except OSError:
            return 1
        return 0

    def append(self, log: AppendLogFile, number: int) -> int:
        self.possible.append([*self.known, number])
        try:
            log.append(line(number))
        except AppendError:
            return 1
        self.known = self.possible.pop()
        return 0

    def replace(self, log: AppendLogFile) -> int:
        fewer = self.known[1:]
        self.possible.append(fewer)
        try:
            log.replace([LogEntry(kind="note", data=data, at=2) for data in fewer])
        except OSError:
            # Either the old records are there or, when only the folder's sync failed, the new ones.
            if len(self.path.read_bytes().splitlines()) - 1 == len(fewer):
                self.known = fewer
            return 1
        self.known = self.possible.pop()
        return 0


def begun(path: Path) -> None:
    """Leave a log as a crash does: whole records, one damaged in the middle, and a torn one."""
    log = AppendLogFile.open(path, NOTES)
    for name in ("a", "b", "c"):
        log.append(line(name))
    log.close()
    path.write_bytes(path.read_bytes().replace(b'"b"', b'"B"') + b'{"crc":"0')


def found(path: Path) -> list[JSONValue]:
    log = AppendLogFile.open(path, NOTES, timeout=0)
    log.close()
    return [record.data for record in log.records]


def calls_of_a_life(
    path: Path, durability: Durability, monkeypatch: pytest.MonkeyPatch
) -> int:
    system = System().install(monkeypatch)
    begun(path)
    before = len(system.log)
    Life(path, durability).live()
    return len(system.log) - before


@pytest.mark.parametrize("durability", ["written", "sync"])
@pytest.mark.parametrize("for_good", [False, True], ids=["once", "from-then-on"])
@pytest.mark.parametrize(
    "error", [errno.ENOSPC, errno.EIO, errno.EFBIG], ids=["full", "io", "too-big"]
)
def test_failing_call_anywhere_loses_nothing_acknowledged(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    durability: Durability,
    error: int,
    *,
    for_good: bool,
) -> None:
    for number in range(
        1, calls_of_a_life(tmp_path / "count", durability, monkeypatch) + 1
    ):
        System().install(monkeypatch)
        path = tmp_path / f"{number}.jsonl"
        begun(path)
        life = Life(path, durability)
        System(fails_at=number, error=error, for_good=for_good).install(monkeypatch)

        failed = life.live()
        System().install(monkeypatch)

        assert failed <= 1 or for_good, number
        # A refused record that can never be cut off again is there, as after a kill: whole.
        assert found(path) in (
            [life.known, *life.possible] if for_good else [life.known]
        ), number


@pytest.mark.parametrize("durability", ["written", "sync"])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_kill_at_any_call_loses_nothing_that_was_acknowledged(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    durability: Durability,
    share: float,
) -> None:
    for number in range(
        1, calls_of_a_life(tmp_path / "count", durability, monkeypatch) + 1
    ):
        System().install(monkeypatch)
        path = tmp_path / f"{number}.jsonl"
        begun(path)
        life = Life(path, durability)
        System(fails_at=number, error=None, for_good=True, share=share).install(
            monkeypatch
        )

        life.live()
        System().install(monkeypatch)

        assert found(path) in [life.known, *life.possible], number


def test_full_disk_told_and_same_log_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "notes.jsonl"
    log = AppendLogFile.open(path, NOTES)
    log.append(line("one"))
    size = path.stat().st_size
    System(fails_at=1, for_good=True).install(monkeypatch)

    with pytest.raises(
        AppendError,
        match=r"No space left on device; nothing of the \d+ bytes was stored",
    ) as full:
        log.append(line("two"))
    with pytest.raises(AppendError, match="No space left on device"):
        log.append(line("two"))
    System().install(monkeypatch)
    log.append(line("three"))

    assert full.value.errno == errno.ENOSPC
    assert full.value.filename == str(path)
    assert log.end == path.stat().st_size > size
    log.close()
    again = AppendLogFile.open(path, NOTES)
    again.close()
    assert [record.data for record in again.records] == ["one", "three"]
    assert again.damage == ()


@pytest.mark.parametrize("fails_at", [2, 4], ids=["write", "rename"])
def test_a_full_disk_is_told_with_the_file_that_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    path = tmp_path / "notes.jsonl"
    log = AppendLogFile.open(path, NOTES)
    log.append(line("one"))
    System(fails_at=fails_at).install(monkeypatch)
    with pytest.raises(OSError, match=r"No space left on device: .*/notes.jsonl'$"):
        log.replace(())
    System().install(monkeypatch)
    log.close()

    assert found(path) == ["one"]


def test_old_file_that_cannot_be_closed_costs_new_one_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "notes.jsonl"
    log = AppendLogFile.open(path, NOTES)
    log.append(line("a"))
    system = System(fails_at=5, error=errno.EIO).install(monkeypatch)
    with suppress(OSError):
        log.replace([LogEntry(kind="note", data=data, at=2) for data in "bcd"])
    assert system.log[4] == "close"

    log.append(line("e"))
    System(fails_at=1).install(monkeypatch)
    with pytest.raises(AppendError):
        log.append(line("f"))
    System().install(monkeypatch)
    log.close()

    assert found(path) == ["b", "c", "d", "e"]


def test_synced_record_is_on_disk_before_acknowledgement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = System().install(monkeypatch)
    log = AppendLogFile.open(tmp_path / "notes.jsonl", NOTES, durability="sync")
    system.log.clear()

    log.append(line("one"))
    # the file, and its name in the folder
    assert system.log == ["write", "fdatasync", "open", "fsync", "close"]
    log.append(line("two"))
    assert system.log[5:] == ["write", "fdatasync"]
    assert not log.is_dirty
    log.close()


def test_otherwise_the_records_are_on_the_disk_after_a_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = System().install(monkeypatch)
    log = AppendLogFile.open(tmp_path / "notes.jsonl", NOTES)
    system.log.clear()

    log.append(line("one"))
    log.append(line("two"))
    assert system.log == ["write", "write"]
    assert log.is_dirty
    log.sync()
    log.sync()
    log.close()

    assert system.log == [
        "write",
        "write",
        "fdatasync",
        "open",
        "fsync",
        "close",
        "close",
    ]
