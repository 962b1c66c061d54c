"""The files and folders of a project, for completion, and its branch: git's own files are read, and no program runs."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.files.gitignore import IgnoreRules
from amplifier_kit.files.handles import closing_handle
from amplifier_kit.files.open_flags import LIST

__all__ = ["ProjectPaths", "branch_of"]

_MAX_ENTRIES: Final = 50_000
_MAX_FOLDERS: Final = 20_000
_SECONDS: Final = 5.0
"""For how long a listing is taken as the present one."""

_MAX_BYTES: Final = 4096
_REFS: Final = "ref: refs/heads/"
_SHORT: Final = 8


@attrs.define(eq=False)
class ProjectPaths:
    """Lists what is below a folder, at most 50,000 entries, breadth first; links are listed and not followed.

    Args:
        folder: the folder.
    """

    folder: Path
    _listed: Sequence[str] = ()
    _listed_at: float | None = None

    def list(self) -> Sequence[str]:
        """Return the paths, relative to the folder; folders end in a slash. It blocks, unless it was just called."""
        now = time.monotonic()
        if self._listed_at is None or now - self._listed_at > _SECONDS:
            self._listed = _walk(self.folder)
            self._listed_at = time.monotonic()
        return self._listed


def _walk(folder: Path) -> list[str]:
    found: list[str] = []
    rules = IgnoreRules()
    folders = deque([""])
    for _ in range(_MAX_FOLDERS):
        if not folders or len(found) >= _MAX_ENTRIES:
            break
        parent = folders.popleft()
        for name, is_folder in _entries(folder, parent, rules):
            path = f"{parent}{name}"
            if is_folder:
                path += "/"
                folders.append(path)
            found.append(path)
    return found[:_MAX_ENTRIES]


def _entries(folder: Path, parent: str, rules: IgnoreRules) -> list[tuple[str, bool]]:
    """Return the names of a folder that are not ignored, sorted, each with whether it is a folder."""
    parts = tuple(parent.split("/")[:-1])
    try:
        with closing_handle(os.open(folder / parent, LIST)) as handle:
            with os.scandir(handle) as entries:
                names = sorted(
                    (each.name, each.is_dir(follow_symlinks=False)) for each in entries
                )
            rules.load(handle, parts, [name for name, _ in names])
    except OSError:
        return []
    return [
        (name, is_folder)
        for name, is_folder in names
        if name != ".git" and not rules.ignores((*parts, name), is_directory=is_folder)
    ]


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
