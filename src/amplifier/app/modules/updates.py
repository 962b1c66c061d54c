"""What the pinned sources of modules mean now."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from amplifier.app.modules.provenance import trace_module
from amplifier.app.modules.resolver import LayeredResolver
from amplifier.app.sources.locations import (
    GitLocation,
    Location,
    PackageLocation,
    is_bare_name,
)
from amplifier.app.sources.parser import read_location
from amplifier.app.sources.updates import Refresh
from amplifier_sdk.errors import ConfigError, Problem

__all__ = ["refresh_modules"]


def refresh_modules(
    resolver: LayeredResolver, modules: Collection[str] = ()
) -> Refresh:
    """Look what the sources of modules are now: what `Refresh.pin` would change.

    A repository is fetched. A package is compared as it is installed; nothing is installed.

    Args:
        resolver: says where modules come from.
        modules: which; default every source that was pinned.

    Raises:
        FetchError: one cannot be fetched.
        ConfigError: a module has no source that can be updated.
    """
    refresh = Refresh(resolver.cache)
    sources = [_source_of(resolver, module) for module in modules]
    if not modules:
        sources = [pin.source for pin in resolver.cache.pins.all()]
    for source in sources:
        # What is written down as a package is one, also beside a folder of its name.
        location: Location = PackageLocation(requirement=source)
        if not is_bare_name(source):
            location = read_location(source, Path("/"))
        match location:
            case GitLocation():
                refresh.open(location)
            case PackageLocation():
                refresh.look_at(location)
            case _:
                raise ConfigError(
                    [Problem(source, "it is no source that is pinned")],
                    subject="lock file of modules",
                )
    return refresh


def _source_of(resolver: LayeredResolver, module: str) -> str:
    used = trace_module(module, resolver=resolver).used
    if used is not None and isinstance(used.location, (GitLocation, PackageLocation)):
        return str(used.location)
    problem = "no layer names a source of it that may be used"
    if used is not None:
        problem = f"it comes from {used.location}, as it is there: nothing is pinned"
    raise ConfigError([Problem(module, problem)], subject="choice of modules")
