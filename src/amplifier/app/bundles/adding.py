"""Adding a bundle under a name, and removing it."""

from __future__ import annotations

import os
from pathlib import Path

from amplifier.app.bundles.chains import compile_over, follow_includes
from amplifier.app.bundles.library import BundleLibrary
from amplifier.app.changing import change
from amplifier.app.places import Places
from amplifier.app.settings.layers import value_at
from amplifier.app.sources.locations import PathLocation, read_location
from amplifier_sdk.errors import ConfigError, Problem

__all__ = ["add_bundle", "remove_bundle"]

_ADDED = ("bundle", "added")
_EVERYWHERE = ("bundle", "app")


def add_bundle(
    places: Places, address: str, *, name: str | None = None, every_session: bool = False, scope: str = "user"
) -> tuple[str, Path]:
    """Add the bundle at an address; return its name and the settings file. The function blocks.

    It is read first, with all that it includes; what has to be fetched is fetched and pinned.

    Args:
        places: where the files stand.
        address: a file, a folder, or a repository; a relative path is made absolute.
        name: under which it is added; default its own.
        every_session: let every session have it.
        scope: whose settings are changed.

    Raises:
        ConfigError: it is not sound, or the name cannot be one.
        FetchError: it cannot be fetched.
        AmplifierError: the scope has no file here.
        OSError: the file cannot be written.
    """
    library = BundleLibrary.of(places, fetches=True)
    location = read_location(address, places.working_dir)
    address = os.path.normpath(location.path) if isinstance(location, PathLocation) else str(location)
    file = library.open(address, places.working_dir)
    name = name or file.name
    if not name or ":" in name or name.startswith((".", "~", "/")):
        problem = Problem(name, "a name has no ':' and begins with no '.', '~' or '/'; give another one with --name")
        raise ConfigError([problem], subject="name of a bundle")
    compile_over(follow_includes(library, [address]))
    path = change(scope, (*_ADDED, name), address, places)
    if every_session:
        listed = _of_scope(library, scope)
        change(scope, _EVERYWHERE, [*listed, *([] if name in listed else [name])], places)
    return name, path


def remove_bundle(places: Places, name: str, *, scope: str = "user") -> Path | None:
    """Forget a bundle that was added; return the settings file, `None` where it was not added in that scope.

    Raises:
        AmplifierError: the scope has no file here.
        OSError: the file cannot be written.
    """
    library = BundleLibrary.of(places)
    layer = next((layer for layer in library.settings.layers if layer.scope == scope), None)
    if layer is None or value_at(layer.values, (*_ADDED, name)) is None:
        return None
    listed = _of_scope(library, scope)
    if name in listed:
        change(scope, _EVERYWHERE, [each for each in listed if each != name] or None, places)
    if value_at(layer.values, ("bundle", "active")) == name:
        change(scope, ("bundle", "active"), None, places)
    return change(scope, (*_ADDED, name), None, places)


def _of_scope(library: BundleLibrary, scope: str) -> list[str]:
    """Return the bundles of every session that a scope's file names."""
    layer = next((layer for layer in library.settings.layers if layer.scope == scope), None)
    listed = None if layer is None else value_at(layer.values, _EVERYWHERE)
    return [str(each) for each in listed] if isinstance(listed, list) else []
