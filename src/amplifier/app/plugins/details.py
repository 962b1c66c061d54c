"""Plugins as they are shown to a person: whose they are, whether they are used, and what they may do."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from amplifier.app.directories import FOLDER, AppDirs
from amplifier.app.fetched.lock import FetchedEntry, FetchedLock
from amplifier.app.plugins.abilities import Ability, abilities_of
from amplifier.app.sources.locations import canonical_name
from amplifier_kit.claude_plugins import is_plugin, own_plugins, read_plugin
from amplifier_kit.trust import TrustStore, evaluate_project
from amplifier_sdk.errors import ConfigError, did_you_mean
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["PluginState", "ShownPlugin", "list_plugins", "show_plugin"]

PluginState: TypeAlias = Literal["used", "refused", "missing", "waiting"]
"""Whether a plugin is used, is not what was agreed to, is gone, or waits for trust."""


@attrs.frozen(kw_only=True)
class ShownPlugin:
    """A plugin.

    Args:
        name: its name.
        level: whether it was `added`, is the person's `own`, or the `project`'s.
        state: whether it is used.
        folder: where it is.
        reason: why it is not used.
        version: that its manifest gives.
        description: likewise.
        source: from where it was added.
        commit: of a repository.
        abilities: what it may do.
    """

    name: str
    level: Literal["added", "own", "project"]
    state: PluginState
    folder: Path
    reason: str = ""
    version: str = ""
    description: str = ""
    source: str | None = None
    commit: str | None = None
    abilities: tuple[Ability, ...] = ()

    def to_dict(self) -> JSONObject:
        """Write it as JSON data."""
        data = attrs.asdict(self)
        folder = str(data.pop("folder"))
        return {**data, "reason": self.reason or None, "path": folder}


def list_plugins(dirs: AppDirs) -> list[ShownPlugin]:
    """Return the plugins of the person's folder and of the project, sorted by name. The function blocks.

    Raises:
        ConfigError: the lock file is damaged.
        OSError: a folder, or what was agreed to, cannot be read.
        ValueError: what was agreed to is damaged.
    """
    locked = FetchedLock(dirs.home, "plugins").read()
    found = {
        own.folder.name: _shown(own.folder, own.refusal, locked.get(own.folder.name))
        for own in own_plugins()
    }
    for name, entry in locked.items():
        if name not in found:
            found[name] = ShownPlugin(
                name=name,
                level="added",
                state="missing",
                folder=dirs.home / "plugins" / name,
                reason=f"its folder is gone; run 'amplifier plugin remove {name}', or 'amplifier plugin update {name}'",
                source=entry.source,
                commit=entry.commit,
            )
    return sorted([*found.values(), *_of_project(dirs)], key=lambda each: each.name)


def show_plugin(name: str, dirs: AppDirs) -> ShownPlugin:
    """Return a plugin.

    Raises:
        ConfigError: there is none; names the nearest.
        OSError: a folder, or what was agreed to, cannot be read.
        ValueError: what was agreed to is damaged.
    """
    known = {shown.name: shown for shown in list_plugins(dirs)}
    found = known.get(name) or known.get(canonical_name(name))
    if found is None:
        hint = did_you_mean(name, list(known)) or "; 'amplifier plugin list' lists them"
        raise ConfigError.of(
            name, f"there is no such plugin{hint}", subject="choice of plugins"
        )
    return found


def _shown(folder: Path, refusal: str, entry: FetchedEntry | None) -> ShownPlugin:
    shown = ShownPlugin(
        name=folder.name,
        level="own" if entry is None else "added",
        state="refused" if refusal else "used",
        folder=folder,
        reason=refusal,
        source=None if entry is None else entry.source,
        commit=None if entry is None else entry.commit,
    )
    return _described(shown)


def _described(shown: ShownPlugin) -> ShownPlugin:
    try:
        plugin = read_plugin(shown.folder)
        abilities = abilities_of(plugin)
    except ConfigError as error:
        reason = shown.reason or error.in_one_line
        return attrs.evolve(shown, state="refused", reason=reason)
    return attrs.evolve(
        shown,
        version=plugin.version,
        description=plugin.description,
        abilities=abilities,
    )


def _of_project(dirs: AppDirs) -> list[ShownPlugin]:
    """Return the plugins of the project; what waits for trust is listed, and is not read."""
    folder = dirs.root / FOLDER / "plugins"
    if dirs.project is None or not folder.is_dir():
        return []
    decision = evaluate_project(TrustStore.in_home(), dirs.root, "plugins")
    found = [
        ShownPlugin(name=entry.name, level="project", state="used", folder=entry)
        for entry in sorted(folder.iterdir())
        if entry.is_dir() and is_plugin(entry)
    ]
    if decision.trusted:
        return [_described(each) for each in found]
    reason = f"{decision.reason}; look at it and run 'amplifier trust'"
    return [attrs.evolve(each, state="waiting", reason=reason) for each in found]
