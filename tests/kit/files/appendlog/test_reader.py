"""A log is read while another writes it, and nothing about it changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier_kit.files.appendlog import (
    AppendLogFile,
    Expected,
    LogContent,
    LogFormatError,
    encode_line,
    read_log,
)
from amplifier_sdk.stores import LogEntry

NOTES = Expected(holds="notes")


def write(path: Path, *texts: str) -> AppendLogFile:
    log = AppendLogFile.open(path, NOTES)
    for text in texts:
        log.append(encode_line(LogEntry(kind="note", data=text, at=1.0)))
    return log


def test_a_log_that_is_open_is_read(tmp_path: Path) -> None:
    log = write(tmp_path / "notes.jsonl", "milk", "bread")
    found = read_log(tmp_path / "notes.jsonl", NOTES)
    log.close()
    assert [record.data for record in found.records] == ["milk", "bread"]
    assert found.damage == ()


def test_damage_is_told_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    write(path, "milk", "bread").close()
    data = path.read_bytes()[:-4]
    path.write_bytes(data)
    found = read_log(path, NOTES)
    assert [record.data for record in found.records] == ["milk"]
    assert [piece.is_tail for piece in found.damage] == [True]
    assert path.read_bytes() == data


def test_a_log_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert read_log(tmp_path / "notes.jsonl", NOTES) == LogContent()
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text("milk\n")
    with pytest.raises(LogFormatError):
        read_log(path, NOTES)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match="link"):
        read_log(tmp_path / "link", NOTES)
