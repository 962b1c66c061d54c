"""Where plugin folders are, and which of them may be used: the person's, and those of a project once it is trusted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.claude_plugins import (
    OwnPlugin,
    evaluate_trust,
    is_plugin,
    lost_plugins,
    read_plugin,
    server_documents,
    write_copies,
)
from amplifier_kit.files.homes import amplifier_home
from amplifier_kit.trust import (
    PROJECT_FILES,
    TrustDecision,
    TrustStore,
    evaluate_project,
)
from amplifier_module_hooks_shell._loaded import LoadedPlugin
from amplifier_module_hooks_shell._surroundings import NAME, HookEnvironment
from amplifier_sdk.errors import ConfigError, ModuleLoadError

__all__ = ["FoundHooks", "find_plugins"]

_KIND: Final = "plugins"
"""What the trust store calls the plugins of a project."""

_CLAUDE: Final = ".claude"
_KINDS: Final = ("agents", "commands", "hooks", "skills")
_GUARDS: Final = ("hooks", _KIND)
"""The kinds that may guard a session."""


@attrs.frozen(kw_only=True)
class FoundHooks:
    """What was found.

    Args:
        loaded: the plugins that may be used, in the order in which they were named.
        pending: what a person would have to trust first.
        problems: what else cannot be used, and why.
    """

    loaded: tuple[LoadedPlugin, ...] = ()
    pending: tuple[TrustDecision, ...] = ()
    problems: tuple[str, ...] = ()


def find_plugins(surroundings: HookEnvironment) -> FoundHooks:
    """Find and read the plugins of a session; blocks.

    Of a project nothing is used before it is trusted, and then as it was evaluated: from a copy of its own.

    Raises:
        ConfigError: a folder that is configured is no plugin, or a manifest or a hook cannot be read.
        ModuleLoadError: hooks or plugins that were trusted changed, or are gone.
    """
    finder = _Finder(surroundings=surroundings, directory=surroundings.directory)
    config = surroundings.config
    folders = (
        (str(amplifier_home() / "plugins"), ".amplifier/plugins")
        if config.plugin_dirs is None
        else config.plugin_dirs
    )
    for path in config.plugins:
        finder.take(path, is_named=True)
    for path in folders:
        finder.take_all(path)
    if config.claude_folder:
        finder.take_claude_folder()
    return finder.finish()


@attrs.define(eq=False)
class _Finder:
    """Gathers the person's plugins, and what a project would bring."""

    surroundings: HookEnvironment
    directory: str
    loaded: list[LoadedPlugin] = attrs.field(factory=list)
    problems: list[str] = attrs.field(factory=list)
    _single: list[str] = attrs.field(factory=list)
    _several: list[str] = attrs.field(factory=list)

    def take(self, path: str, *, is_named: bool = False) -> None:
        """Take one plugin folder.

        Raises:
            ConfigError: it is named in the configuration and is none.
        """
        folder, inside = self._place(path)
        if inside is not None:
            self._single.append(inside)
            return
        if (
            is_named
            and not is_plugin(folder)
            and not (folder / "settings.json").is_file()
        ):
            problem = f"{folder} is no plugin folder: it has no .claude-plugin/plugin.json, commands, agents or hooks"
            raise ConfigError.of(
                "plugins", problem, subject="configuration of hooks-shell"
            )
        self._load(folder, folder, None)

    def take_all(self, path: str) -> None:
        """Take all plugin folders in a folder, which need not exist."""
        folder, inside = self._place(path)
        if inside is not None:
            self._several.append(inside)
            return
        if folder == amplifier_home() / "plugins":
            _require_all(folder)
        for entry in _plugins_in(folder):
            self._load(entry, entry, None)

    def take_claude_folder(self) -> None:
        """Take the project's own `.claude` folder."""
        self._single.append(_CLAUDE)

    def finish(self) -> FoundHooks:
        """Evaluate what the project brings, take what is trusted, and return everything."""
        decisions = self._evaluate()
        _require_guards(decisions)
        pending = tuple(decision for decision in decisions if not decision.trusted)
        contents = {
            name: content
            for decision in decisions
            if decision.trusted
            for name, content in decision.contents.items()
        }
        if contents:
            self._take_copies(contents)
        self.problems += [
            f"{loaded.label}: {problem}"
            for loaded in self.loaded
            for problem in loaded.plugin.problems
        ]
        return FoundHooks(
            loaded=tuple(self.loaded), pending=pending, problems=tuple(self.problems)
        )

    def _place(self, path: str) -> tuple[Path, str | None]:
        """Return a folder, and where it is in the project when it is the project's: by its path or where that leads."""
        whole = os.path.normpath(os.path.join(self.directory, os.path.expanduser(path)))
        home = os.path.normpath(amplifier_home())
        if _is_below(whole, home):
            return Path(whole), None
        for place in (whole, os.path.realpath(whole)):
            if _is_below(place, self.directory):
                return Path(whole), os.path.relpath(place, self.directory)
        return Path(whole), None

    def _evaluate(self) -> list[TrustDecision]:
        """Evaluate what the project brings, each kind by itself, as people are asked about it."""
        plugins = [
            path
            for path in dict.fromkeys((*self._single, *self._several))
            if path != _CLAUDE
        ]
        asked = {}
        if plugins:
            asked = {_KIND: plugins}
        if _CLAUDE in self._single:
            asked |= {kind: list(PROJECT_FILES[kind]) for kind in _KINDS}
        return [
            evaluate_project(TrustStore.in_home(), Path(self.directory), kind, items)
            for kind, items in asked.items()
        ]

    def _take_copies(self, contents: Mapping[str, bytes]) -> None:
        copy = Path(self.surroundings.scratch) / "project"
        copied = write_copies(copy, contents)
        for path in self._single:
            if (copy / path).is_dir():
                self._load(
                    copy / path,
                    Path(self.directory, path),
                    copied,
                    contents,
                    "project" if path == _CLAUDE else None,
                )
        for path in self._several:
            for entry in _plugins_in(copy / path):
                self._load(
                    entry, Path(self.directory, path, entry.name), copied, contents
                )

    def _own_root(self, folder: Path) -> Path:
        """Return the folder that a plugin of the person's runs from: a copy of what they agreed to, else itself.

        Raises:
            ModuleLoadError: it is not what they agreed to.
        """
        own = _agreed(folder)
        if own.contents is None:
            return folder
        # What runs may leave files beside it, and the next session would find it changed.
        copy = Path(self.surroundings.scratch) / "plugins" / folder.name
        if not copy.exists():
            write_copies(copy, own.contents)
        return copy

    def _load(
        self,
        root: Path,
        path: Path,
        copied: Mapping[str, str] | None,
        contents: Mapping[str, bytes] | None = None,
        name: str | None = None,
    ) -> None:
        if copied is None:
            root = self._own_root(root)
        try:
            plugin = read_plugin(root, name)
        except ConfigError as error:
            reason = f"{error.subject}: {error.in_one_line}".replace(
                str(root), str(path)
            )
            raise ModuleLoadError(NAME, reason) from error
        problems = tuple(
            problem.replace(str(plugin.root), str(path)) for problem in plugin.problems
        )
        plugin = attrs.evolve(plugin, problems=problems)
        if path.parent != amplifier_home() / "plugins" and any(server_documents(root)):
            reason = "its MCP servers are not started here; declare them for tool-mcp"
            plugin = attrs.evolve(plugin, problems=(*plugin.problems, reason))
        if any(plugin.root == loaded.plugin.root for loaded in self.loaded):
            return
        self.loaded.append(
            LoadedPlugin(
                plugin=plugin,
                path=path,
                is_own=copied is None,
                copied=copied or {},
                contents=contents or {},
            )
        )


