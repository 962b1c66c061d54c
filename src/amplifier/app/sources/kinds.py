"""The source of a module: a folder, a repository, or a package."""

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
from amplifier.app.sources.pins import find_distribution, look_at_package
from amplifier_sdk.errors import (
    AmplifierError,
    ConfigError,
    ModuleLoadError,
    ModuleNotFoundError,
)

__all__ = ["LocatedSource", "explain"]


def explain(error: Exception) -> str:
    """Say in one line what is wrong with a source."""
    if isinstance(error, ConfigError):
        return error.in_one_line
    return str(error)


@attrs.frozen(kw_only=True)
class LocatedSource:
    """The source of a module: a folder, a repository at its pinned commit, or an installed package.

    Args:
        module_id: the module.
        location: where it is.
        cache: what was fetched of repositories, and what is pinned.
    """

    module_id: str
    location: Location
    cache: SourceCache

    def resolve(self) -> Path:
        """Return the folder of the module's code, or of the package's metadata; a repository is fetched first. Blocks.

        Raises:
            ModuleNotFoundError: there is no such folder, or the package is not installed, or not as it was pinned.
            ModuleLoadError: it cannot be fetched, or is not what was pinned.
        """
        match self.location:
            case GitLocation() as location:
                try:
                    return self.cache.open(location)
                except (AmplifierError, OSError) as error:
                    raise ModuleLoadError(self.module_id, explain(error)) from error
            case PackageLocation() as location:
                return self._package(location)
            case PathLocation(path=path):
                if path.is_dir():
                    return path
                reason = f"its source {str(path)!r} is no folder"
                raise ModuleNotFoundError(self.module_id, reason)

    def _package(self, location: PackageLocation) -> Path:
        distribution, found = find_distribution(location), look_at_package(location)
        if distribution is None or found is None:
            reason = f"the package {str(location)!r} is not installed; run: amplifier module add {self.module_id}"
            raise ModuleNotFoundError(self.module_id, f"{reason} --source '{location}'")
        pin = self.cache.pins.find(str(location))
        if pin is not None and pin.state != found.state:
            reason = (
                f"the package {location.name} {found.version} ({found.hash}) is not as it was pinned"
                f" ({pin.version}, {pin.hash}); if you changed it, run: amplifier module update {self.module_id}"
            )
            raise ModuleNotFoundError(self.module_id, reason)
        return Path(str(distribution.locate_file("")))
