"""Where a module comes from, for a person: every layer, with the plan of their profile; what its source means now."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import attrs

from amplifier.app.collections.folders import CollectionLibrary
from amplifier.app.directories import AppDirs
from amplifier.app.modules.resolver import LayeredResolver, LayerResult, make_resolver
from amplifier.app.plan_entries import named_modules
from amplifier.app.profiles.compiler import choose_profile
from amplifier.app.profiles.library import ProfileLibrary
from amplifier.app.projects.files import ProjectFiles
from amplifier.app.settings.settings import load_settings
from amplifier.app.sources.locations import (
    GitLocation,
    Location,
    PackageLocation,
    is_bare_name,
)
from amplifier.app.sources.parser import read_location
from amplifier.app.sources.pins import Pin
from amplifier.app.sources.updates import Refresh
from amplifier.kernel.modules.loader import ModuleLoader
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["TracedModule", "refresh_modules", "resolver_of", "trace_module"]


@attrs.frozen(kw_only=True)
class TracedModule:
    """A module, and what every layer says of it.

    Args:
        module: its id.
        type: the type that its id suggests.
        layers: what each layer says, in the order in which they are asked.
        pin: what its source is pinned at, where it is.
    """

    module: str
    type: str
    layers: tuple[LayerResult, ...]
    pin: Pin | None = None

    @property
    def used(self) -> LayerResult | None:
        """The layer that counts: the first that has it; `None` where none has, or one before it is refused."""
        # A layer that is refused ends the search: falling through would run another
        # module than the one that was named.
        first = next(
            (tried for tried in self.layers if tried.is_found or tried.is_refused), None
        )
        if first is None or first.is_refused:
            return None
        return first

    def facts(self) -> dict[str, str]:
        """Return what there is to say, by label."""
        used, pin = self.used, self.pin
        facts: dict[str, str | None] = {}
        if used is not None:
            facts = {"layer": f"{used.layer}, {used.place}", "source": used.result}
        if pin is not None:
            facts |= {"commit": pin.commit, "version": pin.version}
            facts |= {"hash": pin.hash, "pinned": pin.fetched_at}
        return {label: text for label, text in facts.items() if text}

    def to_dict(self, *, layers: bool = True) -> JSONObject:
        """Write it as JSON data, with every layer or without."""
        data: JSONObject = {
            "id": self.module,
            "type": self.type,
            "found": self.used is not None,
            **self.facts(),
        }
        if layers:
            data["layers"] = [
                {
                    "layer": tried.layer,
                    "place": tried.place,
                    "result": tried.result,
                    "found": tried.is_found,
                    "used": tried is self.used,
                }
                for tried in self.layers
            ]
        return data


def trace_module(
    module: str, profile: str | None = None, resolver: LayeredResolver | None = None
) -> TracedModule:
    """Ask every layer for a module; nothing is fetched, and no code of it runs.

    Args:
        module: its id.
        profile: whose plan may name a source, `bundle:` and its name for a bundle; default what the settings choose.
        resolver: asks the layers; default that of the working directory of the process.

    Raises:
        ConfigError: a file that says where modules come from has problems.
    """
    resolver = resolver or resolver_of()
    layers = resolver.why(module, _hint(resolver, module, profile))
    kind = ModuleLoader().type_of(module)
    traced = TracedModule(module=module, type=kind, layers=layers)
    match traced.used:
        case LayerResult(location=GitLocation() | PackageLocation() as location):
            return attrs.evolve(traced, pin=resolver.cache.pins.find(str(location)))
        case _:
            return traced


def resolver_of(
    dirs: AppDirs | None = None, *, offline: bool = False
) -> LayeredResolver:
    """Return the resolver of a working directory, default that of the process.

    Raises:
        ConfigError: a settings file has problems.
    """
    dirs = dirs or AppDirs.find()
    project = ProjectFiles(dirs)
    settings = load_settings(dirs, project=project)
    return make_resolver(
        dirs, project, settings, CollectionLibrary(dirs, project), offline=offline
    )


def _hint(resolver: LayeredResolver, module: str, profile: str | None) -> JSONValue:
    library = ProfileLibrary(
        resolver.dirs, resolver.project, resolver.collections, resolver.settings
    )
    chosen = choose_profile(profile, library, resolver.settings, dict)
    for _, entry in named_modules({} if chosen is None else chosen.plan):
        if entry.get("module") == module and entry.get("source") is not None:
            return entry["source"]
    return None


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
                raise ConfigError.of(
                    source,
                    "it is no source that is pinned",
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
    raise ConfigError.of(module, problem, subject="choice of modules")