def _require_guards(decisions: Sequence[TrustDecision]) -> None:
    """Refuse to go without hooks that a person trusted: a session would run unguarded, and they believe otherwise."""
    store = TrustStore.in_home()
    for decision in decisions:
        lost = ""
        if decision.kind in _GUARDS:
            lost = store.lost(decision)
        if lost:
            remedy = f"look at it and run 'amplifier trust', or 'amplifier trust revoke {decision.kind}'"
            raise ModuleLoadError(
                NAME, f"the {decision.kind} of {decision.folder}: {lost}; {remedy}"
            )


def _require_all(folder: Path) -> None:
    """Refuse to go without plugins that a person agreed to: one of them may be a guard.

    Raises:
        ModuleLoadError: one is gone, is no plugin any more, or what was agreed to cannot be read.
    """
    try:
        lost = lost_plugins()
    except (OSError, ValueError) as error:
        raise ModuleLoadError(
            NAME, f"what you agreed to cannot be read: {error}"
        ) from error
    if lost:
        problem = f"the plugin {lost[0]} is gone; run 'amplifier plugin remove {lost[0]}', or add it again"
        raise ModuleLoadError(NAME, problem)
    for entry in _folders_in(folder):
        # It is passed over by those who look for plugins, and may be what is left of one.
        if not is_plugin(entry):
            _agreed(entry)


def _agreed(folder: Path) -> OwnPlugin:
    """Return a plugin of the person's, and its files where it came from elsewhere.

    Raises:
        ModuleLoadError: it is not what the person agreed to, or that cannot be read.
    """
    try:
        own = evaluate_trust(folder)
    except (OSError, ValueError) as error:
        raise ModuleLoadError(
            NAME, f"what you agreed to cannot be read: {error}"
        ) from error
    if own.refusal:
        raise ModuleLoadError(NAME, f"the plugin {folder.name}: {own.refusal}")
    return own


def _plugins_in(folder: Path) -> Iterator[Path]:
    return filter(is_plugin, _folders_in(folder))


def _folders_in(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (
            entry
            for entry in sorted(folder.iterdir())
            if not entry.name.startswith(".") and entry.is_dir()
        )


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
