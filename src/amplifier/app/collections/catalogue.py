"""Collections that can be installed by their name alone."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final, Self

import attrs

from amplifier.app.settings.settings import Settings
from amplifier.app.sources.locations import (
    ArchiveLocation,
    Location,
    PackageLocation,
    canonical_name,
    is_bare_name,
)
from amplifier.app.sources.parser import read_archive, read_location
from amplifier_sdk.errors import ConfigError, did_you_mean

__all__ = ["Catalogue"]

_CATALOGUE: Final = ("collections", "catalogue")


@attrs.frozen
class Catalogue:
    """Where collections come from, by name: the source of each, and what a relative path in it is relative to."""

    sources: Mapping[str, tuple[str, Path]]

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the names that come along, with those of the settings over them."""
        folder = Path(str(files("amplifier"))) / "collections" / "_catalogue"
        known = {
            path.name: (str(path), folder)
            for path in sorted(folder.iterdir())
            if path.is_dir()
        }
        for name in settings.read().collections.catalogue:
            source, layer = settings.source((*_CATALOGUE, name))
            known[canonical_name(name)] = source, layer.base
        return cls(known)

    def knows(self, name: str) -> bool:
        """Say whether a collection of a name is known."""
        return canonical_name(name) in self.sources

    def locate(self, source: str, base: Path) -> tuple[Location | ArchiveLocation, str]:
        """Return what a source means, and how it is written down: a name stays a name, a path becomes absolute.

        Args:
            source: a name, a folder, an archive here or at an address, or a repository.
            base: what a relative path is relative to.

        Raises:
            ConfigError: it may not be used, or is a name that is not known; names the nearest.
        """
        location = _read(source, base)
        if isinstance(location, PackageLocation):
            return self.locate_name(source)
        return (location, str(location))

    def locate_noted(self, source: str) -> tuple[Location | ArchiveLocation, str]:
        """Return what a source means that was written down; no folder of the same name stands in for a name.

        Raises:
            ConfigError: as `locate`.
        """
        # `locate` prefers a folder of that name in the working directory, which is not
        # the one that the person had when they installed it.
        if is_bare_name(source):
            return self.locate_name(source)
        return self.locate(source, Path("/"))

    def locate_name(self, source: str) -> tuple[Location | ArchiveLocation, str]:
        """Return where a collection comes from that is asked for by its name, and that name.

        Raises:
            ConfigError: it is not known; names the nearest.
        """
        found = self.sources.get(canonical_name(source))
        if found is None:
            known = sorted(self.sources)
            hint = did_you_mean(source, known) or f"; known: {', '.join(known)}"
            remedy = "give its folder, archive or repository, or name it in the setting collections.catalogue"
            raise ConfigError.of(
                source, f"no such collection{hint}; {remedy}", subject="catalogue"
            )
        return _read(*found), canonical_name(source)


def _read(source: str, base: Path) -> Location | ArchiveLocation:
    return read_archive(source) or read_location(source, base)
