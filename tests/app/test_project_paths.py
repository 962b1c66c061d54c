"""The paths of a project: without what git ignores, bounded, links not followed."""

from __future__ import annotations

from pathlib import Path

from amplifier.app.projects.paths import ProjectPaths
from tests.app.projects import write


def test_what_git_ignores_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / ".gitignore", "*.log\nbuild/\n")
    write(tmp_path / "src/.gitignore", "!keep.log\n")
    for name in ("a.py", "a.log", "src/keep.log", "build/out.py", ".git/HEAD"):
        write(tmp_path / name, "x")

    assert ProjectPaths(tmp_path).list() == [
        ".gitignore",
        "a.py",
        "src/",
        "src/.gitignore",
        "src/keep.log",
    ]


def test_links_are_listed_and_not_followed(tmp_path: Path) -> None:
    write(tmp_path / "shop/a.py", "x")
    (tmp_path / "shop/up").symlink_to(tmp_path)

    assert ProjectPaths(tmp_path / "shop").list() == ["a.py", "up"]


def test_a_folder_that_is_gone_has_no_paths(tmp_path: Path) -> None:
    assert ProjectPaths(tmp_path / "gone").list() == []
