"""Finding a program where the person keeps programs, and never in the folder that is worked in."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["find_program", "foreign_path", "safe_path"]


def safe_path(path: str) -> str:
    """Return a search path without the entries that count from the working directory: `.`, `bin`, an empty one."""
    return os.pathsep.join(
        folder for folder in path.split(os.pathsep) if os.path.isabs(folder)
    )


def find_program(
    name: str,
    *,
    environ: Mapping[str, str] | None = None,
    directory: str | Path | None = None,
) -> str | None:
    """Return the absolute path of a program; `None` if it is not installed.

    An entry of the search path that is relative, or lies in the working directory, does not count: what stands there
    came with a project. The environment that this program runs in does, wherever it is; and a folder that holds the
    person's home is no project.

    Args:
        name: the program.
        environ: whose `PATH` it is; default the process's.
        directory: the working directory; default the process's.
    """
    path = foreign_path(
        (os.environ if environ is None else environ).get("PATH", os.defpath),
        directory or os.getcwd(),
    )
    if path:
        return shutil.which(name, path=path)
    return None


def foreign_path(path: str, directory: str | Path) -> str:
    """Return a search path without the entries that a project brings along, as `find_program` does.

    Args:
        path: the search path.
        directory: the working directory.
    """
    project = Path(os.path.realpath(directory))
    folders = [folder for folder in safe_path(path).split(os.pathsep) if folder]
    if not Path(os.path.realpath(Path.home())).is_relative_to(project):
        folders = [folder for folder in folders if not _is_of_project(folder, project)]
    return os.pathsep.join(folders)


def _is_of_project(folder: str, project: Path) -> bool:
    if folder == os.path.dirname(sys.executable):
        return False
    return Path(os.path.realpath(folder)).is_relative_to(project)
