"""The collections that are there: in the project, in the person's own folder, and those that come along."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal, TypeAlias

import attrs

from amplifier.app.collections.verification import evaluate
from amplifier.app.directories import FOLDER, AppDirs
from amplifier.app.fetched.lock import FetchedLock
from amplifier.app.projects.files import ProjectFiles
from amplifier.app.sources.locations import (
    PackageLocation,
    canonical_name,
    is_bare_name,
)
from amplifier.kernel.reports import report
from amplifier_kit.files.toml import read_toml
from amplifier_kit.open_data import as_object, as_text
from amplifier_sdk.errors import ConfigError, did_you_mean

__all__ = [
    "METADATA",
    "Collection",
    "CollectionLibrary",
    "Level",
    "lock_of",
    "read_collection",
]

Level: TypeAlias = Literal["project", "user", "bundled"]
METADATA: Final = "pyproject.toml"
_RESOURCES: Final = ("profiles", "agents", "context", "modules", "scenario-tools")


@attrs.frozen(kw_only=True)
class Collection:
    """A folder with resources.

    Args:
        name: the name in its metadata, else that of its folder.
        path: the folder that holds its resources.
        level: whose it is.
        version: from its metadata.
        description: likewise.
        requires: the names of the collections that it needs, with the versions that will do.
        root: the folder with its metadata, all of which is installed; default the one of its resources.
        weaker: those of its name that it hides, the strongest first: what it lacks is found in them.
    """

    name: str
    path: Path
    level: Level
    version: str = ""
    description: str = ""
    requires: Mapping[str, str] = attrs.field(factory=dict)
    root: Path = attrs.field(
        default=attrs.Factory(lambda self: self.path, takes_self=True)
    )
    weaker: tuple[Collection, ...] = ()

    @property
    def layers(self) -> tuple[Collection, ...]:
        """It and those of its name that it hides, the strongest first."""
        return (self, *self.weaker)

    def resources(self, kind: str, pattern: str = "*.md") -> list[Path]:
        """Return its own files of one kind of resource, such as `profiles`, sorted by name."""
        return sorted(
            path for path in (self.path / kind).glob(pattern) if path.is_file()
        )

    def find(self, resource: str) -> Path | None:
        """Return the file or folder that `@name:resource` names; `None` where it is not there or leads elsewhere."""
        return next(filter(None, (layer.own(resource) for layer in self.layers)), None)

    def own(self, resource: str) -> Path | None:
        """Return what `find` does, without looking into weaker ones."""
        found = self.path / resource
        # Links are followed first: one in a collection could lead to any file of the
        # person's.
        if not os.path.exists(found) or not found.resolve().is_relative_to(
            self.path.resolve()
        ):
            return None
        return found


@attrs.define(eq=False)
class CollectionLibrary:
    """Finds collections; of one name the project's wins over the person's own, and that over those that come along.

    What the winner lacks is found in the weaker ones of its name. A project's collections are found once they are
    trusted. One whose files are not the ones that were installed, or whose metadata cannot be read, is not used, and
    neither are those weaker than it.

    Args:
        dirs: where they stand.
        project: what of the project's folder may be used.
    """

    dirs: AppDirs
    project: ProjectFiles
    _found: dict[str, Collection] | None = attrs.field(default=None, init=False)
    _refused: dict[str, str] = attrs.field(factory=dict, init=False)

    def all(self) -> dict[str, Collection]:
        """Return the collections by name, the one that wins of each.

        Raises:
            ConfigError: a lock file cannot be read; names the file.
            OSError: a file cannot be read.
        """
        if self._found is None:
            found: dict[str, Collection] = {}
            for collection in self.every():
                # Also the weaker ones of a refused name: who asks for a changed
                # collection must not silently get another one.
                if collection.name in self._refused:
                    continue
                problem = self._problem(collection)
                if problem is not None:
                    self._refuse(collection.name, problem)
                    continue
                first = found.setdefault(collection.name, collection)
                if first is not collection:
                    weaker = (*first.weaker, collection)
                    found[collection.name] = attrs.evolve(first, weaker=weaker)
            self._found = found
        return self._found

    def layers(self) -> Iterator[Collection]:
        """Return the collections that are used, also those that another one of their name hides.

        Of one name the strongest comes first.
        """
        for collection in self.all().values():
            yield from collection.layers

    @property
    def refused(self) -> Mapping[str, str]:
        """Why some collections are not used, by name: their files changed, or their metadata cannot be read."""
        self.all()
        return self._refused

    def every(self) -> Iterator[Collection]:
        """Return the collections of every level, the strongest first, also those that another one hides."""
        for level, folder in self._folders():
            for path in sorted(folder.iterdir()) if folder.is_dir() else ():
                # Dots begin the folders of changes that are under way, underscores what
                # is no collection by itself.
                if not path.is_dir() or path.name.startswith((".", "_")):
                    continue
                try:
                    yield read_collection(path, level)
                except ConfigError as error:
                    problem = " ".join(str(error).split())
                    self._refuse(canonical_name(path.name), problem)

    def find(self, name: str) -> Collection | None:
        """Return the collection of a name; `None` where there is none.

        Raises:
            ConfigError: its files are not the ones that were installed, its metadata cannot be read, or the project
                brings one of this name that nobody trusted.
        """
        self.require_trusted(name)
        return self.known(name)

    def require_trusted(self, name: str) -> None:
        """Refuse a name that a collection of the project claims, and nobody trusted.

        Raises:
            ConfigError: says how to trust it.
        """
        if (folder := self.untrusted.get(canonical_name(name))) is not None:
            problem = self.project.refusal("profiles", self.dirs.root / folder)
            raise ConfigError.of(name, problem, subject="choice of collections")

    def known(self, name: str) -> Collection | None:
        """Return the collection of a name among those that may be used, whatever an untrusted folder has of it.

        Raises:
            ConfigError: its files are not the ones that were installed, or its metadata cannot be read.
        """
        found = self.all().get(canonical_name(name))
        if found is None and canonical_name(name) in self._refused:
            raise ConfigError.of(
                "", self._refused[canonical_name(name)], subject=f"collection {name!r}"
            )
        return found

    @property
    def untrusted(self) -> Mapping[str, str]:
        """The collections of the project that nobody trusted: the folder of each below the project, by its names."""
        found: dict[str, str] = {}
        prefix = f"{FOLDER}/collections/"
        for path, data in self.project.untrusted("profiles").items():
            name, _, inner = path.removeprefix(prefix).partition("/")
            if not path.startswith(prefix) or not inner or name.startswith((".", "_")):
                continue
            found[canonical_name(name)] = f"{prefix}{name}"
            # Both names are taken: a folder that nobody trusted could otherwise call
            # itself otherwise and make room for its own.
            if inner == METADATA and (claimed := _claimed_name(data)) is not None:
                found[canonical_name(claimed)] = f"{prefix}{name}"
        return found

    def lend(self, collection: Collection) -> None:
        """Know one more collection, unless there is one of its name."""
        self.all().setdefault(collection.name, collection)

    def require(self, name: str) -> Collection:
        """Return the collection of a name.

        Raises:
            ConfigError: there is none; names the nearest.
        """
        found = self.find(name)
        if found is None:
            problem = f"no such collection{did_you_mean(name, list(self.all()))}"
            raise ConfigError.of(name, problem, subject="choice of collections")
        return found

    def _refuse(self, name: str, problem: str) -> None:
        if name not in self._refused:
            self._refused[name] = problem
            report("collection.refused", collection=name, reason=problem)

    def _problem(self, collection: Collection) -> str | None:
        """Say how a collection differs from what was installed; `None` where it does not, or nothing is known."""
        lock = lock_of(self.dirs, collection.level)
        locked = None if lock is None else lock.read().get(collection.name)
        if lock is None or locked is None:
            return None
        # An entry for another folder says nothing of this one.
        if lock.folder / locked.path != collection.root:
            return None
        verdict = evaluate(locked, lock)
        return None if verdict.state == "sound" else verdict.reason

    def _folders(self) -> Iterator[tuple[Level, Path]]:
        decision, project = self.project.evaluate("profiles"), self.dirs.project
        if decision is not None and decision.trusted and project is not None:
            yield "project", project / "collections"
        yield "user", self.dirs.home / "collections"
        yield "bundled", Path(str(files("amplifier"))) / "collections"


def _claimed_name(data: bytes) -> str | None:
    try:
        name = _table(tomllib.loads(data.decode()), "project").get("name")
    except ValueError:
        return None
    if isinstance(name, str):
        return name
    return None


def lock_of(dirs: AppDirs, level: Level) -> FetchedLock | None:
    """Return the lock file of a level; `None` where nothing is installed."""
    folder = {"project": dirs.project, "user": dirs.home, "bundled": None}[level]
    if folder is None:
        return None
    return FetchedLock(folder, is_local=level == "project")


def read_collection(path: Path, level: Level) -> Collection:
    """Read a collection's metadata.

    A package may hold its resources one level below its metadata, in a folder of its name.

    Raises:
        ConfigError: the metadata is no TOML; names the file.
    """
    file = path / METADATA
    data = read_toml(file) if file.is_file() else {}
    project = _table(data, "project")
    own = _table(_table(data, "tool"), "amplifier", "collection")
    name = project.get("name")
    return Collection(
        name=canonical_name(name if isinstance(name, str) else path.name),
        path=_resources_of(path),
        level=level,
        version=as_text(project.get("version")),
        description=as_text(project.get("description")),
        requires=_requires(own.get("requires"), file),
        root=path,
    )


def _requires(value: object, file: Path) -> dict[str, str]:
    """Read what a collection needs: versions by name, or a list such as `["foundation>=1"]`."""
    if value is None:
        return {}
    match value:
        case Mapping() if all(isinstance(each, str) for each in value.values()):
            return {canonical_name(str(name)): str(value[name]) for name in value}
        case list() if all(map(is_bare_name, value)):
            needed = [PackageLocation(requirement=entry) for entry in value]
            return {location.name: location.versions for location in needed}
        case _:
            problem = f"versions by name, or a list such as ['foundation>=1']; got {value!r:.80}"
            place = "tool.amplifier.collection.requires"
            raise ConfigError.of(place, problem, subject=f"file {str(file)!r}")


def _resources_of(path: Path) -> Path:
    # A package for PyPI has its resources inside its import folder, a plain folder has
    # them on top.
    if _has_resources(path):
        return path
    inner = [folder for folder in path.iterdir() if _has_resources(folder)]
    if len(inner) == 1:
        return inner[0]
    return path


def _has_resources(folder: Path) -> bool:
    return any((folder / kind).is_dir() for kind in _RESOURCES)


def _table(data: Mapping[str, object], *keys: str) -> Mapping[str, object]:
    for key in keys:
        data = as_object(data.get(key))
    return data
