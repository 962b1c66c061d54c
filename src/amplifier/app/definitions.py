"""The files that define profiles, bundles, agents and commands, wherever one may be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import Final

import attrs

from amplifier.app.collections.folders import CollectionLibrary
from amplifier.app.projects.files import ProjectFiles
from amplifier_kit.files.documents import read_text
from amplifier_sdk.errors import ConfigError

__all__ = [
    "DefinitionFile",
    "InvalidFile",
    "is_definition",
    "of_collections",
    "of_project",
    "of_user",
]

_COLLECTIONS: Final = "profiles"
"""The kind of files that a project's collections are trusted as."""


@attrs.frozen(kw_only=True)
class InvalidFile:
    """A file with problems. It keeps its name, so that no weaker file of that name takes its place unnoticed.

    Args:
        name: what it would be found under.
        path: the file.
        level: whose it is: `environment`, `project`, `user`, `bundled`.
        problem: what is wrong; names the file.
        is_untrusted: whether it is a project's, and nothing is wrong but that nobody trusted it.
    """

    name: str
    path: Path
    level: str
    problem: str
    is_untrusted: bool = False


@attrs.frozen(kw_only=True)
class DefinitionFile:
    """A file that defines something under a name.

    Args:
        path: the file.
        place: its path in the folder of all that define such things.
        name: under which it is asked for; default what the file is called.
        level: whose it is: `environment`, `project`, `user`, `bundled`.
        collection: the collection that brings it.
        kind: what a project's file is trusted as; `None` where the person named it.
        refusal: why it cannot be used. It is a project's, and nobody trusted it:
            it keeps its name all the same.
        claim: what such a file holds; it is read for the name that it gives itself.
    """

    path: Path
    place: PurePath
    name: str = attrs.field(
        default=attrs.Factory(lambda self: self.place.stem, takes_self=True)
    )
    level: str
    collection: str | None = None
    kind: str | None = None
    refusal: str | None = None
    claim: bytes = attrs.field(default=b"", repr=False)

    def read(self, project: ProjectFiles) -> bytes:
        """Return what the file holds; of a project's, what was trusted.

        Raises:
            ConfigError: it cannot be read, or nobody trusted it.
        """
        if self.refusal is not None:
            raise ConfigError.of(self.name, self.refusal, subject="choice of files")
        if self.kind is None:
            return read_text(self.path).encode()
        return project.read(self.kind, self.path)

    def invalid(self, error: ConfigError) -> InvalidFile:
        """Return the file as one that cannot be used."""
        return InvalidFile(
            name=self.name,
            path=self.path,
            level=self.level,
            problem=self.refusal or " ".join(str(error).split()),
            is_untrusted=self.refusal is not None,
        )


def is_definition(place: PurePath) -> bool:
    """Tell whether a file defines what it is called after: `NAME.md`, no README."""
    return len(place.parts) == 1 and place.suffix == ".md" and place.stem != "README"


def of_project(
    project: ProjectFiles, kind: str, folder: str
) -> Iterator[DefinitionFile]:
    """Yield the files of a project; those that nobody trusted come last and refuse.

    Args:
        project: what of the project's folder may be used.
        kind: the kind of files that they are trusted as.
        folder: where they are, below the project's folder.
    """
    for name in (*sorted(project.contents(kind)), *sorted(project.untrusted(kind))):
        if PurePath(name).is_relative_to(folder):
            place = PurePath(name).relative_to(folder)
            yield _of_project(project, kind, PurePath(name), place)


def of_user(
    home: Path, kind: str, folder: str, *patterns: str
) -> Iterator[DefinitionFile]:
    """Yield the files of the person's own.

    Args:
        home: the person's own folder.
        kind: the kind of files that those of a project are trusted as.
        folder: the folder in it.
        patterns: the files in that.
    """
    for path, place in _files(home / folder, patterns):
        yield DefinitionFile(path=path, place=place, level="user", kind=kind)


def of_collections(
    collections: CollectionLibrary, folder: str, *patterns: str
) -> Iterator[DefinitionFile]:
    """Yield the files of collections; those that nobody trusted come first and refuse.

    Args:
        collections: the collections there are.
        folder: the folder in each of them.
        patterns: the files in that.
    """
    project = collections.project
    for name, root in collections.untrusted.items():
        for path in map(PurePath, sorted(project.untrusted(_COLLECTIONS))):
            if not path.is_relative_to(root):
                continue
            # A package may hold its resources one folder below its metadata.
            parts = path.relative_to(root).parts
            if folder in parts[:2]:
                place = PurePath(*parts[parts.index(folder) + 1 :])
                file = _of_project(project, _COLLECTIONS, path, place)
                yield attrs.evolve(file, collection=name)
    for layer in collections.layers():
        for path, place in _files(layer.path / folder, patterns):
            yield DefinitionFile(
                path=path,
                place=place,
                level=layer.level,
                collection=layer.name,
                kind=_COLLECTIONS,
            )


def _of_project(
    project: ProjectFiles, kind: str, name: PurePath, place: PurePath
) -> DefinitionFile:
    path = project.dirs.root / name
    file = DefinitionFile(path=path, place=place, level="project", kind=kind)
    claim = project.untrusted(kind).get(str(name))
    if claim is None:
        return file
    # It is listed all the same: else a weaker file would take its name.
    return attrs.evolve(file, refusal=project.refusal(kind, path), claim=claim)


def _files(folder: Path, patterns: Iterable[str]) -> Iterator[tuple[Path, PurePath]]:
    found = (path for pattern in patterns for path in folder.glob(pattern))
    for path in sorted(found):
        if path.is_file():
            yield path, path.relative_to(folder)
