"""Which branch is checked out, by what git writes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier.app.projects.paths import branch_of


@pytest.mark.parametrize(
    ("head", "branch"),
    [
        ("ref: refs/heads/main\n", "main"),
        ("ref: refs/heads/feature/x\n", "feature/x"),
        ("93ab0a1f3c0de0000000000000000000000000aa\n", "93ab0a1f"),
        ("", ""),
    ],
)
def test_a_repository_says_its_branch(tmp_path: Path, head: str, branch: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").write_text(head)

    assert branch_of(tmp_path) == branch


def test_a_worktree_says_its_own_branch(tmp_path: Path) -> None:
    data = tmp_path / "main/.git/worktrees/shop"
    data.mkdir(parents=True)
    (data / "HEAD").write_text("ref: refs/heads/shop\n")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/.git").write_text("gitdir: ../main/.git/worktrees/shop\n")

    assert branch_of(tmp_path / "shop") == "shop"


def test_what_is_no_repository_has_no_branch(tmp_path: Path) -> None:
    assert branch_of(tmp_path) == ""
    (tmp_path / ".git").write_text("something else")
    assert branch_of(tmp_path) == ""
