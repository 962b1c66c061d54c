"""A folder that offers several plugins, as `.claude-plugin/marketplace.json` lists them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

import attrs

from amplifier.app.plugins.layout import plugin_name
from amplifier.app.sources.locations import GitLocation, Location, PathLocation
from amplifier.app.sources.parser import read_location
from amplifier_kit.claude_plugins import path_inside
from amplifier_kit.files.documents import read_mapping
from amplifier_kit.open_data import as_list, as_object, as_text
from amplifier_sdk.errors import ConfigError, Problem, did_you_mean
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["Marketplace", "OfferedPlugin", "SeveralPluginsError", "read_marketplace"]

_FILE: Final = ".claude-plugin/marketplace.json"
_SHORT: Final = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+")
_MAX_PLUGINS: Final = 2_000
_MAX_NAMES: Final = 12


@attrs.frozen(kw_only=True)
class OfferedPlugin:
    """A plugin that a marketplace offers.

    Args:
        name: what it is called by.
        description: what the marketplace says of it.
        source: where it is, as the marketplace writes it.
        entry: all that the marketplace says of it.
    """

    name: str
    description: str
    source: JSONValue
    entry: JSONObject


class SeveralPluginsError(ConfigError):
    """A marketplace offers several plugins, and none was named."""

    def __init__(self, source: str, plugins: Sequence[OfferedPlugin]) -> None:
        self.plugins: tuple[OfferedPlugin, ...] = tuple(plugins)
        hint = ", ".join(sorted(plugin.name for plugin in plugins))
        if len(plugins) > _MAX_NAMES:
            hint = f"'amplifier plugin add {source} --dry-run' lists them"
        problem = f"it offers {len(plugins)} plugins; name those that you want behind it: {hint}"
        super().__init__([Problem(source, problem)], subject="choice of plugins")


@attrs.frozen(kw_only=True)
class Marketplace:
    """What a folder offers.

    Args:
        root: the folder.
        base: the folder in it that relative sources are relative to.
        plugins: the plugins.
    """

    root: Path
    base: Path
    plugins: tuple[OfferedPlugin, ...]

    def offered(self, name: str) -> OfferedPlugin:
        """Return the plugin of a name, as `plugin_name` writes it.

        Raises:
            ConfigError: there is none; names the nearest.
        """
        known = {plugin.name: plugin for plugin in self.plugins}
        found = known.get(name)
        if found is None:
            hint = did_you_mean(name, list(known)) or "; --dry-run without it lists all"
            self._refuse(name, f"the marketplace has no such plugin{hint}")
        return found

    def locate(self, plugin: OfferedPlugin, *, is_local: bool) -> Location:
        """Return where a plugin is: a folder of the marketplace, or a repository.

        Args:
            plugin: which.
            is_local: whether the marketplace is on this machine, and may name repositories that are.

        Raises:
            ConfigError: the source is none of these, or leads elsewhere.
        """
        if isinstance(plugin.source, str):
            return PathLocation(path=self._inside(plugin.name, plugin.source))
        location = self._repository(plugin)
        if location.scheme == "file" and not is_local:
            self._refuse(plugin.name, "its repository is on this machine")
        return location

    def _inside(self, name: str, source: str) -> Path:
        path = path_inside(self.root, source, self.base)
        if path is None:
            problem = (
                f"its folder {source!a:.80} leads out of the marketplace, or is no path"
            )
            self._refuse(name, problem)
        if not path.is_dir():
            self._refuse(name, f"the marketplace has no folder {source!a:.80}")
        return path

    def _repository(self, plugin: OfferedPlugin) -> GitLocation:
        fields = as_object(plugin.source)
        kind = fields.get("source")
        where = fields.get("repo" if kind == "github" else "url")
        if kind not in ("github", "url", "git-subdir") or not isinstance(where, str):
            problem = "its source is none of a folder, 'github', 'url' and 'git-subdir'"
            self._refuse(plugin.name, problem)
        if kind == "github" or _SHORT.fullmatch(where):
            where = f"https://github.com/{where}"
        source = {"type": "git", "url": where}
        # A commit says more than the branch that it was on.
        for key, names in (("ref", ("sha", "ref")), ("subdirectory", ("path",))):
            value = next((fields[name] for name in names if fields.get(name)), None)
            if isinstance(value, str):
                source[key] = value.removeprefix("./") if key != "ref" else value
        location = read_location(source, self.root)
        if not isinstance(location, GitLocation):
            self._refuse(plugin.name, "its source is no repository")
        return location

    def _refuse(self, name: str, problem: str) -> NoReturn:
        raise ConfigError.of(name, problem, subject="marketplace")


def read_marketplace(root: Path) -> Marketplace | None:
    """Read what a folder offers; `None` where it is no marketplace. The function blocks.

    Raises:
        ConfigError: its file cannot be read, or says something that cannot be meant.
    """
    path = root / _FILE
    if not path.is_file():
        return None
    document = read_mapping(path)
    base = as_object(document.get("metadata")).get("pluginRoot")
    listed = as_list(document.get("plugins"))
    plugins = tuple(filter(None, map(_offered, listed[:_MAX_PLUGINS])))
    if not plugins:
        problem = "it lists no plugin that has a name and a source"
        raise ConfigError.of("plugins", problem, subject=f"file {_FILE!r}")
    return Marketplace(
        root=root,
        base=root / base.strip("/") if isinstance(base, str) else root,
        plugins=plugins,
    )


def _offered(entry: JSONValue) -> OfferedPlugin | None:
    """Read what is said of one plugin; one without a name that it could have is left out, for the others' sake."""
    fields = as_object(entry)
    try:
        named = plugin_name(as_text(fields.get("name")))
    except ConfigError:
        return None
    return OfferedPlugin(
        name=named,
        description=as_text(fields.get("description")),
        source=fields.get("source", "./"),
        entry=fields,
    )
