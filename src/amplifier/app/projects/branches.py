"""The branch of a git repository, read from its files: no program runs for it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["branch_of"]

_MAX_BYTES: Final = 4096
_REFS: Final = "ref: refs/heads/"
_SHORT: Final = 8


def branch_of(folder: Path) -> str:
    """Return the branch that is checked out in a folder with `.git` in it: of none, the beginning of its commit.

    It blocks, for as long as reading two small files takes. What cannot be read has no branch, which is empty text.
    """
    git = folder / ".git"
    if git.is_file():  # a worktree, or a submodule: a file says where its data stand
        named = _first_line(git)
        if not named.startswith("gitdir: "):
            return ""
        git = folder / named.removeprefix("gitdir: ")
    head = _first_line(git / "HEAD")
    if head.startswith(_REFS):
        return head.removeprefix(_REFS)
    return head[:_SHORT]


def _first_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.readline(_MAX_BYTES).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return ""
