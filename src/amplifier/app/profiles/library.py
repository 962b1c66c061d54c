"""Finding profiles by name: in the project, in the person's own folder, in collections."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.collections.folders import CollectionLibrary
from amplifier.app.directories import FOLDER, Places
from amplifier.app.invalid_files import InvalidFile
from amplifier.app.profiles.documents import ProfileFile, parse_profile
from amplifier.app.projects import ProjectFiles
from amplifier_kit.files.documents import read_text
from amplifier_sdk.errors import ConfigError, Problem, did_you_mean

__all__ = ["ProfileLibrary"]

_FOLDER: Final = "profiles"
_README: Final = "README"


@attrs.frozen(kw_only=True)
class _Place:
    """Where a profile may stand.

    `data` is what a trusted project's file holds, `refusal` why one that nobody trusted cannot be used: it keeps its
    name all the same.
    """

    name: str
    path: Path
    level: str
    collection: str | None = None
    data: bytes | None = None
    refusal: str | None = None

    def read(self) -> ProfileFile:
        if self.refusal is not None:
            raise ConfigError(
                [Problem(self.name, self.refusal)], subject="choice of profiles"
            )
        if self.data is not None:
            data = self.data
        else:
            data = read_text(self.path).encode()
        return parse_profile(
            data,
            name=self.name,
            path=self.path,
            level=self.level,
            collection=self.collection,
        )

    def read_or_refuse(self) -> ProfileFile | InvalidFile:
        try:
            return self.read()
        except ConfigError as error:
            problem = " ".join(str(error).split())
            is_untrusted = self.refusal is not None
            return InvalidFile(
                name=self.name,
                path=self.path,
                level=self.level,
                problem=problem,
                is_untrusted=is_untrusted,
            )


@attrs.define(eq=False)
class ProfileLibrary:
    """Finds profiles. Of one name the project's wins over the person's own, then those of collections follow.

    Args:
        places: where they stand.
        project: what of the project's folder may be used.
        collections: the collections there are.
    """

    places: Places
    project: ProjectFiles
    collections: CollectionLibrary

    @classmethod
    def of(cls, places: Places) -> ProfileLibrary:
        """Make the library of a working directory."""
        project = ProjectFiles(places)
        return cls(places, project, CollectionLibrary(places, project))

    def names(self) -> list[str]:
        """Return the names that can be asked for, the strongest profile of each name first."""
        return list(dict.fromkeys(place.name for place in self._places()))

    def all(self) -> list[ProfileFile | InvalidFile]:
        """Read every profile that its name leads to."""
        strongest: dict[str, _Place] = {}
        for place in self._places():
            strongest.setdefault(place.name, place)
        return [place.read_or_refuse() for place in strongest.values()]

    def find(self, name: str, *, beside: ProfileFile | None = None) -> ProfileFile:
        """Read the profile of a name.

        Args:
            name: a name, `collection:name`, `collection:profiles/name.md`, or a path that begins with `.`, `~`
                or `/`.
            beside: the profile that names it: a path is relative to its folder, and a bare name that is its own
                means the next weaker profile of that name.

        Raises:
            ConfigError: there is none, it is not sound, or a project brings one that nobody trusted.
        """
        if name.startswith((".", "~", "/")):
            return self._read_path(name, beside)
        if beside is None:
            taken = None
        else:
            taken = beside.path
        for place in self._named(name):
            if place.path != taken:
                return place.read()
        missing = self._missing(name)
        if any(place.path == taken for place in self._named(name)):
            missing = "no such profile: it names itself, and there is no weaker one of that name to build on"
        raise ConfigError([Problem(name, missing)], subject="choice of profiles")

    def _named(self, name: str) -> Iterator[_Place]:
        collection, colon, resource = name.partition(":")
        if not colon:
            yield from (
                place
                for place in self._places()
                if name in (place.name, place.name.partition(":")[2])
            )
            return
        found = self.collections.find(collection)
        if found is None:
            return
        stem = resource.removeprefix(f"{_FOLDER}/").removesuffix(".md")
        for layer in found.layers:
            path = layer.own(f"{_FOLDER}/{stem}.md")
            if path is not None:
                yield _Place(
                    name=f"{found.name}:{stem}",
                    path=path,
                    level=layer.level,
                    collection=found.name,
                )

    def _places(self) -> Iterator[_Place]:
        yield from self._of_project()
        for file in sorted((self.places.home / _FOLDER).glob("*.md")):
            if file.stem != _README:
                yield _Place(name=file.stem, path=file, level="user")
        yield from self._of_untrusted_collections()
        for layer in self.collections.layers():
            for file in layer.resources(_FOLDER):
                if file.stem != _README:
                    name = f"{layer.name}:{file.stem}"
                    yield _Place(
                        name=name, path=file, level=layer.level, collection=layer.name
                    )

    def _of_project(self) -> Iterator[_Place]:
        prefix = f"{FOLDER}/{_FOLDER}/"
        for path, data in sorted(self.project.contents("profiles").items()):
            if (stem := _stem_below(path, prefix)) is not None:
                yield _Place(
                    name=stem, path=self.places.root / path, level="project", data=data
                )
        for path in sorted(self.project.untrusted("profiles")):
            if (stem := _stem_below(path, prefix)) is not None:
                yield self._untrusted(stem, path)

    def _of_untrusted_collections(self) -> Iterator[_Place]:
        paths = sorted(self.project.untrusted("profiles"))
        for collection, folder in self.collections.untrusted.items():
            for path in paths:
                stem = path.removesuffix(".md").rpartition("/")[2]
                if (
                    path.startswith(f"{folder}/")
                    and path.endswith(f"/{_FOLDER}/{stem}.md")
                    and stem != _README
                ):
                    yield self._untrusted(f"{collection}:{stem}", path)

    def _untrusted(self, name: str, path: str) -> _Place:
        refusal = self.project.refusal("profiles", self.places.root / path)
        return _Place(
            name=name, path=self.places.root / path, level="project", refusal=refusal
        )

    def _read_path(self, name: str, beside: ProfileFile | None) -> ProfileFile:
        if beside is None:
            base = self.places.working_dir
        else:
            base = beside.path.parent
        # leaves the home of nobody as it is; `Path.expanduser` raises
        path = base / os.path.expanduser(name)
        if beside is not None:
            self.project.require_own(beside.path, path)
        data = self.project.read(_FOLDER, path)
        return _Place(name=name, path=path, level="path", data=data).read()

    def _missing(self, name: str) -> str:
        names = self.names()
        return f"no such profile{did_you_mean(name, names) or '; known: ' + (', '.join(names) or 'none')}"


def _stem_below(path: str, prefix: str) -> str | None:
    """Return the name of the profile that a path is, directly below a folder of profiles; `None` where it is none."""
    stem = path.removeprefix(prefix).removesuffix(".md")
    if (
        path.startswith(prefix)
        and path.endswith(".md")
        and "/" not in stem
        and stem != _README
    ):
        return stem
    return None
