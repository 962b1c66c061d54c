"""Finding profiles and bundles: by name, by path, and bundles by where they come from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.collections.folders import CollectionLibrary
from amplifier.app.definitions import (
    DefinitionFile,
    InvalidFile,
    is_definition,
    of_collections,
    of_project,
    of_user,
)
from amplifier.app.directories import FOLDER, AppDirs, is_below
from amplifier.app.profiles.documents import Kind, ProfileFile, parse_file
from amplifier.app.projects.files import ProjectFiles
from amplifier.app.settings.settings import Settings, load_settings
from amplifier.app.sources.cache import SourceCache
from amplifier.app.sources.locations import GitLocation, PathLocation
from amplifier.app.sources.parser import read_location
from amplifier_sdk.errors import ConfigError, did_you_mean

__all__ = [
    "ADDED",
    "ProfileLibrary",
    "create_profile_loader",
    "is_address",
    "refused",
]

ADDED: Final = ("bundle", "added")
"""The setting under which bundles are named that were added."""

_TRUSTED: Final = "profiles"
_ENDINGS: Final = (".md", ".yaml", ".yml")
_STEM: Final = "bundle"
_PATTERNS: Final = {"profile": ("*.md",), "bundle": ("*", f"*/{_STEM}.*")}
_FORMS: Final = {
    "profile": "a Markdown file",
    "bundle": f"a file that ends in {', '.join(_ENDINGS)}, or a folder with {_STEM}.md",
}


def is_address(name: str, kind: Kind) -> bool:
    """Tell whether a name says where a file is.

    That is a path which begins with `.`, `~` or `/`; of a bundle also a URL.
    """
    is_url = name.startswith("file:") or "://" in name
    return name.startswith((".", "~", "/")) or (kind == "bundle" and is_url)


@attrs.define(eq=False)
class ProfileLibrary:
    """Finds profiles and bundles.

    Of one name the project's wins over the person's own, then those of collections
    follow, then the bundles that were added.

    Args:
        dirs: where they stand.
        project: what of the project's folder may be used.
        collections: the collections there are.
        settings: name the bundles that were added; default those of the places.
        opens: returns the folder of a repository; default at its pinned commit, and
            never one that was not pinned.
    """

    dirs: AppDirs
    project: ProjectFiles
    collections: CollectionLibrary
    _settings: Settings | None = None
    opens: Callable[[GitLocation], Path] | None = None

    @classmethod
    def of(
        cls, dirs: AppDirs, opens: Callable[[GitLocation], Path] | None = None
    ) -> ProfileLibrary:
        """Make the library of a working directory."""
        project = ProjectFiles(dirs)
        return cls(dirs, project, CollectionLibrary(dirs, project), opens=opens)

    @property
    def settings(self) -> Settings:
        """The settings that hold."""
        # Profiles are found without them, also where a file of settings is damaged.
        if self._settings is None:
            self._settings = load_settings(self.dirs, project=self.project)
        return self._settings

    @property
    def added(self) -> Mapping[str, str]:
        """The address of each bundle that was added, by its name."""
        return self.settings.read().bundle.added

    def names(self) -> list[str]:
        """Return the names of profiles, the strongest file of each name first."""
        return [file.name for file in self.found("profile")]

    def all(self) -> list[ProfileFile | InvalidFile]:
        """Read every profile that its name leads to."""
        read: list[ProfileFile | InvalidFile] = []
        for file in self.found("profile"):
            try:
                read.append(self._read(file, "profile"))
            except ConfigError as error:
                read.append(file.invalid(error))
        return read

    def found(self, kind: Kind) -> list[DefinitionFile]:
        """Return the files that names lead to, but for bundles that were added.

        Raises:
            ConfigError: the metadata of a collection cannot be read.
        """
        strongest: dict[str, DefinitionFile] = {}
        for file in self._files(kind):
            # Files come in order of precedence, so the first of a name is the
            # strongest.
            strongest.setdefault(file.name, file)
        return list(strongest.values())

    def find(
        self, name: str, kind: Kind = "profile", *, beside: ProfileFile | None = None
    ) -> ProfileFile:
        """Read the profile or bundle of a name.

        Args:
            name: a name, `collection:name`, or where it is: see `is_address`.
            kind: which of the two.
            beside: the file that names it: a path is relative to its folder, and its own
                name means the next weaker file of that name.

        Raises:
            ConfigError: there is none, it is not sound, was never fetched, or nobody
                trusted it.
        """
        if is_address(name, kind):
            base = beside.path.parent if beside else self.dirs.working_dir
            return self.open(name, kind, base)
        files = self._in_collection if ":" in name else self._named
        is_itself = False
        for file in files(name, kind):
            if beside is None or file.path != beside.path:
                return self._read(file, kind)
            is_itself = True
        # After all files: an added name must not hide a bundle that the person has.
        if kind == "bundle" and name in self.added:
            return self._read_added(name)
        if is_itself:
            problem = "it names itself, and there is no weaker one of that name"
            raise _missing(kind, name, f": {problem} to build on")
        names = [file.name for file in self.found(kind)]
        if kind == "bundle":
            names += self.added
        hint = did_you_mean(name, names) or f"; known: {', '.join(names) or 'none'}"
        raise _missing(kind, name, hint)

    def find_profile_file(self, name: str) -> Path:
        """Return the file of the profile of a name.

        Raises:
            ConfigError: there is none, it is not sound, or nobody trusted it.
        """
        return self.find(name).path

    def open(self, address: str, kind: Kind, base: Path) -> ProfileFile:
        """Read what is at an address.

        It is a file; of a bundle also a folder, or a repository that was fetched.

        Args:
            address: as it is written.
            kind: profile or bundle.
            base: what a relative path is relative to.

        Raises:
            ConfigError: it is no address that may be used, nothing is there, or it was
                never fetched.
        """
        location = read_location(address, base)
        match location:
            case PathLocation():
                place, level = Path(os.path.normpath(location.path)), "path"
            case GitLocation() if kind == "bundle":
                place, level = self._fetched(location), "git"
            case _:
                forms = "a file, a folder, or a repository as git+https://…"
                raise refused(kind, address, f"a bundle is {forms}")
        path = next(filter(os.path.isfile, _files_at(place, kind)), None)
        if path is None:
            raise _no_file(kind, place)
        return self._at(path, kind, address, level)

    def within(self, root: Path, path: str) -> ProfileFile:
        """Read the bundle at a path in the folder of one.

        Args:
            root: the folder.
            path: where it is there; empty for the folder's own.

        Raises:
            ConfigError: nothing is there, or the path leads out of the folder.
        """
        file = _file_in(root, path, "bundle")
        if file is None:
            raise _no_file("bundle", root / path)
        return self._at(file, "bundle", path, "path")

    def content(self, path: Path) -> bytes:
        """Return what a file holds; of the project's folder, what was trusted.

        Raises:
            ConfigError: it cannot be read, or nobody trusted it.
        """
        return self.project.read(_TRUSTED, path)

    def _at(self, path: Path, kind: Kind, name: str, level: str) -> ProfileFile:
        data = self.content(path)
        return parse_file(data, kind=kind, path=path, level=level, name=name)

    def _files(self, kind: Kind) -> Iterator[DefinitionFile]:
        folder, patterns = f"{kind}s", _PATTERNS[kind]
        for file in chain(
            of_project(self.project, _TRUSTED, f"{FOLDER}/{folder}"),
            of_user(self.dirs.home, _TRUSTED, folder, *patterns),
            of_collections(self.collections, folder, *patterns),
        ):
            name = _NAMES[kind](file)
            if name is not None:
                yield attrs.evolve(file, name=name)

    def _named(self, name: str, kind: Kind) -> Iterator[DefinitionFile]:
        for file in self._files(kind):
            # A profile of a collection is also known without its collection's name.
            if file.name == name or file.name.endswith(f":{name}"):
                yield file

    def _in_collection(self, name: str, kind: Kind) -> Iterator[DefinitionFile]:
        namespace, _, path = name.partition(":")
        collection = self.collections.find(namespace)
        if collection is None:
            hint = did_you_mean(namespace, list(self.collections.all()))
            raise _missing(kind, name, f": no such collection{hint}")
        if kind == "profile":
            stem = path.removeprefix("profiles/").removesuffix(".md")
            name, path = f"{collection.name}:{stem}", f"profiles/{stem}.md"
        for layer in collection.layers:
            found = _file_in(layer.path, path, kind)
            if found is not None:
                yield DefinitionFile(
                    path=found,
                    place=found.relative_to(layer.path),
                    name=name,
                    level=layer.level,
                    collection=layer.name,
                    kind=_TRUSTED,
                )

    def _read(self, file: DefinitionFile, kind: Kind) -> ProfileFile:
        return parse_file(
            file.read(self.project),
            kind=kind,
            path=file.path,
            level=file.level,
            name=file.name,
            collection=file.collection,
        )

    def _read_added(self, name: str) -> ProfileFile:
        address, layer = self.settings.source((*ADDED, name))
        file = self.open(address, "bundle", layer.base)
        if layer.scope == "project":
            # Trusting a project's settings covers no other file that they name.
            self.project.require_own(layer.path, file.path)
        if file.level == "path":
            return attrs.evolve(file, level="added")
        return file

    def _fetched(self, location: GitLocation) -> Path:
        if self.opens is not None:
            return self.opens(location)
        cache = SourceCache.of(self.dirs)
        # Starting a session must not fetch: what runs is what the person saw when it
        # was pinned.
        if cache.pins.find(str(location)) is None:
            remedy = "'amplifier bundle add' fetches it and pins its commit"
            raise refused("bundle", str(location), f"it was never fetched; {remedy}")
        return cache.open(location)


def create_profile_loader() -> ProfileLibrary:
    """Make the library of the working directory of the process."""
    return ProfileLibrary.of(AppDirs.find())


def refused(kind: Kind, name: str, problem: str) -> ConfigError:
    """Return the error that a name or an address cannot be used."""
    return ConfigError.of(name, problem, subject=f"choice of {kind}s")


def _no_file(kind: Kind, place: Path) -> ConfigError:
    return refused(kind, str(place), f"there is no {kind}: {_FORMS[kind]}")


def _missing(kind: Kind, name: str, reason: str) -> ConfigError:
    return refused(kind, name, f"no such {kind}{reason}")


def _file_in(root: Path, path: str, kind: Kind) -> Path | None:
    """Return the file at a path in a folder; `None` where none is.

    Raises:
        ConfigError: the path leads out of the folder.
    """
    place = Path(os.path.normpath(root / path))
    found = next(filter(os.path.isfile, _files_at(place, kind)), None)
    if not is_below(found or place, root):
        raise _missing(kind, path, f": it leads out of {root}")
    return found


def _files_at(place: Path, kind: Kind) -> Iterator[Path]:
    """Yield the files that a path may mean: of a bundle the ending may be left out."""
    # What no file can be called is no folder: `os.path` does not raise for it.
    is_folder = os.path.isdir(place)
    if kind == "profile" or (place.suffix in _ENDINGS and not is_folder):
        yield place
    elif is_folder:
        yield from (place / f"{_STEM}{ending}" for ending in _ENDINGS)
    else:
        yield from (place.with_name(f"{place.name}{ending}") for ending in _ENDINGS)


def _profile_name(file: DefinitionFile) -> str | None:
    if not is_definition(file.place):
        return None
    return ":".join(filter(None, (file.collection, file.place.stem)))


def _bundle_name(file: DefinitionFile) -> str | None:
    """Return the name of a bundle: of `NAME.md`, or of `NAME/bundle.md`."""
    place = file.place
    if place.suffix in _ENDINGS and place.stem != "README":
        if len(place.parts) == 1:
            return place.stem
        if len(place.parts) == 2 and place.stem == _STEM:
            return place.parts[0]
    return None


_NAMES: Final = {"profile": _profile_name, "bundle": _bundle_name}
