"""What a mention names: the places that are searched, and how far each may lead."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.collections.folders import CollectionLibrary
from amplifier.app.directories import FOLDER, AppDirs, is_below
from amplifier.app.mentions.scanner import split_range
from amplifier.app.projects.files import ProjectFiles
from amplifier_kit.files.product import ProductFiles
from amplifier_sdk.errors import ConfigError

__all__ = ["MentionResolver", "MentionTarget", "Writer"]

_CONTEXT: Final = "context"
_BUNDLED: Final = "foundation"


@attrs.frozen
class Writer:
    """Who wrote a mention.

    Args:
        folder: what relative paths are relative to first.
        typed: the person typed it, and may name whatever they may read; what they name in the project stays there.
        mentioned: it stands in a file that was itself mentioned, which nobody chose for what it mentions: it stays in
            that file's root. Otherwise it stands in an instruction, which may name the project's files as well.
    """

    folder: Path
    typed: bool = False
    mentioned: bool = False


@attrs.frozen
class MentionTarget:
    """Where a mention may lead: a path, the folders that it must not leave, and those that it must not enter."""

    path: Path
    roots: tuple[Path, ...]
    closed: tuple[Path, ...] = ()


@attrs.frozen(init=False)
class MentionResolver:
    """Finds what mentions name; the capability `mention_resolver`. Nothing is read but folders.

    What a person types is looked for in the working directory, in `.amplifier/context` of the project, in the
    person's own `context`, then in the collection `foundation`. What a file mentions is looked for beside the file
    first. `user:` and `project:` name the two folders `.amplifier`, another name before a colon is a collection's.

    Args:
        dirs: where the person works; default where the process does.
        collections: the collections there are; default those of the places.
    """

    dirs: AppDirs
    collections: CollectionLibrary
    files: ProductFiles

    def __init__(
        self, dirs: AppDirs | None = None, collections: CollectionLibrary | None = None
    ) -> None:
        dirs = dirs or AppDirs.find()
        library = collections or CollectionLibrary(dirs, ProjectFiles(dirs))
        self.__attrs_init__(dirs, library, ProductFiles(dirs.home))

    def resolve(self, mention: str, relative_to: Path | None = None) -> Path | None:
        """Return the file or folder that a mention names; `None` where there is none.

        Args:
            mention: with or without its `@`; lines behind a colon are left out.
            relative_to: the folder of the file that it stands in; without one the person typed it.
        """
        target, _ = split_range(mention.removeprefix("@").strip('"'))
        for place in self.places_of(target, self.writer(relative_to)):
            is_there = place.path.exists() and _is_within(place)
            if is_there and not self.files.may_not_read(_real(place.path)):
                return place.path
        return None

    def writer(self, relative_to: Path | None = None) -> Writer:
        """Return who wrote what stands in a file of a folder; without one, the person who types."""
        if relative_to is None:
            return Writer(self.dirs.working_dir, typed=True)
        return Writer(relative_to)

    def places_of(self, target: str, writer: Writer) -> Iterator[MentionTarget]:
        """Return where a target may be, in the order in which it is looked for; not all places need be there.

        Args:
            target: what stands behind the `@`, without lines.
            writer: who wrote it.
        """
        name, colon, rest = target.partition(":")
        if colon and name in ("user", "project"):
            yield from self._own(name, rest, writer)
        elif colon:
            yield from self._shared(name, rest, target)
        elif target.startswith("~/"):
            yield self._place(Path.home() / target[2:], writer)
        elif target.startswith("/"):
            yield self._place(Path(target), writer)
        elif target.startswith(("./", "../")) or target in (".", ".."):
            yield self._place(writer.folder / target, writer)
        elif not target.startswith("~"):
            for folder in self._searched(writer):
                # mostly it is not: the roots need not be known
                if os.path.lexists(folder / target):
                    yield self._place(folder / target, writer, self._root_of(folder))

    def refusal(self, target: str) -> str:
        """Say why the collection that a target names cannot be used: nobody trusted the project's; else nothing."""
        name, colon, _ = target.partition(":")
        if not colon or name in ("user", "project"):
            return ""
        try:
            self.collections.require_trusted(name)
        except ConfigError as error:
            return " ".join(str(error).split())
        return ""

    def _shared(self, name: str, rest: str, target: str) -> Iterator[MentionTarget]:
        if rest and not self.refusal(target):
            found = self.collections.find(name)
            for layer in found.layers if found is not None else ():
                yield MentionTarget(layer.path / rest, (layer.path,))

    def _own(self, name: str, rest: str, writer: Writer) -> Iterator[MentionTarget]:
        """Yield the place of `user:` and `project:`; what others wrote reaches the person's own folder never."""
        folder = self.dirs.root / FOLDER
        if name == "user":
            folder = self.dirs.home
        if rest:
            yield self._place(folder / rest, writer)

    def _searched(self, writer: Writer) -> Iterator[Path]:
        folders = [
            writer.folder,
            self.dirs.working_dir,
            self.dirs.root / FOLDER / _CONTEXT,
        ]
        # A file of a project could otherwise show the model what stands in the person's
        # own folder.
        if writer.typed or not is_below(writer.folder, self.dirs.root):
            folders.append(self.dirs.home / _CONTEXT)
        bundled, bundles = self.collections.known(_BUNDLED), list[Path]()
        if bundled is not None:
            bundles = [layer.path / _CONTEXT for layer in bundled.layers]
        if writer.mentioned:
            root = self._root_of(writer.folder)
            folders = [folder for folder in folders if is_below(folder, root)]
        # The working directory is often the writer's own folder: each is searched once.
        yield from dict.fromkeys((*folders, *bundles))

    def _place(self, path: Path, writer: Writer, *roots: Path) -> MentionTarget:
        """Return a place that stays in its writer's root, for instructions in the project too, and in those given."""
        if writer.typed:
            return MentionTarget(path, (self._reach(path),))
        every = (self._root_of(writer.folder), *roots)
        # The person's folder holds their secrets' names and sessions, and may lie below
        # a project's root.
        is_persons = any(is_below(root, self.dirs.home) for root in every)
        if not writer.mentioned:
            every = (every[0], self.dirs.root, *roots)
        return MentionTarget(path, every, () if is_persons else (self.dirs.home,))

    def _reach(self, path: Path) -> Path:
        """Return how far what a person types may lead: anywhere, but a link of the project no further than that."""
        # As it is written, links not followed: a link of the project that leads out was
        # placed by its author.
        written = Path(os.path.normpath(path))
        if written.is_relative_to(self.dirs.root):
            return self.dirs.root
        return Path("/")

    def _root_of(self, folder: Path) -> Path:
        """Return how far what stands in a folder may lead: the innermost of collection, project and own folder."""
        real = Path(os.path.realpath(folder))
        roots = [self.dirs.root, self.dirs.home]
        roots += [layer.path for layer in self.collections.layers()]
        holding = [
            root for root in roots if real.is_relative_to(os.path.realpath(root))
        ]
        # The innermost: a collection inside a project is bounded by its own folder.
        return max(holding, key=lambda root: len(root.parts), default=folder)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_within(place: MentionTarget) -> bool:
    real = _real(place.path)
    if any(is_below(real, folder) for folder in place.closed):
        return False
    return any(real.is_relative_to(os.path.realpath(root)) for root in place.roots)
