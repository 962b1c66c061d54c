"""Paths that a plugin or a marketplace names: inside its folder, or none at all."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

__all__ = ["path_inside"]


def path_inside(folder: Path, named: object, base: Path | None = None) -> Path | None:
    """Return the file or folder that is named, links resolved; blocks.

    Args:
        folder: the folder that it has to be in.
        named: what somebody else wrote there.
        base: what a relative path is relative to; default `folder`.

    Returns:
        `None` where it is no text that a path can be, or leads out of the folder.
    """
    if not isinstance(named, str):
        return None
    try:
        # resolved before it is compared: `..` and links may lead out
        path = Path(base or folder, named).resolve()
        # what is not there may be made later, and is no other place then
        with suppress(FileNotFoundError):
            path.lstat()
    except (OSError, ValueError):
        # longer than a path may be, below a file, a NUL, or half of a surrogate pair
        return None
    if path.is_relative_to(folder.resolve()):
        return path
    return None
