"""Bringing plugins from where they come from into folders beside those that are used, and what they may do there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import attrs

from amplifier.app.fetched.bring import bring
from amplifier.app.fetched.lock import FetchedEntry
from amplifier.app.plugins.abilities import (
    Ability,
    abilities_of,
    unsupported_parts,
)
from amplifier.app.plugins.layout import lay_out, name_of
from amplifier.app.plugins.marketplaces import SeveralPluginsError, read_marketplace
from amplifier.app.sources.git import Git
from amplifier.app.sources.locations import (
    ArchiveLocation,
    GitLocation,
    Location,
    PathLocation,
)
from amplifier.app.sources.trees import copy_tree, hash_tree
from amplifier_kit.claude_plugins import ClaudePlugin, evaluate_plugin, read_plugin
from amplifier_kit.trust import TrustDecision, TrustStore
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["StagedPlugin", "stage_plugins"]


@attrs.frozen(kw_only=True)
class StagedPlugin:
    """A plugin that is ready to be used, and that nobody agreed to yet.

    Args:
        name: what it is called by.
        root: the folder in which it waits.
        source: from where it comes, as it is noted.
        repository: where it is, for a marketplace's that has one of its own.
        commit: of a repository.
        hash: the digest of its files.
        plugin: what was read of it.
        abilities: what it may do.
        unsupported: what it has that takes no effect here.
        decision: every file of it, as the trust store notes them.
    """

    name: str
    root: Path
    source: str
    repository: str | None
    commit: str | None
    hash: str
    plugin: ClaudePlugin
    abilities: tuple[Ability, ...]
    unsupported: tuple[str, ...]
    decision: TrustDecision = attrs.field(repr=False)

    def noted(self) -> FetchedEntry:
        """Return what the lock file says of it once it is in its place."""
        return FetchedEntry(
            name=self.name,
            source=self.source,
            commit=self.commit,
            version=self.plugin.version,
            path=f"plugins/{self.name}",
            hash=self.hash,
        )


def stage_plugins(
    location: Location | ArchiveLocation,
    names: Sequence[str],
    folder: Path,
    *,
    source: str,
    git: Git,
) -> list[StagedPlugin]:
    """Bring plugins into a folder, and read what they may do; nothing of them runs. The function blocks.

    Args:
        location: a plugin, a marketplace, or a folder of skills.
        names: which of a marketplace's; with none, its only one.
        folder: where they wait; it is there, and empty.
        source: from where they come, as it is noted.
        git: fetches repositories, and knows whether anything may be fetched.

    Raises:
        FetchError: it cannot be fetched.
        ConfigError: it is no plugin, holds what is refused, or is a marketplace with several and none is named.
        OSError: it cannot be read or written.
    """
    tree = folder / "source"
    commit = bring(location, tree, source=source, git=git)
    hash_tree(tree)  # first of all, since it refuses links that lead out
    market = read_marketplace(tree)
    if market is None:
        name = name_of(tree, _last_part(location))
        if [name] != (list(names) or [name]):
            _refuse(source, f"it is the plugin {name}, and no marketplace")
        return [_stage(tree, name, {}, source, commit=commit)]
    if not names and len(market.plugins) > 1:
        raise SeveralPluginsError(source, market.plugins)
    is_git = not isinstance(location, PathLocation)
    is_local = not is_git or str(location).startswith("git+file:")
    staged = []
    for name in names or [market.plugins[0].name]:
        offered = market.offered(name)
        found = market.locate(offered, is_local=is_local)
        place, repository = folder / f"plugin-{offered.name}", None
        if isinstance(found, PathLocation):
            copy_tree(found.path, place)
        else:
            repository = str(found)
            commit = bring(found, place, source=repository, git=git)
        staged.append(
            _stage(
                place,
                offered.name,
                offered.entry,
                source,
                repository=repository,
                commit=commit,
            )
        )
    return staged


def _stage(
    root: Path,
    name: str,
    entry: Mapping[str, JSONValue],
    source: str,
    *,
    repository: str | None = None,
    commit: str | None,
) -> StagedPlugin:
    _refuse_links(root, name)
    lay_out(root, name, entry)
    try:
        plugin = read_plugin(root)
        abilities = abilities_of(plugin)
    except ConfigError as error:
        problems = [
            Problem(each.path, each.message.replace(f"{root}/", ""))
            for each in error.problems
        ]
        subject = error.subject.replace(f"{root}/", "")
        raise ConfigError(problems, subject=f"plugin {name!r}, {subject}") from error
    decision = evaluate_plugin(root, TrustStore.in_home())
    if not decision.can_be_trusted:
        _refuse(name, decision.reason)
    return StagedPlugin(
        name=name,
        root=root,
        source=source,
        repository=repository,
        commit=commit,
        hash=hash_tree(root),
        plugin=plugin,
        abilities=abilities,
        unsupported=unsupported_parts(root),
        decision=decision,
    )


def _refuse_links(root: Path, name: str) -> None:
    """Refuse links before anything is written: one might lead what is written elsewhere."""
    for path in (root, *root.rglob("*")):
        if path.is_symlink():
            relative = str(path.relative_to(root))
            _refuse(name, f"{relative!a} is a link; a plugin has the file itself there")


def _last_part(location: Location | ArchiveLocation) -> str:
    """Return the name that a source has by itself: that of its folder, its repository or its archive."""
    match location:
        case PathLocation():
            text = location.path.absolute().name
        case GitLocation():
            text = location.subdirectory or location.url
        case _:
            text = str(location)
    name = text.rstrip("/").rpartition("/")[2]
    for end in (".git", ".tar.gz", ".tgz", ".zip"):
        name = name.removesuffix(end)
    return name


def _refuse(subject: str, problem: str) -> NoReturn:
    raise ConfigError.of(subject, problem, subject="choice of plugins")
