"""Finding modules by metadata, without importing anything.

Entry points of the group `amplifier.modules` are read from the `entry_points.txt` of installed
distributions, folder by folder; reading only these files is several times faster than
`importlib.metadata.entry_points()`, which parses every group of every distribution.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import attrs

__all__ = ["GROUP", "FoundModule", "installed_modules"]

GROUP: Final = "amplifier.modules"
"""The entry-point group in which modules stand."""


@attrs.frozen
class FoundModule:
    """A module that an installed distribution offers: its id, what the entry point names, where it was read."""

    id: str
    target: str
    distribution: str
    path: str


def installed_modules(path: Sequence[str] | None = None, *, refresh: bool = False) -> tuple[FoundModule, ...]:
    """Return every installed module, in the order of the search path.

    Args:
        path: the folders to search; default `sys.path`.
        refresh: read again what this process has read before.
    """
    if refresh:
        _scan.cache_clear()
    return _scan(tuple(sys.path if path is None else path))


@lru_cache(maxsize=8)
def _scan(path: tuple[str, ...]) -> tuple[FoundModule, ...]:
    found: dict[tuple[str, str], FoundModule] = {}
    for folder in dict.fromkeys(path):
        for module in _in_folder(folder or os.curdir):
            found.setdefault((module.id, module.distribution), module)
    return tuple(found.values())


def _in_folder(folder: str) -> Iterator[FoundModule]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return  # entries of sys.path need not exist, and may be archives
    for name in names:
        if name.endswith((".dist-info", ".egg-info")):
            where = os.path.join(folder, name)
            yield from _in_metadata(where, name.rsplit(".", 1)[0].split("-")[0].replace("_", "-"))


def _in_metadata(where: str, distribution: str) -> Iterator[FoundModule]:
    try:
        with open(os.path.join(where, "entry_points.txt"), encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError):
        return  # most distributions have none
    if GROUP not in text:
        return
    inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line == f"[{GROUP}]"
        elif inside and "=" in line and not line.startswith(("#", ";")):
            name, target = line.split("=", 1)
            yield FoundModule(name.strip(), target.split("[")[0].strip(), distribution, where)
