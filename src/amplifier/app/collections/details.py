"""Collections as they are shown to a person: what they hold, from where they come, whether they are as installed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.collections.folders import (
    Collection,
    CollectionLibrary,
    Level,
    lock_of,
)
from amplifier.app.collections.verification import State, evaluate
from amplifier.app.directories import AppDirs
from amplifier.app.projects.files import ProjectFiles
from amplifier.app.sources.locations import canonical_name
from amplifier_sdk.errors import ConfigError, did_you_mean
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["ShownCollection", "list_collections", "show_collection"]

_MAX_NAMES: Final = 200
_PATTERNS: Final = (
    ("profiles", "*.md"),
    ("agents", "*.md"),
    ("modules", "*/pyproject.toml"),
)


@attrs.frozen(kw_only=True)
class ShownCollection:
    """A collection.

    Args:
        name: its name.
        version: that its metadata gives.
        description: likewise.
        level: whose it is.
        path: the folder with its resources.
        state: `sound` or `changed` where it was installed, `own` or `bundled` where it was not.
        reason: why it is not used.
        source: from where it was installed.
        commit: of a repository.
        hash: the digest of its files, as they were installed.
        requires: the collections that it needs, with the versions that will do.
        resources: its files by kind, as `@name:path` names them.
    """

    name: str
    version: str
    description: str
    level: Level
    path: Path
    state: State
    reason: str = ""
    source: str | None = None
    commit: str | None = None
    hash: str | None = None
    requires: Mapping[str, str] = attrs.field(factory=dict)
    resources: Mapping[str, list[str]] = attrs.field(factory=dict)

    def to_dict(self) -> JSONObject:
        """Write it as JSON data."""
        path, reason = str(self.path), self.reason or None
        return {**attrs.asdict(self), "path": path, "reason": reason}


def list_collections(dirs: AppDirs | None = None) -> list[ShownCollection]:
    """Return the collections of every level, the strongest of each name first, sorted by name.

    Args:
        dirs: where they stand; default those of the working directory.

    Raises:
        ConfigError: metadata or a lock file cannot be read; names the file.
    """
    dirs = dirs or AppDirs.find()
    library = CollectionLibrary(dirs, ProjectFiles(dirs))
    return sorted(
        (_shown(found, dirs) for found in library.every()),
        key=lambda found: found.name,
    )


def show_collection(name: str, dirs: AppDirs | None = None) -> ShownCollection:
    """Return the collection of a name, the strongest of them, also when it is not used.

    Raises:
        ConfigError: there is none; names the nearest.
    """
    dirs = dirs or AppDirs.find()
    # Before the list: it would show a weaker collection of the name, which the person
    # does not mean.
    CollectionLibrary(dirs, ProjectFiles(dirs)).require_trusted(name)
    known: dict[str, ShownCollection] = {}
    for shown in list_collections(dirs):
        known.setdefault(shown.name, shown)
    found = known.get(canonical_name(name))
    if found is None:
        problem = f"no such collection{did_you_mean(name, list(known))}"
        raise ConfigError.of(name, problem, subject="choice of collections")
    return found


def _shown(collection: Collection, dirs: AppDirs) -> ShownCollection:
    lock = lock_of(dirs, collection.level)
    shown = ShownCollection(
        name=collection.name,
        version=collection.version,
        description=collection.description,
        level=collection.level,
        path=collection.path,
        state="bundled" if lock is None else "own",
        requires=collection.requires,
        resources=_resources(collection),
    )
    locked = {} if lock is None else lock.read()
    if lock is None or collection.name not in locked:
        return shown
    entry = locked[collection.name]
    verdict = evaluate(entry, lock)
    return attrs.evolve(
        shown,
        state=verdict.state,
        reason=verdict.reason,
        source=entry.source,
        commit=entry.commit,
        hash=entry.hash,
    )


def _resources(collection: Collection) -> dict[str, list[str]]:
    """Return the files of a collection by kind; texts stand in `context` and in folders of any other name."""
    found = {
        kind: [_name(path, collection) for path in collection.resources(kind, glob)]
        for kind, glob in _PATTERNS
    }
    taken = {name for names in found.values() for name in names}
    # Texts are what mentions can name, and collections keep them in folders of any
    # name.
    texts = sorted(
        path
        for path in collection.path.rglob("*.md")
        if path.is_file() and path.parent != collection.path
    )
    found["context"] = [
        name for path in texts if (name := _name(path, collection)) not in taken
    ][:_MAX_NAMES]
    return {kind: names for kind, names in found.items() if names}


def _name(path: Path, collection: Collection) -> str:
    return path.relative_to(collection.path).as_posix()
