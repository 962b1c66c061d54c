"""New modules: their names, their files, and that they are sound as they come."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.app.scaffold import make_module, name_module
from amplifier.app.scaffold.names import PREFIXES
from amplifier.validation import validate
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.hookspecs import KINDS


@pytest.mark.parametrize(
    "name",
    [
        "week-days",
        "Week Days",
        "week_days",
        "tool-week-days",
        "amplifier-module-tool-week-days",
        " week  days ",
    ],
)
def test_every_spelling_of_a_name_gives_the_same_names(name: str) -> None:
    names = name_module(name, "tool")

    assert names.id == "tool-week-days"
    assert names.distribution == "amplifier-module-tool-week-days"
    assert names.package == "amplifier_module_tool_week_days"
    assert (names.snake, names.cls, names.title) == (
        "week_days",
        "WeekDays",
        "Week days",
    )


@pytest.mark.parametrize(
    ("name", "kind", "cls"),
    [
        ("tool-x", "tool", "X"),
        ("provider-x", "provider", "XProvider"),
        ("hooks-x", "hook", "X"),
        ("hook-x", "hook", "X"),
        ("loop-x", "orchestrator", "XLoop"),
        ("orchestrator-x", "orchestrator", "XLoop"),
        ("context-x", "context", "XContext"),
    ],
)
def test_the_beginning_of_a_name_tells_the_type(name: str, kind: str, cls: str) -> None:
    names = name_module(name)

    assert (names.type, names.cls) == (kind, cls)
    assert names.id == f"{PREFIXES[kind]}x"


@pytest.mark.parametrize(
    ("name", "cls"),
    [
        ("provider-base", "ProviderBaseProvider"),
        ("context-base", "ContextBaseContext"),
        ("tool-tool-error", "ToolToolError"),
        ("hooks-mock-tool", "HookMockTool"),
        ("tool-test-runs", "ToolTestRuns"),
        ("tool-none", "ToolNone"),
        ("hooks-true", "HookTrue"),
    ],
)
def test_class_has_no_name_that_means_something_else_in_files(
    name: str, cls: str
) -> None:
    assert name_module(name).cls == cls


@pytest.mark.process
@pytest.mark.parametrize("length", [1, 8, 17, 30])
def test_however_long_the_name_the_files_are_in_their_format(
    tmp_path: Path, length: int
) -> None:
    for kind in PREFIXES:
        make_module("abcdefgh-abcdefgh-abcdefgh-abc"[:length], kind, parent=tmp_path)

    for arguments in (["check"], ["format", "--check"]):
        result = subprocess.run(
            [sys.executable, "-m", "ruff", *arguments, "--no-cache", str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stdout


def test_there_is_a_beginning_for_every_type() -> None:
    assert {
        kind.name: True for kind in KINDS if PREFIXES[kind.name] in kind.prefixes
    } == dict.fromkeys(PREFIXES, True)


@pytest.mark.parametrize(
    ("name", "kind", "problem"),
    [
        ("days", None, "begins with no type"),
        ("days", "tol", "did you mean 'tool'"),
        ("provider-days", "tool", "begins like a provider"),
        ("tool-", "tool", "cannot be one"),
        ("", "tool", "cannot be one"),
        ("2days", "tool", "begins with a letter"),
        ("days!", "tool", "cannot be one"),
        ("../days", "tool", "cannot be one"),
        ("tägliches", "tool", "cannot be one"),
        ("x" * 31, "tool", "at most 30"),
        ("class", "tool", "a word of Python's own"),
    ],
)
def test_a_name_that_cannot_be_one_says_why(
    name: str, kind: str | None, problem: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(problem)):
        name_module(name, kind)


@given(name=st.text(max_size=50), kind=st.sampled_from(sorted(PREFIXES)))
def test_whatever_is_accepted_is_a_sound_name_everywhere(name: str, kind: str) -> None:
    try:
        names = name_module(name, kind)
    except ConfigError:
        return

    assert names.package.isidentifier()
    assert names.package.isascii()
    assert names.cls.isidentifier()
    assert names.snake.isidentifier()
    assert len(names.snake) <= 64
    assert name_module(names.id) == name_module(names.distribution) == names


@pytest.mark.process
@pytest.mark.parametrize("kind", sorted(PREFIXES))
def test_a_new_module_of_each_type_is_valid_without_a_warning(
    tmp_path: Path, kind: str
) -> None:
    made = make_module("week days", kind, parent=tmp_path)

    report = validate(made.folder, behavioral=True)

    findings = [result for result in report.all_results if result.backend is None]
    assert [result for result in findings if result.status != "passed"] == []
    assert report.count("error") == report.count("warning") == 0
    assert report.modules[0].id == made.names.id
    assert report.modules[0].type == kind


@pytest.mark.parametrize("kind", sorted(PREFIXES))
def test_files_are_those_told_and_nothing_is_left_open_in_them(
    tmp_path: Path, kind: str
) -> None:
    made = make_module("x", kind, parent=tmp_path / "new" / "place")

    found = sorted(
        str(path.relative_to(made.folder))
        for path in made.folder.rglob("*")
        if path.is_file()
    )
    assert found == list(made.files)
    assert {
        "README.md",
        "noxfile.py",
        "pyproject.toml",
        "tests/test_conformance.py",
        "tests/test_x.py",
    } < set(found)
    assert [
        name
        for name in found
        if re.search(r"\$|NAME|PACKAGE", (made.folder / name).read_text("utf-8"))
    ] == []
    assert [path.name for path in made.folder.parent.iterdir()] == [made.folder.name]


def test_the_folder_has_the_rights_that_others_have(tmp_path: Path) -> None:
    (tmp_path / "beside").mkdir()

    made = make_module("tool-x", parent=tmp_path)

    assert stat.S_IMODE(made.folder.stat().st_mode) == stat.S_IMODE(
        (tmp_path / "beside").stat().st_mode
    )


@pytest.mark.parametrize("what", ["a folder", "a file", "a link to nothing"])
def test_what_exists_is_never_touched(tmp_path: Path, what: str) -> None:
    place = tmp_path / "amplifier-module-tool-x"
    match what:
        case "a folder":
            place.mkdir()
        case "a file":
            place.write_text("mine")
        case _:
            os.symlink("nowhere", place)
    before = place.lstat()

    with pytest.raises(ConfigError, match="exists; choose another name"):
        make_module("tool-x", parent=tmp_path)

    assert place.lstat() == before


def test_place_that_cannot_be_written_is_error_that_names_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match="cannot be written"):
        make_module("tool-x", parent=tmp_path / "file")


def test_a_write_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.rename", fail)

    with pytest.raises(ConfigError, match="No space left"):
        make_module("tool-x", parent=tmp_path)

    assert list(tmp_path.iterdir()) == []
