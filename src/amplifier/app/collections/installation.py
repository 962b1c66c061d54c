"""Installing, updating, accepting and removing collections."""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

import attrs

from amplifier.app.collections.catalogue import Catalogue
from amplifier.app.collections.folders import Collection, CollectionLibrary, lock_of
from amplifier.app.collections.requirements import (
    check_requirements,
    dependents,
    missing,
)
from amplifier.app.collections.staged import Staged, stage
from amplifier.app.collections.verification import evaluate
from amplifier.app.directories import FOLDER, AppDirs
from amplifier.app.fetched.lock import FetchedEntry, FetchedLock
from amplifier.app.fetched.swap import FetchedFolders
from amplifier.app.projects.files import ProjectFiles
from amplifier.app.projects.trust import trust_again
from amplifier.app.settings.settings import load_settings
from amplifier.app.sources.git import Git
from amplifier.app.sources.locations import ArchiveLocation, Location
from amplifier.app.sources.trees import has_digest
from amplifier_sdk.errors import AmplifierError, ConfigError

__all__ = ["CollectionChange", "CollectionInstaller"]

_INCOMING: Final = ".incoming"
_OWN: Final = (f"{FOLDER}/collections", f"{FOLDER}/collections.lock")
"""What of a project's folder is changed here."""


@attrs.frozen(kw_only=True)
class CollectionChange:
    """What became, or would become, of a collection: from one state of its source to another.

    Args:
        name: the collection.
        source: from where it comes.
        before: its commit or digest, `None` where it was not installed.
        after: the same now.
        version: that its metadata gives now.
        path: its folder.
        is_restored: whether its files here are not the ones that were installed.
    """

    name: str
    source: str
    before: str | None
    after: str
    version: str
    path: Path
    is_restored: bool = False

    @property
    def is_changed(self) -> bool:
        """Whether anything differs: in the source, or in the files here."""
        return self.before != self.after or self.is_restored


