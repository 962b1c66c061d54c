"""The settings that hold for a session: the files of all scopes, merged, each value with its origin."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.directories import FOLDER, AppDirs
from amplifier.app.projects.files import ProjectFiles
from amplifier.app.settings.expansion import Lookup
from amplifier.app.settings.layers import (
    FILES,
    SCOPES,
    Key,
    Layer,
    Scope,
    plan_entry,
    read_layer,
    value_at,
)
from amplifier.app.settings.schema import SettingsSchema
from amplifier.kernel.plans.overlays import merge_modules, merge_values
from amplifier_kit.files.documents import read_text
from amplifier_kit.open_data import as_object
from amplifier_kit.trust import TrustDecision
from amplifier_sdk.configuration import read_config
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["SettingOrigin", "Settings", "load_settings", "settings_file"]

_MODULE_LISTS: Final[tuple[tuple[str, str], ...]] = (
    ("config", "providers"),
    ("modules", "providers"),
    ("modules", "tools"),
    ("modules", "hooks"),
)


@attrs.frozen(kw_only=True)
class SettingOrigin:
    """Where a value was set; the first of several is the one that holds.

    Args:
        scope: `default` where no file sets it.
        path: the file.
        line: the line, from 1.
        value: what stands there, references as they were written.
    """

    scope: Scope | str
    path: Path | None = None
    line: int | None = None
    value: JSONValue = None


@attrs.frozen(kw_only=True)
class Settings:
    """What all scopes come to.

    Args:
        values: the merged values, references to the environment as they were written.
        layers: the files, the strongest first.
        withheld: what the project sets and nobody trusted; it does not count.
        lookup: returns what a reference stands for.
    """

    values: JSONObject = attrs.field(factory=dict)
    layers: tuple[Layer, ...] = ()
    withheld: TrustDecision | None = None
    lookup: Lookup = attrs.field(default=os.environ.get, repr=False)

    def read(self) -> SettingsSchema:
        """Return the values with their defaults, typed; references stay as they were written."""
        return read_config(SettingsSchema, self.values, subject="settings")

    def source(self, key: Key) -> tuple[str, Layer]:
        """Return what a key says of where something is, references filled in, and the file that says it.

        Args:
            key: one that a file sets.

        Raises:
            ConfigError: it refers to a variable that is not set; names file and line.
        """
        layer = next(layer for layer in self.layers if _has(layer.values, key))
        return str(layer.expanded(key, self.lookup)), layer

    def explain(self, key: Sequence[str | int]) -> tuple[SettingOrigin, ...]:
        """Return every place that sets a value, the one that holds first, the default last."""
        origins = [
            SettingOrigin(
                scope=layer.scope,
                path=layer.path,
                line=layer.line(key),
                value=value_at(layer.values, key),
            )
            for layer in self.layers
            if _has(layer.values, key)
        ]
        from amplifier_sdk.convert import to_json  # only to explain a value

        default = value_at(to_json(SettingsSchema()), key)
        if default is not None:
            origins.append(SettingOrigin(scope="default", value=default))
        return tuple(origins)


def load_settings(
    dirs: AppDirs,
    *,
    session: Path | None = None,
    project: ProjectFiles | None = None,
    lookup: Lookup = os.environ.get,
) -> Settings:
    """Read and merge the settings of all scopes.

    What stands in a project's folder counts once a person trusted it.

    Args:
        dirs: where the files stand.
        session: a session's own folder.
        project: what of the project's folder may be used; default what the person trusted.
        lookup: returns what a reference stands for, default the environment.

    Raises:
        ConfigError: a file has problems; names file and line of each.
    """
    project = project or ProjectFiles(dirs)
    files = {scope: settings_file(scope, dirs, session) for scope in SCOPES}
    read = (_read_scope(scope, path, project) for scope, path in files.items())
    layers = [layer for layer in read if layer is not None]
    values: JSONObject = {}
    # The weakest scope is the ground that the stronger ones are laid on.
    for layer in reversed(layers):
        values = _merged(values, layer.values)
    withheld = project.evaluate("settings")
    if withheld is not None and withheld.trusted:
        withheld = None
    return Settings(
        values=values, layers=tuple(layers), withheld=withheld, lookup=lookup
    )


def settings_file(
    scope: Scope, dirs: AppDirs, session: Path | None = None
) -> Path | None:
    """Return the file of a scope; `None` where the scope has none.

    Where the person works in their home folder there is no project, since its files would be their own.
    """
    if scope == "session":
        if session is None:
            return None
        return session / "settings.yaml"
    folder = dirs.home if scope == "user" else dirs.project
    return None if folder is None else folder / FILES[scope]


def _read_scope(scope: Scope, path: Path | None, project: ProjectFiles) -> Layer | None:
    if path is None:
        return None
    if scope in ("project", "local"):
        # The bytes that were trusted, not those on disk: the file may change after it
        # was checked.
        data = project.contents("settings").get(f"{FOLDER}/{path.name}")
        if data is None:
            return None
        return read_layer(scope, path, data)
    if path.exists():
        return read_layer(scope, path, read_text(path).encode())
    return None


def _merged(below: JSONObject, above: JSONObject) -> JSONObject:
    """Lay one scope over another: mappings key by key, lists of modules by module, `null` takes away."""
    result = as_object(merge_values(below, above))
    for section, name in _MODULE_LISTS:
        # A list of modules is merged by module; as plain values the stronger list would
        # replace the other.
        lower, upper = (value_at(each, (section, name)) for each in (below, above))
        if isinstance(lower, list) and isinstance(upper, list):
            merged = merge_modules([*map(plan_entry, lower)], [*map(plan_entry, upper)])
            modules = {name: [*map(_unkeyed, merged)]}
            result[section] = {**as_object(result.get(section)), **modules}
    return result


def _unkeyed(entry: object) -> JSONValue:
    return {
        ("id" if name == "instance_id" else name): value
        for name, value in as_object(entry).items()
    }


def _has(values: JSONValue, key: Sequence[str | int]) -> bool:
    if not key:
        return True
    holder = value_at(values, key[:-1])
    last = key[-1]
    if isinstance(last, str):
        return isinstance(holder, dict) and last in holder
    return isinstance(holder, list) and last < len(holder)
