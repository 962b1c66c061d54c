"""The kinds of source that a module may have: a folder, a repository, a package."""

from __future__ import annotations

from pathlib import Path

import attrs

from amplifier.app.sources.cache import SourceCache
from amplifier.app.sources.locations import (
    GitLocation,
    Location,
    PackageLocation,
    PathLocation,
)
from amplifier.app.sources.pins import SourcePins, find_distribution, look_at_package
from amplifier_sdk.contracts import ModuleSource
from amplifier_sdk.errors import (
    AmplifierError,
    ConfigError,
    ModuleLoadError,
    ModuleNotFoundError,
)

__all__ = ["FolderSource", "GitSource", "PackageSource", "explain", "source_at"]


def source_at(module_id: str, location: Location, cache: SourceCache) -> ModuleSource:
    """Return the source of a module at a location; nothing is fetched yet."""
    match location:
        case GitLocation():
            return GitSource(module_id=module_id, location=location, cache=cache)
        case PackageLocation():
            return PackageSource(
                module_id=module_id, location=location, pins=cache.pins
            )
        case PathLocation():
            return FolderSource(module_id=module_id, path=location.path)


def explain(error: Exception) -> str:
    """Say in one line what is wrong with a source."""
    if isinstance(error, ConfigError):
        return error.in_one_line
    return str(error)


@attrs.frozen(kw_only=True)
class FolderSource:
    """A folder with a module's code: a project, or the package itself."""

    module_id: str
    path: Path

    def resolve(self) -> Path:
        """Return the folder.

        Raises:
            ModuleNotFoundError: there is no such folder.
        """
        if not self.path.is_dir():
            raise ModuleNotFoundError(
                self.module_id, f"its source {str(self.path)!r} is no folder"
            )
        return self.path


@attrs.frozen(kw_only=True)
class GitSource:
    """A module in a repository, at its pinned commit; it is fetched when it is used first."""

    module_id: str
    location: GitLocation
    cache: SourceCache

    def resolve(self) -> Path:
        """Return the folder of the fetched files; the function blocks.

        Raises:
            ModuleLoadError: it cannot be fetched, or is not what was pinned.
        """
        try:
            return self.cache.open(self.location)
        except (AmplifierError, OSError) as error:
            raise ModuleLoadError(self.module_id, explain(error)) from error


@attrs.frozen(kw_only=True)
class PackageSource:
    """A module of an installed package.

    Args:
        module_id: the module.
        location: the package, as the source names it.
        pins: the version and digest that it was pinned with.
    """

    module_id: str
    location: PackageLocation
    pins: SourcePins

    def resolve(self) -> Path:
        """Return the folder in which the package's metadata stands.

        Raises:
            ModuleNotFoundError: it is not installed, or not as it was pinned.
        """
        distribution, found = (
            find_distribution(self.location),
            look_at_package(self.location),
        )
        if distribution is None or found is None:
            reason = f"the package {str(self.location)!r} is not installed; run: amplifier module add {self.module_id}"
            raise ModuleNotFoundError(
                self.module_id, f"{reason} --source '{self.location}'"
            )
        pin = self.pins.find(str(self.location))
        if pin is not None and pin.state != found.state:
            reason = (
                f"the package {self.location.name} {found.version} ({found.hash}) is not as it was pinned"
                f" ({pin.version}, {pin.hash}); if you changed it, run: amplifier module update {self.module_id}"
            )
            raise ModuleNotFoundError(self.module_id, reason)
        return Path(str(distribution.locate_file("")))
