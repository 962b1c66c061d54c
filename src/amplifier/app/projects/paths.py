"""The files and folders of a project, for completion: what git ignores is left out, and no program runs."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.files.gitignore import IgnoreRules
from amplifier_kit.files.open_flags import LIST

__all__ = ["ProjectPaths"]

_MAX_ENTRIES: Final = 50_000
_MAX_FOLDERS: Final = 20_000
_SECONDS: Final = 5.0
"""For how long a listing is taken as the present one."""


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
        handle = os.open(folder / parent, LIST)
    except OSError:
        return []
    try:
        with os.scandir(handle) as entries:
            names = sorted(
                (entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries
            )
        rules.load(handle, parts, [name for name, _ in names])
    except OSError:
        return []
    finally:
        os.close(handle)
    return [
        (name, is_folder)
        for name, is_folder in names
        if name != ".git" and not rules.ignores((*parts, name), is_directory=is_folder)
    ]
