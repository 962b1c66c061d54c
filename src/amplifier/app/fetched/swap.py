"""Putting staged folders in place of what is there: all of them or none, also when the program is killed.

Each old folder gets a name that says what it was, and where there is none an empty one says so; the new one takes the
place, then the lock file is written: that is the moment that counts. What a killed program left is put right by
whoever changes them next.
"""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.fetched.lock import FetchedEntry, FetchedLock
from amplifier.app.sources.trees import has_digest, sync_folder
from amplifier_sdk.errors import AmplifierError, ConfigError

__all__ = ["FetchedFolders"]

_TIMEOUT: Final = 10.0
_STAGED: Final = ".staged-"
_NEW: Final = ".new-"
_OLD: Final = ".old-"
_REMOVED: Final = ".removed-"
_ASIDE: Final = re.compile(
    r"\.(?:new|old|removed)-[0-9a-f]{8}-(?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)"
)
"""How folders are called that were put aside; a folder that a person calls otherwise is theirs."""


@attrs.frozen
class FetchedFolders:
    """The folders of one lock file. Its functions block.

    Args:
        lock: what is installed; it stands in the folder of its kind, beside the lock file.
    """

    lock: FetchedLock

    @property
    def folder(self) -> Path:
        """The folder in which they stand."""
        return self.lock.folder / self.lock.kind

    @contextmanager
    def changing(self) -> Iterator[Path]:
        """Keep others from changing them, put right what was interrupted, and yield a folder for what is staged.

        Raises:
            LockedError: another process changes them for more than ten seconds.
            ConfigError: the lock file is damaged.
            OSError: the folder cannot be written.
        """
        # needs an extra, which readers need not have
        from amplifier_kit.files.locks import WriterLock

        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        target = self.lock.folder / f"{self.lock.kind}.changing"
        with WriterLock.take(target, timeout=_TIMEOUT):
            self._recover()
            staged = self.folder / f"{_STAGED}{secrets.token_hex(4)}"
            staged.mkdir(mode=0o700)
            try:
                yield staged
            finally:
                shutil.rmtree(staged, ignore_errors=True)

    def put(
        self, waiting: Mapping[str, Path], entries: Mapping[str, FetchedEntry]
    ) -> None:
        """Put staged folders in their places and note them; inside `changing`.

        Args:
            waiting: the staged folders by name.
            entries: what is noted of each.

        Raises:
            OSError: it failed; what was there is there again.
            ConfigError: likewise; the lock file is damaged.
        """
        begun: list[tuple[Path, Path]] = []
        try:
            for name, path in waiting.items():
                place = self.folder / name
                # Noted before the rename: if that fails, the old folder is put back as
                # well.
                begun.append((self._put_aside(place), place))
                path.rename(place)
            # The names must be on disk before the lock file counts: after a power
            # failure it would name folders that are not there.
            sync_folder(self.folder)
            self.lock.change(entries)
        except (OSError, AmplifierError):
            for aside, place in reversed(begun):
                _undo(aside, place)
            raise
        for aside, place in begun:
            # from now on nothing is undone, whatever becomes of the new one
            gone = self._beside(_REMOVED, place.name)
            with suppress(OSError):
                aside.rename(gone)
                _discard(gone)

    def drop(self, name: str) -> None:
        """Take one away; inside `changing`.

        Raises:
            OSError: it failed; it is still there.
            ConfigError: likewise; the lock file is damaged.
        """
        # Renamed before the entry goes, deleted after it: a program that is killed in
        # between leaves the files, and `_recover` puts them back where the entry still
        # names them.
        place, old = self.folder / name, self._beside(_REMOVED, name)
        is_there = place.exists()
        if is_there:
            place.rename(old)
        try:
            self.lock.change(drop=name)
        except (OSError, AmplifierError):
            if is_there:
                old.rename(place)
            raise
        if is_there:
            _discard(old)

    def taken(self, name: str, entry: FetchedEntry | None) -> ConfigError:
        """Return the error that something else has a name, with what helps; `entry` is what is noted of it."""
        remedy = "give --force to put this one in its place"
        known = f"in {self.folder / name}; {remedy}"
        if entry is not None:
            command = f"'amplifier {self.lock.noun} update {name}'"
            known = f"from {entry.source}; run {command}, or {remedy}"
        subject = f"choice of {self.lock.kind}"
        return ConfigError.of(name, f"it is there already, {known}", subject=subject)

    def _put_aside(self, place: Path) -> Path:
        """Make a place free, and return what says what was there."""
        # A link that leads nowhere does not exist, and yet takes the name.
        if place.exists() or place.is_symlink():
            return place.rename(self._beside(_OLD, place.name))
        # An empty folder says that there was nothing: without it, a killed installation
        # would look like one that is finished.
        nothing = self._beside(_NEW, place.name)
        nothing.mkdir()
        return nothing

    def _beside(self, prefix: str, name: str) -> Path:
        return self.folder / f"{prefix}{secrets.token_hex(4)}-{name}"

    def _recover(self) -> None:
        """Finish or undo what a killed program began."""
        for path in self.folder.glob(f"{_STAGED}*"):
            shutil.rmtree(path, ignore_errors=True)
        locked = self.lock.read()
        for aside, place in [*self._aside(_OLD), *self._aside(_NEW)]:
            entry = locked.get(place.name)
            if (
                # Only the digest shows which of the two the lock file means: a kill may
                # have come before or after it was written.
                entry is not None
                and has_digest(place, entry.hash)
                and not has_digest(aside, entry.hash)
            ):
                _discard(aside)  # the new one was noted
            else:
                _undo(aside, place)
        for gone, place in self._aside(_REMOVED):
            if place.name in locked and not place.exists():
                gone.rename(place)
            else:
                _discard(gone)

    def _aside(self, prefix: str) -> Iterator[tuple[Path, Path]]:
        """Return the folders that a killed program put aside, each with the place that it had."""
        for path in sorted(self.folder.glob(f"{prefix}*")):
            named = _ASIDE.fullmatch(path.name)
            if named is not None:
                yield path, self.folder / named["name"]


def _undo(aside: Path, place: Path) -> None:
    """Take away what was put in a place, and put back what was there."""
    _discard(place)
    if aside.name.startswith(_OLD):
        aside.rename(place)
    else:
        _discard(aside)


def _discard(path: Path) -> None:
    """Remove a folder, or a link in its place; what is left of it is removed the next time."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path, ignore_errors=True)
