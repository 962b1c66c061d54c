"""Finding bundles: by name, by a path within a named one, by the address where they were fetched."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.bundles.documents import BundleFile, parse_bundle
from amplifier.app.collections.folders import CollectionLibrary
from amplifier.app.places import FOLDER, Places
from amplifier.app.projects import ProjectFiles
from amplifier.app.settings.settings import Settings
from amplifier.app.sources.cache import SourceCache
from amplifier.app.sources.locations import GitLocation, PathLocation, read_location
from amplifier_sdk.errors import ConfigError, Problem, did_you_mean
from amplifier_sdk.kit.documents import read_text

__all__ = ["BundleLibrary", "FoundBundle"]

_FOLDER: Final = "bundles"
_ENDINGS: Final = (".md", ".yaml", ".yml")
_STEM: Final = "bundle"
_ADDED: Final = ("bundle", "added")


@attrs.frozen(kw_only=True)
class FoundBundle:
    """Where a bundle of a name is.

    Args:
        name: under which it is asked for.
        path: its file.
        level: whose it is: `project`, `user`, `added`, a collection's.
        source: where it was added from.
    """

    name: str
    path: Path
    level: str
    source: str | None = None


@attrs.define(eq=False, kw_only=True)
class BundleLibrary:
    """Finds bundles. Of one name the project's wins, then the person's own, then a collection's, then what was added.

    Args:
        places: where they stand.
        project: what of the project's folder may be used.
        collections: the collections there are.
        settings: the settings that hold; they name what was added.
        fetches: fetch what was never fetched, instead of refusing it.
    """

    places: Places
    project: ProjectFiles
    collections: CollectionLibrary
    settings: Settings
    fetches: bool = False

    @classmethod
    def of(cls, places: Places, *, fetches: bool = False) -> BundleLibrary:
        """Make the library of a working directory."""
        from amplifier.app.settings.settings import load_settings  # those who compose have loaded them

        project = ProjectFiles(places)
        settings = load_settings(places, project=project)
        return cls(
            places=places,
            project=project,
            collections=CollectionLibrary(places, project),
            settings=settings,
            fetches=fetches,
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
            found.setdefault(name, FoundBundle(name=name, path=Path(source), level="added", source=source))
        return sorted(found.values(), key=lambda bundle: bundle.name)

    @property
    def added(self) -> Mapping[str, str]:
        """What was added: the address of each by its name."""
        return self.settings.read().bundle.added

    def find(self, name: str) -> BundleFile:
        """Read the bundle that a person asks for.

        Args:
            name: a name, `collection:path`, a path that begins with `.`, `~` or `/`, or an address.

        Raises:
            ConfigError: there is none, it is not sound, it was never fetched, or nobody trusted it.
        """
        if name.startswith((".", "~", "/")) or "://" in name:
            return self.open(name, self.places.working_dir)
        namespace, colon, path = name.partition(":")
        if colon:
            collection = self.collections.find(namespace)
            if collection is None:
                raise _missing(name, f"no such collection{did_you_mean(namespace, list(self.collections.all()))}")
            return self.within(collection.path, path, level=collection.level)
        for found in self._places():
            if found.name == name:
                return self.read(found.path, found.level)
        if name in self.added:
            return self._read_added(name)
        names = [found.name for found in self.all()]
        raise _missing(name, self._withheld() + did_you_mean(name, names) or f"; known: {', '.join(names) or 'none'}")

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
                return self.within(Path(os.path.normpath(location.path)), "", level="path")
            case GitLocation():
                return self.within(self._fetched(location), "", level="git")
            case _:
                raise _missing(address, "a bundle is a file, a folder, or a repository as git+https://…")

    def within(self, root: Path, path: str, *, level: str) -> BundleFile:
        """Read the bundle at a path below a folder; an empty path is the folder's own.

        Raises:
            ConfigError: nothing is there, or the path leads out of the folder.
        """
        place = Path(os.path.normpath(root / path)) if path else root
        if path and not place.resolve().is_relative_to(root.resolve()):
            raise _missing(path, f"it leads out of {root}")
        for candidate in _candidates(place):
            if candidate.is_file():
                return self.read(candidate, level)
        endings = ", ".join(_ENDINGS)
        raise _missing(str(place), f"there is no bundle: a file that ends in {endings}, or a folder with {_STEM}.md")

    def read(self, path: Path, level: str) -> BundleFile:
        """Read a bundle's file; of what stands in the project's folder, what was trusted.

        Raises:
            ConfigError: it is not sound, or nobody trusted it.
        """
        return parse_bundle(self.content(path), path=path, level=level)

    def content(self, path: Path) -> bytes:
        """Return a file of a bundle; of what stands in the project's folder, what was trusted.

        Raises:
            ConfigError: it cannot be read, or nobody trusted it.
        """
        project = self.places.project
        if project is None or not _is_below(path, project):
            return read_text(path).encode()
        data = self.project.contents("profiles").get(os.path.relpath(path, self.places.root))
        if data is None:
            raise _missing(str(path), f"it is not among what may be used of this folder{self._withheld()}")
        return data

    def require_whole(self, file: BundleFile, other: BundleFile) -> None:
        """Refuse what a project's bundle includes of the project, but not of what a person trusted.

        Raises:
            ConfigError: says where it would have to stand.
        """
        project = self.places.project
        if project is None or not _is_below(file.path, project):
            return
        if _is_below(other.path, self.places.root) and not _is_below(other.path, project):
            raise _missing(str(other.path), f"a file of the project must stand in {FOLDER}/{_FOLDER} to be trusted")

    def _places(self) -> Iterator[FoundBundle]:
        prefix = f"{FOLDER}/{_FOLDER}/"
        trusted = [name for name in sorted(self.project.contents("profiles")) if name.startswith(prefix)]
        for name in (name.removeprefix(prefix) for name in trusted):
            bundle = _named(self.places.root / prefix / name, Path(name), "project")
            if bundle is not None:
                yield bundle
        yield from _in_folder(self.places.home / _FOLDER, "user")
        for collection in self.collections.all().values():
            yield from _in_folder(collection.path / _FOLDER, collection.level)

    def _read_added(self, name: str) -> BundleFile:
        """Read a bundle that the settings name; those of a project may not name files of it that nobody trusted."""
        origin = self.settings.explain((*_ADDED, name))[0]
        base = self.places.root if origin.scope in ("project", "local") else self.places.home
        found = self.open(self.added[name], base)
        if origin.path is not None and origin.scope == "project":
            self.require_whole(attrs.evolve(found, path=origin.path), found)
        return attrs.evolve(found, level="added" if found.level == "path" else found.level)

    def _fetched(self, location: GitLocation) -> Path:
        cache = SourceCache.of(self.places)
        if not self.fetches and cache.pins.find(str(location)) is None:
            raise _missing(str(location), "it was never fetched; 'amplifier bundle add' fetches it and pins its commit")
        return cache.open(location)

    def _withheld(self) -> str:
        decision = self.project.judge("profiles")
        if decision is None or decision.trusted:
            return ""
        return f" ({decision.reason}; look at what the project brings and run 'amplifier trust')"


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


def _is_below(path: Path, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _missing(name: str, problem: str) -> ConfigError:
    problem = problem if problem and not problem.startswith((";", " ")) else f"no such bundle{problem}"
    return ConfigError([Problem(name, problem)], subject="choice of bundles")
