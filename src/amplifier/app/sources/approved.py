"""Modules that a project brings along, in copies of what a person trusted: those are imported, whatever changes."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from amplifier.app.directories import is_below
from amplifier.app.projects.files import ProjectFiles
from amplifier.app.sources.trees import has_digest, hash_tree, sync_folder
from amplifier_sdk.errors import ConfigError

__all__ = ["approved_copy"]

_KINDS: Final = ("settings", "profiles", "agents", "modules")
"""The kinds of a project's files that name where modules come from."""


def approved_copy(project: ProjectFiles, path: Path) -> Path | None:
    """Return a copy of a folder or archive as it was trusted; `None` for one that the project does not name. Blocks.

    Args:
        project: what of the project's folder may be used.
        path: what is to be imported.

    Raises:
        ConfigError: it is none that a person trusted.
        OSError: the copy cannot be written.
    """
    if not is_below(path, project.dirs.root):
        return None
    root = os.path.realpath(project.dirs.root)
    name = os.path.relpath(os.path.realpath(path), root)
    for kind in _KINDS:
        decision = project.evaluate(kind)
        if decision is None or {name, f"{name}/"}.isdisjoint(decision.items):
            continue
        if not decision.trusted:
            raise ConfigError.of(
                str(path), project.explain(kind), subject="files of the project"
            )
        if decision.items.get(name) == "absent":
            raise ConfigError.of(
                str(path), "is no folder", subject="files of the project"
            )
        found = {
            file: data
            for file, data in decision.contents.items()
            if f"{file}/".startswith(f"{name}/")
        }
        return _copied(found, project.dirs.home / "cache" / "approved") / name
    return None


def _copied(contents: Mapping[str, bytes], folder: Path) -> Path:
    """Write files into a folder that goes by their digest, unless they are there."""
    digest = hashlib.sha256()
    for name, data in sorted(contents.items()):
        # With their lengths: otherwise a name could take over the beginning of a
        # content.
        for part in (name.encode(), data):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    place = folder / digest.hexdigest()[:32]
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix=".writing-", dir=folder) as staged:
        tree = Path(staged) / "tree"
        for name, data in contents.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes(data)
        if not has_digest(place, hash_tree(tree)):
            # Somebody changed the copy; it is taken away whole, so that no file of it
            # is left.
            if place.is_dir():
                place.rename(Path(staged) / "before")
            with suppress(FileExistsError):  # another process was first
                tree.rename(place)
    sync_folder(folder)
    return place
