"""Adding a bundle under a name, bringing it up to date, and removing it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from amplifier.app.directories import AppDirs
from amplifier.app.profiles.chain import follow
from amplifier.app.profiles.compiler import compile_chain
from amplifier.app.profiles.library import ADDED, ProfileLibrary
from amplifier.app.profiles.selection import as_bundle
from amplifier.app.settings.changes import revise
from amplifier.app.settings.expansion import literally
from amplifier.app.settings.layers import Key, value_at
from amplifier.app.sources.cache import SourceCache
from amplifier.app.sources.locations import PathLocation
from amplifier.app.sources.parser import read_location
from amplifier.app.sources.updates import Refresh
from amplifier_kit.open_data import as_list
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["add_bundle", "refresh_bundles", "remove_bundle"]

_ACTIVE: Final = ("bundle", "active")
_EVERYWHERE: Final = ("bundle", "app")


def add_bundle(
    dirs: AppDirs,
    address: str,
    *,
    name: str | None = None,
    every_session: bool = False,
    scope: str = "user",
) -> tuple[str, Path]:
    """Add the bundle at an address; return its name and the settings file. The function blocks.

    It is read first, with all that it includes. What is not pinned yet is fetched, and pinned once all is sound.

    Args:
        dirs: where the files stand.
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
    refresh = Refresh(SourceCache.of(dirs), keeps=True)
    library = ProfileLibrary.of(dirs, refresh.open)
    location = read_location(address, dirs.working_dir)
    address = str(location)
    if isinstance(location, PathLocation):
        # Absolute, since settings are read from any folder.
        address = os.path.normpath(location.path)
    file = library.open(address, "bundle", dirs.working_dir)
    name = name or file.own_name
    if not name or ":" in name or name.startswith((".", "~", "/")):
        raise ConfigError.of(
            name,
            "a name has no ':' and begins with no '.', '~' or '/'; give another one with --name",
            subject="name of a bundle",
        )
    # Compiled before it is pinned: a bundle that cannot be used leaves nothing behind.
    compile_chain(follow(library, as_bundle(address)))
    refresh.pin()
    known = name

    def added(values: JSONObject) -> Iterator[tuple[Key, JSONValue]]:
        # Literally: a dollar sign in a path is no reference to the environment.
        yield (*ADDED, known), literally(address)
        listed = _everywhere(values)
        if every_session and known not in listed:
            yield (*_EVERYWHERE, len(listed)), known

    return name, revise(scope, added, dirs)


def refresh_bundles(dirs: AppDirs, names: Sequence[str] = ()) -> Refresh:
    """Look what bundles are now where they come from, with all that they include: what `Refresh.pin` would change.

    The function blocks. Sessions use what is pinned until then.

    Args:
        dirs: where the files stand.
        names: which; default all that were added, the active one, and those of every session.

    Raises:
        ConfigError: one is missing, or is not sound any more.
        FetchError: one cannot be fetched.
        OSError: the cache cannot be written.
    """
    refresh = Refresh(SourceCache.of(dirs))
    library = ProfileLibrary.of(dirs, refresh.open)
    chosen = library.settings.read().bundle
    every = filter(None, (*library.added, chosen.active, *chosen.app))
    for name in dict.fromkeys(names or every):
        compile_chain(follow(library, as_bundle(name)))
    return refresh


def remove_bundle(dirs: AppDirs, name: str, *, scope: str = "user") -> Path | None:
    """Forget a bundle that was added; return the settings file, `None` where it was not added in that scope.

    Raises:
        AmplifierError: the scope has no file here.
        OSError: the file cannot be written.
    """
    removed = False

    def without(values: JSONObject) -> Iterator[tuple[Key, JSONValue]]:
        nonlocal removed
        removed = value_at(values, (*ADDED, name)) is not None
        if not removed:
            return
        listed = _everywhere(values)
        if name in listed:
            yield _EVERYWHERE, [each for each in listed if each != name] or None
        # The settings of a scope must not name what the same scope forgot: no session
        # could be made.
        if value_at(values, _ACTIVE) == name:
            yield _ACTIVE, None
        yield (*ADDED, name), None

    path = revise(scope, without, dirs)
    if removed:
        return path
    return None


def _everywhere(values: JSONObject) -> list[JSONValue]:
    return as_list(value_at(values, _EVERYWHERE))
