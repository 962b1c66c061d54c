"""Adding, updating and removing plugins: nothing of one is in its place before a person agreed to what it may do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self, TypeAlias

import attrs

from amplifier.app.directories import AppDirs
from amplifier.app.fetched.lock import FetchedEntry, FetchedLock
from amplifier.app.fetched.swap import FetchedFolders
from amplifier.app.plans.base_plans import installed_modules
from amplifier.app.plugins.abilities import Ability, abilities_of, modules_for
from amplifier.app.plugins.addresses import read_address
from amplifier.app.plugins.layout import plugin_name
from amplifier.app.plugins.staged import StagedPlugin, stage_plugins
from amplifier.app.settings.changes import revise
from amplifier.app.settings.layers import Key, find_module
from amplifier.app.sources.git import Git
from amplifier.app.sources.locations import canonical_name
from amplifier_kit.claude_plugins import evaluate_trust, lost_plugins, read_plugin
from amplifier_kit.installation import install_command
from amplifier_kit.open_data import as_list, as_object
from amplifier_kit.trust import TrustStore
from amplifier_sdk.errors import AmplifierError, ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["PluginChange", "PluginConsent", "PluginInstaller"]

_SECTIONS: Final = {"hooks": "hooks", "tool": "tools"}
_TEXTS: Final = (".md", ".txt")
_EXTRA: Final = {"tool-mcp": "amplifier[mcp]"}


@attrs.frozen(kw_only=True)
class PluginChange:
    """What would become of a plugin.

    Args:
        staged: the plugin as its source has it now.
        before: what was installed; `None` where nothing was.
        abilities_before: what that may do.
        changed: the names of the files that differ, new and missing ones too.
        refusal: why what is there is not what was agreed to.
    """

    staged: StagedPlugin
    before: FetchedEntry | None = None
    abilities_before: tuple[Ability, ...] = ()
    changed: tuple[str, ...] = ()
    refusal: str = ""

    @property
    def name(self) -> str:
        """The plugin."""
        return self.staged.name

    @property
    def is_changed(self) -> bool:
        """Whether anything differs from what was agreed to."""
        return self.before is None or bool(self.changed) or bool(self.refusal)

    @property
    def gained(self) -> tuple[Ability, ...]:
        """What it may do that it could not."""
        known = set(self.abilities_before)
        return tuple(each for each in self.staged.abilities if each not in known)

    @property
    def lost(self) -> tuple[Ability, ...]:
        """What it could do and no longer may."""
        known = set(self.staged.abilities)
        return tuple(each for each in self.abilities_before if each not in known)


PluginConsent: TypeAlias = Callable[[Sequence[PluginChange]], bool]
"""Returns whether plugins may do what they say; it is asked once, and not where nothing changed."""


@attrs.define(eq=False, kw_only=True)
class PluginInstaller:
    """Changes the plugins of the person's own folder. Its functions block.

    Args:
        dirs: where files stand.
        lock: what is installed.
        git: fetches repositories.
        store: what the person agreed to.
    """

    dirs: AppDirs
    lock: FetchedLock
    git: Git
    store: TrustStore

    @classmethod
    def of(cls, dirs: AppDirs, *, offline: bool = False) -> Self:
        """Make the one of the person's own folder.

        Args:
            dirs: where files stand.
            offline: whether nothing may be fetched; default what `AMPLIFIER_OFFLINE` says.
        """
        return cls(
            dirs=dirs,
            lock=FetchedLock(dirs.home, "plugins"),
            git=Git(offline=offline),
            store=TrustStore.in_home(),
        )

    @contextmanager
    def look(
        self, source: str, names: Sequence[str] = ()
    ) -> Iterator[list[PluginChange]]:
        """Yield what plugins would be, without adding them; what was fetched is gone after the block.

        Raises:
            FetchError: they cannot be fetched.
            ConfigError: there is no plugin there, or it holds what is refused.
            OSError: it cannot be read or written.
        """
        with FetchedFolders(self.lock).changing() as waiting:
            yield self._staged(source, names, waiting)

    def add(
        self,
        source: str,
        names: Sequence[str],
        agree: PluginConsent,
        *,
        force: bool = False,
    ) -> list[PluginChange]:
        """Add plugins, once a person agreed to what they may do.

        Args:
            source: `OWNER/REPO`, a path, an address, or a repository.
            names: which of a marketplace's.
            agree: shows what they may do, and asks.
            force: put them in place of those of their names.

        Raises:
            FetchError: they cannot be fetched.
            ConfigError: there is no plugin there, or its name is taken.
            AmplifierError: nobody agreed, or a module that they need is not installed; nothing has changed.
            OSError: it cannot be written; nothing has changed.
        """
        with self.look(source, names) as changes:
            for change in changes:
                if not force:
                    self._require_free(change)
                _require_modules(change.staged.abilities)
            self._put(changes, agree)
        return changes

    def update(
        self,
        names: Sequence[str],
        agree: PluginConsent,
        *,
        dry_run: bool = False,
    ) -> list[PluginChange]:
        """Bring plugins to what their sources are now, once a person agreed to what is different.

        Args:
            names: which; default all that are installed.
            agree: shows what is different, and asks.
            dry_run: change nothing, and ask nothing.

        Raises:
            FetchError: one cannot be fetched.
            ConfigError: one is not installed, or is no plugin any more; nothing has changed.
            AmplifierError: nobody agreed, or a module that they need is not installed; nothing has changed.
            OSError: it cannot be written; nothing has changed.
        """
        wanted = self.lock.chosen(names)
        if not wanted:
            return []
        with FetchedFolders(self.lock).changing() as waiting:
            changes = []
            for index, entry in enumerate(wanted):
                folder = waiting / str(index)
                folder.mkdir()
                changes += self._staged(entry.source, [entry.name], folder)
            changed = [change for change in changes if change.is_changed]
            if changed and not dry_run:
                for change in changed:
                    _require_modules(change.staged.abilities)
                self._put(changed, agree)
            return changes

    def remove(self, name: str) -> Path:
        """Remove a plugin that was added, and what was agreed to of it; return the folder that it was in.

        Raises:
            ConfigError: it was not added.
            OSError: it cannot be removed.
        """
        folder = FetchedFolders(self.lock).folder / canonical_name(name)
        if canonical_name(name) not in lost_plugins():
            self.lock.require(name)
        with FetchedFolders(self.lock).changing():
            FetchedFolders(self.lock).drop(folder.name)
            self.store.revoke(folder, "plugins")
        return folder

    def _staged(
        self, source: str, names: Sequence[str], waiting: Path
    ) -> list[PluginChange]:
        location = read_address(source, self.dirs.working_dir)
        staged = stage_plugins(
            location,
            list(dict.fromkeys(map(plugin_name, names))),
            waiting,
            source=str(location),
            git=self.git,
        )
        locked = self.lock.read()
        return [self._change(each, locked.get(each.name)) for each in staged]

    def _change(
        self, staged: StagedPlugin, before: FetchedEntry | None
    ) -> PluginChange:
        folder = FetchedFolders(self.lock).folder / staged.name
        if before is None or not folder.is_dir():
            gone = "its folder is gone" if before else ""
            return PluginChange(staged=staged, before=before, refusal=gone)
        grant = self.store.of_folder(folder).get("plugins")
        agreed = {} if grant is None else dict(grant.items)
        now = dict(staged.decision.items)
        changed = [
            each
            for each in sorted({*agreed, *now})
            if agreed.get(each) != now.get(each) and not each.endswith("/")
        ]
        refusal = ""
        if evaluate_trust(folder).refusal:
            refusal = "its files are not the ones that you agreed to"
        return PluginChange(
            staged=staged,
            before=before,
            abilities_before=() if refusal else _abilities(folder),
            # what may run comes before texts, so that no list of them hides it
            changed=tuple(sorted(changed, key=lambda each: each.endswith(_TEXTS))),
            refusal=refusal or ("" if grant else "nobody agreed to it"),
        )

    def _require_free(self, change: PluginChange) -> None:
        folders = FetchedFolders(self.lock)
        if change.before is not None or os.path.lexists(folders.folder / change.name):
            raise folders.taken(change.name, change.before)

    def _put(self, changes: Sequence[PluginChange], agree: PluginConsent) -> None:
        if not agree(changes):
            raise AmplifierError("Nobody agreed, and nothing was changed")
        folders = FetchedFolders(self.lock)
        # Before the folders are there: where the program is killed on the way, a plugin is refused, and neither
        # unguarded nor without effect.
        self._mount([each.staged.abilities for each in changes])
        with self._granted(changes):
            folders.put(
                {change.name: change.staged.root for change in changes},
                {change.name: change.staged.noted() for change in changes},
            )

    @contextmanager
    def _granted(self, changes: Sequence[PluginChange]) -> Iterator[None]:
        """Note what a person agreed to; where the block fails, what was noted before is noted again."""
        folder = FetchedFolders(self.lock).folder
        home = os.path.realpath(folder)
        agreed = [
            attrs.evolve(change.staged.decision, folder=os.path.join(home, change.name))
            for change in changes
        ]
        before = [
            self.store.of_folder(folder / change.name).get("plugins")
            for change in changes
        ]
        try:
            for decision in agreed:
                # As it was shown, and not as it is by now.
                self.store.grant(decision)
            yield
        except (OSError, AmplifierError):
            for decision, grant in zip(agreed, before, strict=True):
                if grant is None:
                    self.store.revoke(Path(decision.folder), "plugins")
                else:
                    self.store.grant(attrs.evolve(decision, items=dict(grant.items)))
            raise

    def _mount(self, abilities: Sequence[Sequence[Ability]]) -> None:
        """Let every new session have the modules that plugins need."""
        needed = dict.fromkeys(name for each in abilities for name in modules_for(each))

        def mounted(values: JSONObject) -> Iterator[tuple[Key, JSONValue]]:
            modules = as_object(values.get("modules"))
            added: dict[str, int] = {}
            for module in needed:
                section = _SECTIONS[module.partition("-")[0]]
                listed = as_list(modules.get(section))
                if find_module(listed, module) == len(listed):
                    index = len(listed) + added.get(section, 0)
                    added[section] = added.get(section, 0) + 1
                    yield ("modules", section, index), {"module": module}

        if needed:
            revise("user", mounted, self.dirs)


def _require_modules(abilities: Sequence[Ability]) -> None:
    """Refuse a plugin that would have no effect.

    Raises:
        AmplifierError: a module is missing; names the command that installs it.
    """
    known = installed_modules()
    missing = [module for module in modules_for(abilities) if module not in known]
    if missing:
        packages = (_EXTRA.get(name, f"amplifier-module-{name}") for name in missing)
        command = install_command(*packages)
        raise AmplifierError(
            f"The plugin needs {', '.join(missing)}; install with: {command}"
        )


def _abilities(folder: Path) -> tuple[Ability, ...]:
    try:
        return abilities_of(read_plugin(folder))
    except (ConfigError, OSError):
        return ()
