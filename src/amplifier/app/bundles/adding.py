"""Adding a bundle under a name, bringing it up to date, and removing it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from amplifier.app.bundles.chains import compile_over, follow_includes
from amplifier.app.bundles.library import ADDED, BundleLibrary
from amplifier.app.changing import change
from amplifier.app.places import Places
from amplifier.app.settings.layers import value_at
from amplifier.app.sources.cache import SourceCache
from amplifier.app.sources.locations import PathLocation
from amplifier.app.sources.reading import read_location
from amplifier.app.sources.refreshing import Refresh
from amplifier_sdk.errors import ConfigError, Problem

__all__ = ["add_bundle", "refresh_bundles", "remove_bundle"]

_ACTIVE: Final = ("bundle", "active")
_EVERYWHERE: Final = ("bundle", "app")


def add_bundle(
    places: Places, address: str, *, name: str | None = None, every_session: bool = False, scope: str = "user"
) -> tuple[str, Path]:
    """Add the bundle at an address; return its name and the settings file. The function blocks.

    It is read first, with all that it includes. What is not pinned yet is fetched, and pinned once all is sound.

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
    refresh = Refresh(SourceCache.of(places), keeps=True)
    library = BundleLibrary.of(places, refresh.open)
    location = read_location(address, places.working_dir)
    address = os.path.normpath(location.path) if isinstance(location, PathLocation) else str(location)
    file = library.open(address, places.working_dir)
    name = name or file.name
    if not name or ":" in name or name.startswith((".", "~", "/")):
        problem = Problem(name, "a name has no ':' and begins with no '.', '~' or '/'; give another one with --name")
        raise ConfigError([problem], subject="name of a bundle")
    compile_over(follow_includes(library, [address]))
    refresh.pin()
    path = change(scope, (*ADDED, name), address, places)
    if every_session:
        listed = _of_scope(library, scope)
        change(scope, _EVERYWHERE, [*listed, *([] if name in listed else [name])], places)
    return name, path


def refresh_bundles(places: Places, names: Sequence[str] = ()) -> Refresh:
    """Look what bundles are now where they come from, with all that they include: what `Refresh.pin` would change.

    The function blocks. Sessions use what is pinned until then.

    Args:
        places: where the files stand.
        names: which; default all that were added, the active one, and those of every session.

    Raises:
        ConfigError: one is missing, or is not sound any more.
        FetchError: one cannot be fetched.
        OSError: the cache cannot be written.
    """
    refresh = Refresh(SourceCache.of(places))
    library = BundleLibrary.of(places, refresh.open)
    chosen = library.settings.read().bundle
    active = () if chosen.active is None else (chosen.active,)
    for name in dict.fromkeys(names or (*library.added, *active, *chosen.app)):
        compile_over(follow_includes(library, [name]))
    return refresh


def remove_bundle(places: Places, name: str, *, scope: str = "user") -> Path | None:
    """Forget a bundle that was added; return the settings file, `None` where it was not added in that scope.

    Raises:
        AmplifierError: the scope has no file here.
        OSError: the file cannot be written.
    """
    library = BundleLibrary.of(places)
    layer = next((layer for layer in library.settings.layers if layer.scope == scope), None)
    if layer is None or value_at(layer.values, (*ADDED, name)) is None:
        return None
    listed = _of_scope(library, scope)
    if name in listed:
        change(scope, _EVERYWHERE, [each for each in listed if each != name] or None, places)
    if value_at(layer.values, _ACTIVE) == name:
        change(scope, _ACTIVE, None, places)
    return change(scope, (*ADDED, name), None, places)


def _of_scope(library: BundleLibrary, scope: str) -> list[str]:
    """Return the bundles of every session that a scope's file names."""
    layer = next((layer for layer in library.settings.layers if layer.scope == scope), None)
    listed = None if layer is None else value_at(layer.values, _EVERYWHERE)
    return [str(each) for each in listed] if isinstance(listed, list) else []
