"""Adding modules to the settings, and taking them out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.directories import AppDirs
from amplifier.app.settings.changes import revise
from amplifier.app.settings.expansion import literally
from amplifier.app.settings.layers import Key, find_module, value_at
from amplifier.app.settings.settings import load_settings
from amplifier.app.sources.cache import SourceCache
from amplifier.app.sources.installers import Installer, find_installer
from amplifier.app.sources.locations import (
    GitLocation,
    PackageLocation,
    PathLocation,
    satisfies,
)
from amplifier.app.sources.parser import read_location
from amplifier.app.sources.pins import Pin, look_at_package
from amplifier.kernel.modules.loader import ModuleLoader
from amplifier.kernel.modules.sources import installed_modules, module_in
from amplifier_kit.files.toml import read_toml
from amplifier_kit.open_data import as_list, as_object
from amplifier_sdk.errors import AmplifierError, ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["AddedModule", "add_module", "remove_module"]

_SECTIONS: Final[Mapping[str, str]] = {
    "provider": "providers",
    "tool": "tools",
    "hook": "hooks",
}


@attrs.frozen(kw_only=True)
class AddedModule:
    """A module that the settings name now.

    Args:
        module: its id.
        type: its type.
        file: the settings file.
        key: where it stands there.
        source: from where it comes; `None` where it is installed.
        path: the folder with its code.
        commit: at which a repository is pinned.
        lacks: the requirements of its project that are not installed.
    """

    module: str
    type: str
    file: Path
    key: Key
    source: str | None = None
    path: Path | None = None
    commit: str | None = None
    lacks: tuple[str, ...] = ()


def add_module(
    module: str,
    source: str | None,
    *,
    dirs: AppDirs,
    cache: SourceCache,
    agree: Callable[[Installer, PackageLocation], bool],
    kind: str | None = None,
    scope: str = "user",
) -> AddedModule:
    """Fetch a module, look whether it is there, and name it in the settings; its code does not run.

    Args:
        module: its id.
        source: from where it comes; `None` for one that is installed.
        dirs: where files stand.
        cache: fetches repositories and pins what was fetched.
        agree: asks whether a package may be installed, with the tool that would do it.
        kind: its type; default the one that its id suggests.
        scope: whose settings: `local`, `project` or `user`.

    Raises:
        FetchError: it cannot be fetched or installed.
        ModuleNotFoundError: the source does not hold it.
        ConfigError: the source may not be used, the type is unknown, or the settings would not be sound.
        AmplifierError: nobody agreed, or the scope has no file here.
    """
    kind = kind or ModuleLoader().type_of(module)
    if kind not in (*_SECTIONS, "orchestrator", "context"):
        raise ConfigError.of(
            module, "its id suggests no type; give --type", subject="choice of modules"
        )
    if kind not in _SECTIONS and source is None:
        problem = f"a session has one {kind}, which its profile names; only a source can be added here: give --source"
        raise ConfigError.of(module, problem, subject="choice of modules")
    written, path, pin = _obtain(module, source, dirs, cache, agree, scope)
    # A folder of the person's own has an environment that they look after.
    lacks = () if path is None or pin is None else _lacking(path)
    place: Key = ("sources", module)
    literal = None if written is None else literally(written)

    def named(values: JSONObject) -> Iterator[tuple[Key, JSONValue]]:
        nonlocal place
        if kind not in _SECTIONS:
            yield place, literal
            return
        entries = _entries(values, _SECTIONS[kind])
        index = find_module(entries, module)
        place = ("modules", _SECTIONS[kind], index)
        if index == len(entries):
            yield place, {"module": module, **({"source": literal} if literal else {})}
        else:
            yield (*place, "source"), literal

    # The pin first: settings that name an unpinned source would fetch whatever is there
    # at the next start.
    if pin is not None:
        cache.pins.set(pin)
    file = revise(scope, named, dirs)
    return AddedModule(
        module=module,
        type=kind,
        file=file,
        key=place,
        source=written,
        path=path,
        commit=None if pin is None else pin.commit,
        lacks=lacks,
    )


def remove_module(
    module: str, dirs: AppDirs, scope: str | None = None
) -> list[tuple[Path, Key]]:
    """Take a module and its source out of the settings, and return each file and key that it stood under.

    What was fetched stays in the cache, and a package stays installed.

    Args:
        module: its id.
        dirs: where files stand.
        scope: whose settings; default all of `local`, `project` and `user`.

    Raises:
        ConfigError: no settings name it.
        AmplifierError: the project's settings are not trusted.
    """
    removed: list[tuple[Path, Key]] = []
    for layer in load_settings(dirs).layers:
        is_meant = scope in (None, layer.scope) and layer.scope != "session"
        if is_meant and any(_keys_of(layer.values, module)):
            removed += _taken_out(module, layer.scope, dirs)
    if not removed:
        where = "no settings name it"
        if scope is not None:
            where = f"the settings of scope {scope!r} do not name it"
        raise ConfigError.of(module, where, subject="choice of modules")
    return removed


def _obtain(
    module: str,
    source: str | None,
    dirs: AppDirs,
    cache: SourceCache,
    agree: Callable[[Installer, PackageLocation], bool],
    scope: str,
) -> tuple[str | None, Path | None, Pin | None]:
    """Bring a module here; return its source as settings name it, the folder of its code, and what to pin."""
    if source is None:
        _require_installed(module)
        return None, None, None
    location = read_location(source, dirs.working_dir)
    match location:
        case GitLocation():
            pin, path = cache.fetch(location)
            module_in(str(path), module)
            return str(location), path, pin
        case PathLocation(path=path):
            module_in(str(path), module)
            return _written(path, dirs, scope), path, None
        case PackageLocation():
            if look_at_package(location) is None:
                installer = find_installer()
                if not agree(installer, location):
                    message = f"{location} was not installed, and nothing was changed"
                    raise AmplifierError(message)
                installer.install(location, offline=cache.git.is_offline)
            _require_installed(module)
            return str(location), None, look_at_package(location)


def _taken_out(module: str, scope: str, dirs: AppDirs) -> list[tuple[Path, Key]]:
    keys: list[Key] = []

    def without(values: JSONObject) -> Iterator[tuple[Key, JSONValue]]:
        keys.extend(_keys_of(values, module))
        return ((key, None) for key in keys)

    path = revise(scope, without, dirs)
    return [(path, key) for key in keys]


def _require_installed(module: str) -> None:
    installed_modules(refresh=True)  # it may be there since the last look
    if all(info.id != module for info in ModuleLoader().discover()):
        problem = "no installed distribution offers it; give its --source"
        raise ConfigError.of(module, problem, subject="choice of modules")


def _written(path: Path, dirs: AppDirs, scope: str) -> str:
    """Write a path as the settings of a scope name it: in a project relative to the project, where it lies in it."""
    path = path.resolve()
    if scope in ("project", "local") and path.is_relative_to(dirs.root):
        return f"./{path.relative_to(dirs.root)}"
    return str(path)


def _entries(values: JSONObject, section: str) -> list[JSONValue]:
    return as_list(value_at(values, ("modules", section)))


def _keys_of(values: JSONObject, module: str) -> Iterator[Key]:
    """Return the keys under which a file of settings names a module, the last of each list first."""
    for section in _SECTIONS.values():
        # From the end, so that removing one does not shift those that follow.
        for index, entry in reversed(list(enumerate(_entries(values, section)))):
            if isinstance(entry, Mapping) and entry.get("module") == module:
                yield "modules", section, index
    if value_at(values, ("sources", module)) is not None:
        yield "sources", module


def _lacking(folder: Path) -> tuple[str, ...]:
    try:
        project = read_toml(folder / "pyproject.toml").get("project")
    except ConfigError:
        return ()
    needed = as_list(as_object(project).get("dependencies"))
    return tuple(text for text in needed if isinstance(text, str) and _lacks(text))


def _lacks(requirement: str) -> bool:
    location = PackageLocation(requirement=requirement.partition(";")[0].strip())
    try:
        return not satisfies(version(location.name), location.versions)
    except (PackageNotFoundError, ValueError):
        # markers of some systems alone are left to the installer
        return ";" not in requirement
