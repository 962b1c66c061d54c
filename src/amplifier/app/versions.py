"""The versions that a report of a problem needs: the runtime's, Python's, and those of the installed modules."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, entry_points, version

import attrs

__all__ = ["Versions", "read_versions"]

GROUP = "amplifier.modules"
"""The entry-point group of modules; stated here as well, since asking for a version loads no kernel."""


@attrs.frozen(kw_only=True)
class Versions:
    """What is installed; `modules` maps each distribution with modules to its version."""

    amplifier: str
    python: str
    platform: str
    modules: dict[str, str]


def read_versions() -> Versions:
    """Read the versions from the installed metadata."""
    distributions = {
        point.dist.name: point.dist.version
        for point in entry_points(group=GROUP)
        if point.dist
    }
    try:
        own = version("amplifier")
    except PackageNotFoundError:
        own = "unknown (not installed)"
    return Versions(
        amplifier=own,
        python=platform.python_version(),
        platform=platform.platform(),
        modules=dict(sorted(distributions.items())),
    )
