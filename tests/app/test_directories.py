"""A project's folder is found from wherever the person works in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier.app.directories import AppDirs


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("AMPLIFIER_HOME", raising=False)
    return folder


@pytest.mark.parametrize("mark", [".amplifier", ".git"])
def test_the_nearest_marked_folder_is_the_project(home: Path, mark: str) -> None:
    deep = home / "work" / "shop" / "src"
    deep.mkdir(parents=True)
    (home / "work" / ".git").mkdir()
    (home / "work" / "shop" / mark).mkdir()
    found = AppDirs.find(deep)
    assert found.working_dir == deep
    assert found.root == home / "work" / "shop"
    assert found.project == home / "work" / "shop" / ".amplifier"


def test_without_a_mark_the_working_directory_is_the_project(home: Path) -> None:
    (home / ".amplifier").mkdir()
    (home / "notes").mkdir()
    assert AppDirs.find(home / "notes").root == home / "notes"


def test_the_home_folder_is_no_project(home: Path) -> None:
    (home / ".amplifier").mkdir()
    assert AppDirs.find(home).project is None


def test_folder_that_environment_names_is_no_project_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state" / ".amplifier"
    state.mkdir(parents=True)
    # wherever the temporary files are, the search ends here
    (tmp_path / "state" / ".git").mkdir()
    monkeypatch.setenv("AMPLIFIER_HOME", str(state))
    assert AppDirs.find(tmp_path / "state").project is None


def test_each_project_keeps_its_state_apart(home: Path) -> None:
    for name in ("a/shop", "b/shop", "a/Ünïcode name"):
        (home / name / ".git").mkdir(parents=True)
    states = [
        AppDirs.find(home / name).state
        for name in ("a/shop", "b/shop", "a/Ünïcode name")
    ]
    assert len(set(states)) == 3
    assert all(state.parent == home / ".amplifier" / "projects" for state in states)
    assert all(state.name.isascii() for state in states)


def test_links_lead_to_one_project(home: Path) -> None:
    (home / "shop" / ".git").mkdir(parents=True)
    (home / "link").symlink_to(home / "shop")
    assert AppDirs.find(home / "link") == AppDirs.find(home / "shop")
