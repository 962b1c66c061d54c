"""The modules that are installed, as a person asks for them; nothing is imported to list them."""

from __future__ import annotations

from pathlib import Path

import attrs

from amplifier.kernel.loader import ModuleLoader
from amplifier.kernel.sources import installed_modules

__all__ = ["InstalledModule", "list_modules"]


@attrs.frozen(kw_only=True)
class InstalledModule:
    """A module: its id, the type that its id suggests, what provides it, and what its entry point names.

    `location` is the folder of the distribution's metadata; `version` is `None` where its name has none.
    """

    id: str
    type: str
    distribution: str
    version: str | None
    location: str
    target: str


def list_modules(kind: str | None = None) -> list[InstalledModule]:
    """List the installed modules, sorted by id.

    Args:
        kind: only modules of this type.
    """
    loader = ModuleLoader()
    modules = (
        InstalledModule(
            id=found.id,
            type=loader.type_of(found.id),
            distribution=found.distribution,
            version=_version(found.path),
            location=found.path,
            target=found.target,
        )
        for found in installed_modules()
    )
    return sorted((module for module in modules if kind in {None, module.type}), key=lambda module: module.id)


def _version(metadata: str) -> str | None:
    """Read the version from the name of a metadata folder, such as `my_dist-1.5.dist-info`."""
    return Path(metadata).stem.partition("-")[2].partition("-")[0] or None
