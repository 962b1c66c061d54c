"""The repositories that were fetched: each commit in a folder of its own, checked whenever it is used."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.directories import AppDirs
from amplifier.app.sources.git import Git
from amplifier.app.sources.locations import GitLocation
from amplifier.app.sources.pins import Pin, SourcePins
from amplifier.app.sources.trees import clean_tree, has_digest, hash_tree, sync_folder
from amplifier_sdk.errors import ConfigError

__all__ = ["SourceCache"]

_FETCHING: Final = ".fetching-"
_LONGEST: Final = 86_400.0
"""Seconds after which nothing is being fetched any more, whatever the limits of each step."""


@attrs.frozen(kw_only=True)
class SourceCache:
    """Keeps fetched sources below the person's folder. Its functions block.

    Args:
        folder: where they are stored.
        pins: which commit of each is used, and the digest of its files.
        git: fetches them.
    """

    folder: Path
    pins: SourcePins
    git: Git = attrs.field(factory=Git)

    @classmethod
    def of(cls, dirs: AppDirs, git: Git | None = None) -> SourceCache:
        """Return the person's own."""
        return cls(
            folder=dirs.home / "cache" / "sources",
            pins=SourcePins.of(dirs),
            git=git or Git(),
        )

    def open(self, location: GitLocation) -> Path:
        """Return the folder of a source at its pinned commit; what was never fetched is fetched and pinned first.

        Raises:
            FetchError: it has to be fetched and cannot be.
            ConfigError: what is stored is not what was pinned, or holds what is refused.
            OSError: the cache cannot be read or written.
        """
        pin = self.pins.find(str(location))
        if pin is None or pin.commit is None:
            pin, path = self.fetch(location)
            self.pins.set(pin)
            return path
        path = self._place(location, pin.commit)
        if not path.is_dir():
            self._fill(location, pin.commit, path)
        # Each time it is opened: the cache lies in a folder that any program of the
        # person's can write.
        if (found := hash_tree(path)) != pin.hash:
            problem = (
                f"its files in {path} are not the ones that were pinned ({found} is not {pin.hash});"
                " remove that folder, and it is fetched again"
            )
            raise ConfigError.of(str(location), problem, subject="cache of sources")
        return path

    def fetch(self, location: GitLocation) -> tuple[Pin, Path]:
        """Bring what a source means now into the cache; return the pin that would stand for it, and its folder.

        Nothing is pinned. A commit whose files are here as they were pinned is not fetched again.

        Raises:
            FetchError: it cannot be fetched.
            ConfigError: it holds what is refused.
            OSError: the cache cannot be written.
        """
        commit = self.git.latest(location)
        path = self._place(location, commit)
        pinned = self.pins.find(str(location))
        if (
            pinned is not None
            and pinned.commit == commit
            and has_digest(path, pinned.hash)
        ):
            return pinned, path
        self._fill(location, commit, path, replace=True)
        return Pin.of(location, hash_tree(path), commit=commit), path

    def _place(self, location: GitLocation, commit: str) -> Path:
        key = "\0".join((location.url, commit, location.subdirectory or ""))
        return self.folder / hashlib.sha256(key.encode()).hexdigest()[:24]

    def _fill(
        self, location: GitLocation, commit: str, path: Path, *, replace: bool = False
    ) -> None:
        """Fetch into a folder beside, then give it its name: whoever looks sees all of it or nothing."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._clean()
        with tempfile.TemporaryDirectory(prefix=_FETCHING, dir=self.folder) as staged:
            tree = Path(staged) / "tree"
            self.git.fetch(location, commit, tree)
            clean_tree(tree)
            # Refuses what no source may hold before the folder has its name.
            hash_tree(tree)
            if replace and path.is_dir():
                path.rename(Path(staged) / "before")
            try:
                tree.rename(path)
            except OSError:
                # another process may have been first; what it made is checked like ours
                if not path.is_dir():
                    raise
        sync_folder(self.folder)

    def _clean(self) -> None:
        """Remove what killed programs were fetching; others may be at it now."""
        for left in self.folder.glob(f"{_FETCHING}*"):
            with suppress(OSError):
                if time.time() - left.lstat().st_mtime > _LONGEST:
                    shutil.rmtree(left)
