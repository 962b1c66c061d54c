"""Bringing a collection from where it comes from into a folder beside those that are used."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NoReturn

import attrs

from amplifier.app.collections.folders import METADATA, Collection, read_collection
from amplifier.app.fetched.bring import bring
from amplifier.app.fetched.lock import FetchedEntry
from amplifier.app.sources.git import Git
from amplifier.app.sources.locations import ArchiveLocation, Location
from amplifier.app.sources.trees import hash_tree
from amplifier.kernel.modules.loader import ModuleLoader
from amplifier.kernel.modules.sources import offered_by
from amplifier_sdk.errors import ConfigError, ModuleError, Problem

__all__ = ["Staged", "stage"]

_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_TAKEN: Final = ("user", "project", "file")
"""Names that mean something else in a mention."""


@attrs.frozen(kw_only=True)
class Staged:
    """A collection that is ready to be used.

    Args:
        collection: what it says of itself, in the folder in which it waits.
        source: from where it comes, as it was asked for.
        commit: of a repository.
        hash: the digest of its files.
        modules: the modules it brings: path and type by id.
    """

    collection: Collection
    source: str
    commit: str | None
    hash: str
    modules: dict[str, dict[str, str]]

    def noted(self) -> FetchedEntry:
        """Return what the lock file says of it once it is in its place."""
        name = self.collection.name
        return FetchedEntry(
            name=name,
            source=self.source,
            commit=self.commit,
            version=self.collection.version,
            path=f"collections/{name}",
            hash=self.hash,
            modules=self.modules,
        )


def stage(
    location: Location | ArchiveLocation, folder: Path, *, source: str, git: Git
) -> Staged:
    """Bring a collection into a folder, which is made, and check it. The function blocks.

    Args:
        location: from where it comes.
        folder: where it waits; nothing is there yet, and its name is none of a collection.
        source: as it was asked for.
        git: fetches repositories, and knows whether anything may be fetched.

    Raises:
        FetchError: it cannot be fetched.
        ConfigError: it is no collection, or holds what is refused.
        OSError: it cannot be read or written.
    """
    commit = bring(location, folder, source=source, git=git)
    return _checked(folder, source, commit)


def _checked(folder: Path, source: str, commit: str | None) -> Staged:
    if not (folder / METADATA).is_file():
        _refuse(source, f"it has no {METADATA}, which names a collection")
    try:
        digest = hash_tree(folder)  # first of all, since it refuses links that lead out
        collection = read_collection(folder, "user")
        modules = _modules(collection, folder)
    except ConfigError as error:
        problems = [
            Problem(found.path.replace(f"{folder}/", ""), found.message)
            for found in error.problems
        ]
        raise ConfigError(problems, subject=f"collection from {source!r}") from error
    except ModuleError as error:
        raise ConfigError.of(
            "", str(error), subject=f"collection from {source!r}"
        ) from error
    if not _NAME.fullmatch(collection.name) or collection.name in _TAKEN:
        _refuse(
            source,
            f"its {METADATA} gives it no name under [project] that a collection may have",
        )
    return Staged(
        collection=collection,
        source=source,
        commit=commit,
        hash=digest,
        modules=modules,
    )


def _modules(collection: Collection, folder: Path) -> dict[str, dict[str, str]]:
    """Read which modules a collection brings; none of them is imported."""
    loader = ModuleLoader()
    found: dict[str, dict[str, str]] = {}
    for metadata in collection.resources("modules", "*/pyproject.toml"):
        for module in offered_by(str(metadata.parent)):
            path = metadata.parent.relative_to(folder).as_posix()
            # The type is read from the name alone; importing would run code that nobody
            # allowed yet.
            found[module.id] = {"path": path, "type": loader.type_of(module.id)}
    return found


def _refuse(source: str, problem: str) -> NoReturn:
    raise ConfigError.of(source, problem, subject="choice of collections")
