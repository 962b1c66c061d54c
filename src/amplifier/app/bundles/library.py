"""Finding bundles: by name, by a path within a named one, by the address where they were fetched."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.bundles.documents import BundleFile, parse_bundle
from amplifier.app.collections.folders import CollectionLibrary
from amplifier.app.directories import FOLDER, Places, is_below
from amplifier.app.projects import ProjectFiles
from amplifier.app.settings.settings import Settings
from amplifier.app.sources.cache import SourceCache
from amplifier.app.sources.locations import GitLocation, PathLocation
from amplifier.app.sources.parser import read_location
from amplifier_sdk.errors import ConfigError, Problem, did_you_mean

__all__ = ["ADDED", "BundleLibrary", "FoundBundle", "is_address"]

ADDED: Final = ("bundle", "added")
"""The setting under which bundles are named that were added."""

_FOLDER: Final = "bundles"
_TRUSTED: Final = "profiles"
_ENDINGS: Final = (".md", ".yaml", ".yml")
_STEM: Final = "bundle"


def is_address(name: str) -> bool:
    """Whether a name says where a bundle is: a path that begins with `.`, `~` or `/`, or a URL."""
    return name.startswith((".", "~", "/", "file:")) or "://" in name


@attrs.frozen(kw_only=True)
class FoundBundle:
    """Where a bundle of a name is.

    Args:
        name: under which it is asked for.
        level: whose it is: `project`, `user`, `added`, a collection's.
        path: its file; `None` where it was added.
        source: where it was added from.
        collection: the collection it came with.
        refusal: why it cannot be used: it is the project's, and nobody trusted it.
    """

    name: str
    level: str
    path: Path | None = None
    source: str | None = None
    collection: str | None = None
    refusal: str | None = None


@attrs.define(eq=False, kw_only=True)
class BundleLibrary:
    """Finds bundles. Of one name the project's wins, then the person's own, then a collection's, then what was added.

    Args:
        places: where they stand.
        project: what of the project's folder may be used.
        collections: the collections there are.
        settings: the settings that hold; they name what was added.
        opens: returns the folder of a repository; default at its pinned commit, and never one that was not pinned.
    """

    places: Places
    project: ProjectFiles
    collections: CollectionLibrary
    settings: Settings
    opens: Callable[[GitLocation], Path] | None = None

    @classmethod
    def of(
        cls, places: Places, opens: Callable[[GitLocation], Path] | None = None
    ) -> BundleLibrary:
        """Make the library of a working directory."""
        # those who compose have loaded them
        from amplifier.app.settings.settings import load_settings

        project = ProjectFiles(places)
        settings = load_settings(places, project=project)
        collections = CollectionLibrary(places, project)
        return cls(
            places=places,
            project=project,
            collections=collections,
            settings=settings,
            opens=opens,
        )

    def all(self) -> list[FoundBundle]:
        """Return the bundles that can be asked for by name, the one that wins of each; those added are not looked for.

        Raises:
            ConfigError: the metadata of a collection cannot be read.
        """
        found: dict[str, FoundBundle] = {}
        for bundle in self._places():
            found.setdefault(bundle.name, bundle)
        for name, source in self.added.items():
            found.setdefault(name, FoundBundle(name=name, level="added", source=source))
        return sorted(found.values(), key=lambda bundle: bundle.name)

    @property
    def added(self) -> Mapping[str, str]:
        """What was added: the address of each by its name."""
        return self.settings.read().bundle.added

    def find(self, name: str) -> BundleFile:
        """Read the bundle that a person asks for.

        Args:
            name: a name, `collection:path`, or an address.

        Raises:
            ConfigError: there is none, it is not sound, it was never fetched, or nobody trusted it.
        """
        if is_address(name):
            return self.open(name, self.places.working_dir)
        namespace, colon, path = name.partition(":")
        if colon:
            collection = self.collections.find(namespace)
            if collection is None:
                hint = did_you_mean(namespace, list(self.collections.all()))
                raise _refused(name, f"no such collection{hint}")
            return self.within(
                collection.path,
                path,
                level=collection.level,
                collection=collection.name,
            )
        for found in self._places():
            if found.name == name and found.refusal is not None:
                raise _refused(name, found.refusal)
            if found.name == name and found.path is not None:
                return self.read(found.path, found.level, found.collection)
        if name in self.added:
            return self._read_added(name)
        names = [found.name for found in self.all()]
        hint = did_you_mean(name, names) or f"; known: {', '.join(names) or 'none'}"
        raise _refused(name, f"no such bundle{hint}")

    def open(self, address: str, base: Path) -> BundleFile:
        """Read the bundle at an address: a file, a folder with one, or a repository that was fetched.

        Args:
            address: as it is written.
            base: what a relative path is relative to.

        Raises:
            ConfigError: it is no address that may be used, nothing is there, or it was never fetched.
        """
        location = read_location(address, base)
        match location:
            case PathLocation():
                return self.within(
                    Path(os.path.normpath(location.path)), "", level="path"
                )
            case GitLocation():
                if self.opens is None:
                    folder = self._pinned(location)
                else:
                    folder = self.opens(location)
                return self.within(folder, "", level="git")
            case _:
                raise _refused(
                    address,
                    "a bundle is a file, a folder, or a repository as git+https://…",
                )

    def within(
        self, root: Path, path: str, *, level: str, collection: str | None = None
    ) -> BundleFile:
        """Read the bundle at a path below a folder; an empty path is the folder's own.

        Raises:
            ConfigError: nothing is there, or the path leads out of the folder.
        """
        if path:
            place = Path(os.path.normpath(root / path))
        else:
            place = root
        if path and not is_below(place, root):
            raise _refused(path, f"it leads out of {root}")
        for candidate in _candidates(place):
            if candidate.is_file():
                return self.read(candidate, level, collection)
        endings = ", ".join(_ENDINGS)
        raise _refused(
            str(place),
            f"there is no bundle: a file that ends in {endings}, or a folder with {_STEM}.md",
        )

    def read(self, path: Path, level: str, collection: str | None = None) -> BundleFile:
        """Read a bundle's file; of what stands in the project's folder, what was trusted.

        Raises:
            ConfigError: it is not sound, or nobody trusted it.
        """
        return parse_bundle(
            self.content(path), path=path, level=level, collection=collection
        )

    def content(self, path: Path) -> bytes:
        """Return a file of a bundle; of what stands in the project's folder, what was trusted.

        Raises:
            ConfigError: it cannot be read, or nobody trusted it.
        """
        return self.project.read(_TRUSTED, path)

    def _places(self) -> Iterator[FoundBundle]:
        prefix = f"{FOLDER}/{_FOLDER}/"
        trusted = [
            name
            for name in sorted(self.project.contents(_TRUSTED))
            if name.startswith(prefix)
        ]
        for name in (name.removeprefix(prefix) for name in trusted):
            bundle = _named(self.places.root / prefix / name, Path(name), "project")
            if bundle is not None:
                yield bundle
        for path in sorted(self.project.untrusted(_TRUSTED)):
            bundle = _named(
                self.places.root / path, Path(path.removeprefix(prefix)), "project"
            )
            if path.startswith(prefix) and bundle is not None:
                yield attrs.evolve(
                    bundle,
                    refusal=self.project.refusal(_TRUSTED, self.places.root / path),
                )
        yield from _in_folder(self.places.home / _FOLDER, "user")
        for layer in self.collections.layers():
            for bundle in _in_folder(layer.path / _FOLDER, layer.level):
                yield attrs.evolve(bundle, collection=layer.name)

    def _read_added(self, name: str) -> BundleFile:
        """Read a bundle that the settings name; those of a project may not name files of it that nobody trusted."""
        address, layer = self.settings.source((*ADDED, name))
        found = self.open(address, layer.base)
        if layer.scope == "project":
            self.project.require_own(layer.path, found.path)
        if found.level == "path":
            return attrs.evolve(found, level="added")
        return found

    def _pinned(self, location: GitLocation) -> Path:
        cache = SourceCache.of(self.places)
        if cache.pins.find(str(location)) is None:
            told = "it was never fetched; 'amplifier bundle add' fetches it and pins its commit"
            raise _refused(str(location), told)
        return cache.open(location)


def _candidates(place: Path) -> Iterator[Path]:
    if place.is_dir():
        yield from (place / f"{_STEM}{ending}" for ending in _ENDINGS)
    elif place.suffix in _ENDINGS:
        yield place
    else:
        yield from (place.with_name(f"{place.name}{ending}") for ending in _ENDINGS)


def _in_folder(folder: Path, level: str) -> Iterator[FoundBundle]:
    for path in sorted([*folder.glob("*"), *folder.glob(f"*/{_STEM}.*")]):
        bundle = _named(path, path.relative_to(folder), level)
        if bundle is not None and path.is_file():
            yield bundle


def _named(path: Path, below: Path, level: str) -> FoundBundle | None:
    """Return the bundle that a file below a folder of bundles is: `NAME.md`, or `NAME/bundle.md`."""
    if path.suffix not in _ENDINGS or path.stem == "README":
        return None
    if len(below.parts) == 1:
        return FoundBundle(name=path.stem, path=path, level=level)
    if len(below.parts) == 2 and path.stem == _STEM:
        return FoundBundle(name=below.parts[0], path=path, level=level)
    return None


def _refused(name: str, problem: str) -> ConfigError:
    return ConfigError([Problem(name, problem)], subject="choice of bundles")