@attrs.define(eq=False, kw_only=True)
class CollectionInstaller:
    """Changes the collections of one level: the person's own, or the project's. Its functions block.

    Args:
        dirs: where files stand.
        lock: what is installed at the level.
        project: what of the project's folder may be used.
        catalogue: collections by name.
        git: fetches repositories.
    """

    dirs: AppDirs
    lock: FetchedLock
    project: ProjectFiles
    catalogue: Catalogue
    git: Git = attrs.field(factory=Git)

    @classmethod
    def of(cls, dirs: AppDirs, *, local: bool = False, offline: bool = False) -> Self:
        """Make the installer of a level.

        Args:
            dirs: where files stand.
            local: the project's collections instead of the person's own.
            offline: whether nothing may be fetched; default what `AMPLIFIER_OFFLINE` says.

        Raises:
            AmplifierError: there is no project here.
            ConfigError: a settings file has problems.
        """
        lock = lock_of(dirs, "project" if local else "user")
        if lock is None:
            raise AmplifierError("There is no project here; leave --scope project away")
        project = ProjectFiles(dirs)
        catalogue = Catalogue.of(load_settings(dirs, project=project))
        return cls(
            dirs=dirs,
            lock=lock,
            project=project,
            catalogue=catalogue,
            git=Git(offline=offline),
        )

    @property
    def is_local(self) -> bool:
        """Whether these are the project's collections."""
        return self.lock.is_local

    def install(self, source: str, *, force: bool = False) -> list[CollectionChange]:
        """Install a collection, and those that it needs and the catalogue knows.

        Args:
            source: a name of the catalogue, a folder, an archive, or a repository.
            force: put it in place of one of its name.

        Raises:
            FetchError: it cannot be fetched.
            ConfigError: it is no collection, something that it needs is missing, or its name is taken.
            AmplifierError: the project's collections are not trusted.
            OSError: it cannot be written; nothing has changed.
        """
        with self._changing() as waiting:
            first = self._stage(
                self.catalogue.locate(source, self.dirs.working_dir), waiting / "0"
            )
            locked = self.lock.read()
            # Before anything else is fetched: the answer to a taken name needs no
            # network.
            if not force:
                self._require_free(first, locked)
            # All is fetched and checked before the first folder is replaced, so that a
            # missing dependency changes nothing.
            staged = self._with_needed([first], waiting)
            changes = [self._change(found, locked) for found in staged]
            self._put(staged)
            return changes

    def update(
        self, names: Names[str] = (), *, check_only: bool = False
    ) -> list[CollectionChange]:
        """Bring collections to what their sources are now.

        Args:
            names: which; default all that are installed.
            check_only: only say what would change.

        Raises:
            FetchError: one cannot be fetched.
            ConfigError: one is not installed, or cannot be used any more; nothing has changed.
            OSError: it cannot be written; nothing has changed.
        """
        locked, wanted = self.lock.read(), self.lock.chosen(names)
        if not wanted:
            return []
        with self._changing() as waiting:
            sources = [self.catalogue.locate_noted(entry.source) for entry in wanted]
            changes, changed = list[CollectionChange](), list[Staged]()
            for index, (entry, source) in enumerate(zip(wanted, sources, strict=True)):
                found = self._stage(source, waiting / str(index))
                # Under its new name it would not replace the old one, but stand beside
                # it.
                if found.collection.name != entry.name:
                    problem = f"{entry.source} calls itself {found.collection.name} now; remove it and install that"
                    raise ConfigError.of(
                        entry.name, problem, subject="choice of collections"
                    )
                changes.append(self._change(found, locked))
                if changes[-1].is_changed:
                    changed.append(found)
            if changed and not check_only:
                self._put(self._with_needed(changed, waiting))
            return changes

    def remove(self, name: str, *, force: bool = False) -> Path:
        """Remove an installed collection, and return the folder that it was in.

        Args:
            name: the collection.
            force: although others need it.

        Raises:
            ConfigError: it is not installed, or others need it.
            OSError: it cannot be removed; it is still there.
        """
        # Only what was installed: a person's own folder of the name is theirs to
        # delete.
        name = self.lock.require(name).name
        with self._changing():
            others = (each for each in dependents(name, self._known()) if each != name)
            needed = ", ".join(others)
            if needed and not force:
                problem = f"{needed} needs it; remove that first, or give --force"
                raise ConfigError.of(name, problem, subject="choice of collections")
            FetchedFolders(self.lock).drop(name)
        return FetchedFolders(self.lock).folder / name

    def accept(self, name: str) -> FetchedEntry:
        """Make a collection the person's own as its files are now, and return what was noted of it.

        It is used again, no update changes it, and it is not compared with what was installed any more.

        Raises:
            ConfigError: it is not installed, is as it was installed, or its folder is gone.
            AmplifierError: the project's collections are not trusted.
            OSError: it cannot be noted; nothing has changed.
        """
        entry = self.lock.require(name)
        verdict = evaluate(entry, self.lock)
        if verdict.state != "changed":
            sound = "it is as it was installed; there is nothing to accept"
            problem = verdict.reason or sound
            raise ConfigError.of(entry.name, problem, subject="choice of collections")
        with self._changing():
            # Without an entry there is nothing to compare with, and that is what makes
            # it the person's own.
            self.lock.change(drop=entry.name)
        return entry

    @contextmanager
    def _changing(self) -> Iterator[Path]:
        """Keep others from changing the collections, and what was trusted of a project trusted."""
        # The digest of what was trusted covers these files: the change itself must not
        # cost the project its trust.
        changed = _OWN if self.is_local else ()
        with (
            trust_again(self.dirs, "profiles", changed),
            FetchedFolders(self.lock).changing() as waiting,
        ):
            yield waiting

    def _stage(
        self, found: tuple[Location | ArchiveLocation, str], folder: Path
    ) -> Staged:
        location, source = found
        folder.mkdir()
        return stage(location, folder / _INCOMING, source=source, git=self.git)

    def _require_free(self, found: Staged, locked: Mapping[str, FetchedEntry]) -> None:
        """Refuse to put a collection in place of another; the same files, without an entry, are taken over."""
        name, folders = found.collection.name, FetchedFolders(self.lock)
        place = folders.folder / name
        # A project's repository may hold the files and not the lock: noting them then
        # is no replacement.
        if name in locked or (place.exists() and not has_digest(place, found.hash)):
            raise folders.taken(name, locked.get(name))

    def _with_needed(self, staged: list[Staged], waiting: Path) -> list[Staged]:
        """Stage what is needed as well, where the catalogue knows it, and check that all fit together."""
        together = {
            **self._known(),
            **{found.collection.name: found.collection for found in staged},
        }
        result = list(staged)
        # What is needed may need more; a name is fetched once, also where what came
        # calls itself otherwise.
        tried: set[str] = set()
        while lacking := [
            name
            for name in missing(together)
            if name not in tried and self.catalogue.knows(name)
        ]:
            for name in lacking:
                tried.add(name)
                found = self._stage(
                    self.catalogue.locate_name(name), waiting / f"needed-{name}"
                )
                result.append(found)
                together[found.collection.name] = found.collection
        check_requirements(together, [found.collection.name for found in result])
        return result

    def _known(self) -> dict[str, Collection]:
        found: dict[str, Collection] = {}
        for collection in CollectionLibrary(self.dirs, self.project).every():
            if self.is_local or collection.level != "project":
                found.setdefault(collection.name, collection)
        return found

    def _put(self, staged: list[Staged]) -> None:
        FetchedFolders(self.lock).put(
            {found.collection.name: found.collection.root for found in staged},
            {found.collection.name: found.noted() for found in staged},
        )

    def _change(
        self, found: Staged, locked: Mapping[str, FetchedEntry]
    ) -> CollectionChange:
        name = found.collection.name
        entry = locked.get(name)
        return CollectionChange(
            name=name,
            source=found.source,
            before=None if entry is None else (entry.commit or entry.hash),
            after=found.commit or found.hash,
            version=found.collection.version,
            path=FetchedFolders(self.lock).folder / name,
            is_restored=entry is not None and self._is_spoilt(entry, found),
        )

    def _is_spoilt(self, entry: FetchedEntry, found: Staged) -> bool:
        """Say whether what is here is not what was installed, or that not what the same commit holds."""
        # A commit has one content. Another digest of it means that the entry or the
        # files were changed here.
        is_same = entry.commit is not None and entry.commit == found.commit
        if is_same and entry.hash != found.hash:
            return True
        return evaluate(entry, self.lock).state != "sound"
