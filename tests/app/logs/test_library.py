"""Logs are found by id, by the beginning of one, by name; children belong to those that made them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.logs.library import LogLibrary, SessionLogFiles
from amplifier.app.store.records import SessionRecord
from amplifier_kit.files.names import folder_name
from amplifier_sdk.errors import ConfigError
from tests.app.logs.records import Story, write_log


def keep(
    root: Path,
    session_id: str,
    parent_id: str | None = None,
    *,
    name: str | None = None,
    age: int = 0,
) -> Path:
    """Write the log of a session below a root, with its record where it has a name."""
    folder = root / "sessions" / folder_name(session_id)
    story = Story(session_id, parent_id)
    path = write_log(
        folder / "events.jsonl", [b"no record\n", story.tell("session:start")]
    )
    if name is not None:
        record = SessionRecord(session_id=session_id, parent_id=parent_id, name=name)
        (folder / "metadata.json").write_text(json.dumps(record.to_dict()))
    os.utime(path, (1_000_000 - age, 1_000_000 - age))
    return path


@pytest.fixture
def library(dirs: AppDirs) -> LogLibrary:
    keep(dirs.state, "aaa-1", age=5)
    keep(dirs.state, "aaa-2", name="shop talk", age=9)
    keep(dirs.state, "aaa-2-child_x", "aaa-2")
    keep(dirs.state, "aaa-2-child_x-deep", "aaa-2-child_x", name="deep")
    keep(dirs.state, "Odd / Id", age=7)
    keep(dirs.home / "projects" / "other-000", "bbb")
    keep(dirs.home, "embedded")
    (dirs.state / "sessions" / "empty").mkdir()
    damaged = keep(dirs.state, "damaged", age=20)
    damaged.with_name("metadata.json").write_text("{")
    return LogLibrary(dirs)


@pytest.mark.parametrize(
    ("name", "session_id"),
    [
        ("aaa-1", "aaa-1"),
        ("aaa-2", "aaa-2"),
        ("shop talk", "aaa-2"),
        ("Odd / Id", "Odd / Id"),
        ("Odd", "Odd / Id"),
        ("aaa-2-child_x-d", "aaa-2-child_x-deep"),
        ("bb", "bbb"),
        ("embedded", "embedded"),
        ("damaged", "damaged"),
    ],
)
def test_a_log_is_found(library: LogLibrary, name: str, session_id: str) -> None:
    assert library.find(name).session_id == session_id


@pytest.mark.parametrize(
    ("name", "said"),
    [("aaa", "aaa-1, aaa-2"), ("zzz", "no session"), ("", "no session")],
)
def test_what_is_not_found_or_not_clear_is_told(
    library: LogLibrary, name: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        library.find(name)


def test_the_newest_is_no_child_and_of_this_project(library: LogLibrary) -> None:
    assert library.newest().session_id == "aaa-1"


def test_a_family_is_all_that_came_of_a_session(library: LogLibrary) -> None:
    family = library.family(library.find("aaa-2"))
    assert [log.session_id for log in family] == [
        "aaa-2",
        "aaa-2-child_x",
        "aaa-2-child_x-deep",
    ]
    assert len(library.family(library.find("aaa-1"))) == 1


def test_without_a_log_the_module_that_writes_them_is_named(dirs: AppDirs) -> None:
    with pytest.raises(ConfigError, match="hooks-logging"):
        LogLibrary(dirs).newest()


def test_a_file_is_a_log_wherever_it_stands(tmp_path: Path, dirs: AppDirs) -> None:
    path = write_log(tmp_path / "copy.jsonl", [Story("x", "y").tell("e")])
    log = SessionLogFiles.of_file(path)
    assert (log.session_id, log.parent_id) == ("x", "y")
    assert LogLibrary(dirs).family(log) == [log]
    assert (
        SessionLogFiles.of_file(
            write_log(tmp_path / "odd" / "e.jsonl", [b"?\n"])
        ).session_id
        == "odd"
    )
    with pytest.raises(ConfigError, match="no such file"):
        SessionLogFiles.of_file(tmp_path / "none")


def test_of_an_id_no_other_session_is_read(
    library: LogLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []
    names = os.listdir

    def list_names(path: Path) -> list[str]:
        listed.append(path.name)
        return names(path)

    monkeypatch.setattr(os, "listdir", list_names)
    assert library.find("aaa-1").session_id == "aaa-1"
    assert library.find("bbb").session_id == "bbb"
    assert "sessions" not in listed


def test_a_family_grows_while_sessions_come(dirs: AppDirs) -> None:
    library = LogLibrary(dirs)
    keep(dirs.state, "top")
    top = library.find("top")
    assert library.family(top) == [top]

    folder = dirs.state / "sessions" / "top-1"
    folder.mkdir()
    assert library.family(top) == [top]
    record = SessionRecord(session_id="top-1", parent_id="top")
    (folder / "metadata.json").write_text(json.dumps(record.to_dict()))
    assert library.family(top) == [top]
    keep(dirs.state, "top-1-deep", "top-1")
    assert [log.session_id for log in library.family(top)] == ["top", "top-1-deep"]
    keep(dirs.state, "top-1", "top")
    assert [log.session_id for log in library.family(top)][:2] == ["top", "top-1"]
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    assert [log.session_id for log in library.family(top)] == ["top"]


def test_a_folder_that_did_not_change_is_not_listed_again(
    library: LogLibrary, dirs: AppDirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.utime(dirs.state / "sessions", (1_000_000, 1_000_000))
    top = library.find("aaa-2")
    family = library.family(top)
    monkeypatch.setattr(os, "listdir", lambda _: pytest.fail("it was listed again"))

    assert library.family(top) == family
