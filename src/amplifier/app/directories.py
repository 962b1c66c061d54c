"""Where the files of a person and of a project stand."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Final, Self

import attrs

from amplifier_kit.files.homes import amplifier_home

__all__ = ["FOLDER", "AppDirs", "is_below"]

FOLDER: Final = ".amplifier"
"""The folder of a project's own files, in the project."""


def is_below(path: Path, folder: Path) -> bool:
    """Whether a path leads to a folder or into it, once links are followed; what no file can be called does not."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    except ValueError:  # a NUL, or half a surrogate pair
        return False


@attrs.frozen(kw_only=True)
class AppDirs:
    """The folders that an application looks into; none of them need exist.

    Args:
        working_dir: where the person works.
        home: the person's own folder.
        root: the project's folder: the nearest at or above the working directory with a folder `.amplifier` or a
            git repository in it; else the working directory.
    """

    working_dir: Path
    home: Path
    root: Path

    @classmethod
    def find(
        cls, working_dir: Path | None = None, environ: Mapping[str, str] = os.environ
    ) -> Self:
        """Find the places of a working directory, default the one of now."""
        working_dir = Path(os.path.realpath(working_dir or Path.cwd()))
        home = amplifier_home(environ)
        return cls(working_dir=working_dir, home=home, root=_root_of(working_dir, home))

    @cached_property
    def project(self) -> Path | None:
        """The folder of the project's own files; `None` where it would be the person's own."""
        folder = self.root / FOLDER
        if _is_same(folder, self.home):
            return None
        return folder

    @property
    def state(self) -> Path:
        """The folder for files of the project's sessions, in the person's own folder: `session.dir`."""
        return self.home / "projects" / self.slug

    @cached_property
    def slug(self) -> str:
        """The name under which the project is stored: its folder's name and a digest of its path."""
        legible = (
            re.sub(r"[^a-z0-9]+", "-", self.root.name.lower()).strip("-")[:40] or "root"
        )
        return f"{legible}-{hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]}"


def _root_of(working_dir: Path, home: Path) -> Path:
    """Look upwards, but not at the person's home folder or above: what stands there is no project's."""
    above = Path(os.path.realpath(Path.home()))
    for folder in (working_dir, *working_dir.parents):
        if folder == above:
            break
        marked = folder / FOLDER
        if (folder / ".git").exists() or (
            marked.is_dir() and not _is_same(marked, home)
        ):
            return folder
    return working_dir


def _is_same(folder: Path, home: Path) -> bool:
    return os.path.realpath(folder) == os.path.realpath(home)
