"""The log as a file: what it looks like, who may write it, what it refuses."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest
from anyio import ClosedResourceError

from amplifier_kit.files.appendlog import (
    AppendLogFile,
    Expected,
    LogFormatError,
    encode_line,
)
from amplifier_kit.files.locks import LockedError
from amplifier_sdk import JSONValue
from amplifier_sdk.stores import LogEntry
from tests.kit.files.appendlog.systems import System

NOTES = Expected(holds="notes", version=2)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "one" / "notes.jsonl"


def open_notes(
    path: Path, *, max_wait: float = 0, expected: Expected = NOTES
) -> AppendLogFile:
    return AppendLogFile.open(path, expected, timeout=max_wait)


def line(data: JSONValue) -> bytes:
    return encode_line(LogEntry(kind="note", data=data, at=1.5))


def filled(path: Path, *data: JSONValue, expected: Expected = NOTES) -> None:
    log = open_notes(path, expected=expected)
    for item in data:
        log.append(line(item))
    log.close()


def read(path: Path) -> list[JSONValue]:
    log = open_notes(path)
    found = [record.data for record in log.records]
    log.close()
    return found


def test_what_was_appended_is_there_at_the_next_opening(path: Path) -> None:
    filled(path, "one", {"two": 2})
    filled(path, ["three"])

    assert read(path) == ["one", {"two": 2}, ["three"]]


def test_file_is_lines_of_json_with_header_that_says_what_it_is(path: Path) -> None:
    filled(path, "one")

    header, record = map(json.loads, path.read_text("utf-8").splitlines())
    assert header["kind"] == "log"
    assert header["data"] == {
        "format": "amplifier-log",
        "version": 1,
        "holds": {"name": "notes", "version": 2},
    }
    assert {key: record[key] for key in ("kind", "at", "data")} == {
        "kind": "note",
        "at": 1.5,
        "data": "one",
    }


def test_files_and_their_folders_are_private_to_user(
    path: Path,
) -> None:
    log = open_notes(path)
    log.append(line("one"))

    modes = {
        part.name: stat.S_IMODE(part.stat().st_mode)
        for part in (path, *path.parents[:2], *path.parent.iterdir())
    }
    assert modes == {
        "notes.jsonl": 0o600,
        "notes.jsonl.lock": 0o600,
        "one": 0o700,
        "sessions": 0o700,
    }
    log.close()


def test_a_file_that_others_could_read_is_closed_to_them(path: Path) -> None:
    filled(path, "one")
    path.chmod(0o644)

    assert read(path) == ["one"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_log_without_records_leaves_no_file(path: Path) -> None:
    open_notes(path).close()

    assert list(path.parent.iterdir()) == []


def test_closing_lets_go_of_the_lock_and_twice_does_nothing(path: Path) -> None:
    log = open_notes(path)
    log.append(line("one"))
    log.close()
    log.close()

    assert log.is_closed
    assert [part.name for part in path.parent.iterdir()] == [path.name]
    assert read(path) == ["one"]


def test_a_closed_log_takes_nothing(path: Path) -> None:
    log = open_notes(path)
    log.close()

    with pytest.raises(ClosedResourceError):
        log.append(line("one"))
    with pytest.raises(ClosedResourceError):
        log.sync()
    with pytest.raises(ClosedResourceError):
        log.replace([])


def test_a_second_writer_is_refused_with_the_name_of_the_first(path: Path) -> None:
    log = open_notes(path)

    with pytest.raises(
        LockedError, match="It is being written by this process itself"
    ) as refusal:
        open_notes(path)
    log.close()

    assert refusal.value.owner is not None
    assert refusal.value.owner.pid == os.getpid()
    assert refusal.value.filename == str(path)


def test_replacing_puts_other_records_in_the_place_of_all(path: Path) -> None:
    log = open_notes(path)
    log.append(line("one"))
    log.replace(
        [
            LogEntry(kind="note", data="two", at=2),
            LogEntry(kind="note", data="three", at=3),
        ]
    )
    log.append(line("four"))
    log.close()

    assert read(path) == ["two", "three", "four"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_cannot_be_closed_is_let_go_of(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_notes(path)
    log.append(line("one"))
    log.sync()
    system = System(fails_at=1, error=errno.EIO).install(monkeypatch)
    with pytest.raises(OSError, match="Input/output error"):
        log.close()

    assert system.log == ["close"]
    System().install(monkeypatch)
    assert log.is_closed
    assert read(path) == ["one"]


@pytest.mark.parametrize(
    "text",
    [
        "shopping list\n",
        "[1]\n",
        '{"role": "user"}\n{"role"',
        "one line without an end",
    ],
)
def test_a_file_that_is_no_log_is_refused_and_left_alone(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf-8")

    with pytest.raises(
        LogFormatError, match="it is no log; name another file"
    ) as refusal:
        open_notes(path)

    assert refusal.value.path == path
    assert path.read_text("utf-8") == text
    assert [part.name for part in path.parent.iterdir()] == [path.name]


def test_a_log_of_something_else_is_refused(path: Path) -> None:
    filled(path, "one", expected=Expected(holds="journal"))

    with pytest.raises(LogFormatError, match="it holds 'journal', not 'notes'"):
        open_notes(path)


def test_a_log_that_a_newer_version_wrote_is_refused(path: Path) -> None:
    filled(path, "one", expected=Expected(holds="notes", version=3))

    with pytest.raises(
        LogFormatError, match="a newer version of this program wrote it; update"
    ):
        open_notes(path)


def header(**data: JSONValue) -> bytes:
    return encode_line(LogEntry(kind="log", data=data, at=0)) + b"\n"


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        (
            header(
                format="amplifier-log", version=2, holds={"name": "notes", "version": 1}
            ),
            "a newer version",
        ),
        (
            header(format="other", version=1, holds={"name": "notes", "version": 1}),
            "it is no log",
        ),
        (header(format="amplifier-log"), "it is no log"),
    ],
    ids=["newer", "other", "unfinished"],
)
def test_a_header_that_is_not_understood_is_refused(
    path: Path, first: bytes, problem: str
) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(first)

    with pytest.raises(LogFormatError, match=problem):
        open_notes(path)


def test_a_log_of_an_older_version_is_read(path: Path) -> None:
    filled(path, "one", expected=Expected(holds="notes", version=1))

    assert read(path) == ["one"]


def test_a_link_is_refused(path: Path, tmp_path: Path) -> None:
    filled(tmp_path / "elsewhere.jsonl", "one")
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "elsewhere.jsonl")

    with pytest.raises(OSError, match=r"notes\.jsonl"):
        open_notes(path)


def test_a_pipe_is_refused_at_once(path: Path) -> None:
    path.parent.mkdir(parents=True)
    os.mkfifo(path)

    with pytest.raises(OSError, match="It is not a regular file"):
        open_notes(path)
    # and not because the lock was kept
    with pytest.raises(OSError, match="It is not a regular file"):
        open_notes(path)


def test_a_relative_path_is_that_of_the_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = open_notes(Path("notes.jsonl"))
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    log.append(line("one"))
    log.replace([LogEntry(kind="note", data="two", at=2)])
    log.close()

    assert read(tmp_path / "notes.jsonl") == ["two"]


def test_a_record_of_a_megabyte_is_a_record_as_any_other(path: Path) -> None:
    filled(path, "x" * 1_000_000, "two")

    assert read(path) == ["x" * 1_000_000, "two"]
