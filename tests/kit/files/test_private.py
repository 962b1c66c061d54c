"""Small files of their owner's: read only where nobody else may have written them, and changed all at once."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from amplifier_kit.files.private import PrivateFile, PrivateFileError
from amplifier_sdk.jsontypes import JSONValue


@pytest.fixture
def file(tmp_path: Path) -> PrivateFile:
    """Name a file in a folder that does not exist yet."""
    return PrivateFile(tmp_path / "deep" / "state" / "kept.json")


def test_what_does_not_exist_holds_nothing(file: PrivateFile) -> None:
    assert file.read() is None
    file.path.parent.mkdir(parents=True, mode=0o700)
    assert file.read() is None


def test_what_was_written_is_read(file: PrivateFile) -> None:
    assert file.update(lambda old: {"was": old}) == {"was": None}
    assert file.update(lambda old: {"was": old}) == {"was": {"was": None}}
    assert file.read() == {"was": {"was": None}}
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in file.path.parent.iterdir()] == ["kept.json"]


def test_a_change_that_fails_changes_nothing(file: PrivateFile) -> None:
    file.update(lambda _: 1)
    with pytest.raises(ZeroDivisionError):
        file.update(lambda _: 1 // 0)
    assert file.read() == 1
    file.update(lambda _: 2)


def test_what_nobody_could_read_again_is_not_written(file: PrivateFile) -> None:
    file.update(lambda _: 1)
    with pytest.raises(PrivateFileError, match="would have more than 16000000 bytes"):
        file.update(lambda _: "x" * 16_000_000)
    assert file.read() == 1


def test_writers_wait_for_each_other(file: PrivateFile) -> None:
    def count(old: JSONValue) -> JSONValue:
        return old + 1 if isinstance(old, int) else 1

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: file.update(count), range(20)))
    assert file.read() == 20


def make_link(path: Path) -> None:
    path.rename(path.with_name("other"))
    path.symlink_to("other")


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir(mode=0o700)


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "others": (lambda path: path.chmod(0o620), "can be written by others"),
    "hard-link": (lambda path: os.link(path, path.with_name("second")), "second name"),
    "folder": (make_folder, "no regular file"),
    "torn": (lambda path: path.write_text('{"a": '), "cannot be read as JSON"),
    "deep": (lambda path: path.write_text("[" * 100_000), "cannot be read as JSON"),
    "large": (lambda path: path.write_text(" " * 16_000_001), "more than"),
    "open-folder": (lambda path: path.parent.chmod(0o777), "can be written by others"),
}


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_what_others_may_have_written_is_not_believed(
    fault: str, file: PrivateFile
) -> None:
    spoil, problem = FAULTS[fault]
    file.update(lambda _: {"a": 1})
    spoil(file.path)
    with pytest.raises(PrivateFileError, match=problem):
        file.read()
    with pytest.raises(PrivateFileError, match=problem):
        file.update(lambda old: old)


def test_a_link_is_not_followed(file: PrivateFile) -> None:
    file.update(lambda _: 1)
    make_link(file.path)
    with pytest.raises(OSError, match="symbolic links"):
        file.read()


@pytest.mark.parametrize("own", [True, False], ids=["folder", "file"])
def test_what_belongs_to_somebody_else_is_not_believed(
    own: bool, file: PrivateFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.update(lambda _: 1)
    user = os.geteuid()
    answers = iter([user + 1] if own else [user, user + 1])
    monkeypatch.setattr(os, "geteuid", lambda: next(answers))
    with pytest.raises(PrivateFileError, match="belongs to somebody else"):
        file.read()
