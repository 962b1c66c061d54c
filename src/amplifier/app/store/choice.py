"""Where a person wants their sessions: in the files of the project, or in a store of several machines."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from importlib.metadata import entry_points
from typing import Final

import attrs

from amplifier.app.directories import AppDirs
from amplifier.app.settings.settings import Settings, load_settings
from amplifier.app.store.file_store import FileSessionStore
from amplifier.app.store.migration import Migration, migrate_sessions
from amplifier.app.store.shared import SharedSessions
from amplifier.app.store.store import ProjectSessions
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.stores import SessionStore, StoreOpener

__all__ = [
    "FILES",
    "FILES_OF_PROJECT",
    "GROUP",
    "StoreChoice",
    "migrate_named",
    "open_named_store",
    "served_files",
]

_KEY: Final = ("sessions", "store")

FILES: Final = "files"
"""The name of the store of the project's files."""

GROUP: Final = "amplifier.stores"
"""The group of entry points of stores: by the scheme of their URLs, a function that opens one."""


def served_files(dirs: AppDirs, namespace: str = "default") -> ProjectSessions:
    """Return where a server of a folder has what it stores of the sessions of a tenant, where that is in files."""
    return ProjectSessions(dirs.state / "served" / namespace)


async def migrate_named(
    dirs: AppDirs, *, source: str, target: str, only: Sequence[str], namespace: str
) -> Migration:
    """Move sessions from one store that a person named to another one.

    Args:
        dirs: the project whose files are meant.
        source: where they are.
        target: where they shall be.
        only: the ids of those that are moved; empty for all.
        namespace: whose sessions they are in a store that many share.

    Raises:
        ConfigError: both are the same, or no installed module knows such a store.
        StoreError: a store refuses.
        OSError: the system refuses.
    """
    if source == target:
        raise ConfigError.of("--to-store", "both stores are the same", subject="move")
    async with AsyncExitStack() as stack:
        opened = await open_named_store(source, dirs, namespace=namespace)
        stack.push_async_callback(opened.aclose)
        goal = await open_named_store(target, dirs, namespace=namespace)
        stack.push_async_callback(goal.aclose)
        return await migrate_sessions(opened, goal, only)


async def open_named_store(name: str, dirs: AppDirs, *, namespace: str) -> SessionStore:
    """Open a store; whoever opened it closes it.

    Args:
        name: `files`, or a URL.
        dirs: the project whose files are meant.
        namespace: whose sessions are meant in a store that many share.

    Raises:
        ConfigError: no installed module knows such a store.
        StoreError: the store refuses.
    """
    if name == FILES:
        return FileSessionStore(ProjectSessions.of(dirs))
    scheme, separator, _ = name.partition("://")
    for point in entry_points(group=GROUP, name=scheme):
        if separator:
            opener: StoreOpener = point.load()
            return await opener(name, namespace=namespace)
    known = sorted({f"{point.name}://…" for point in entry_points(group=GROUP)})
    problem = f"no store; known: {', '.join([FILES, *known])}"
    if scheme in ("postgres", "postgresql"):
        problem += ". Install amplifier-module-store-postgres"
    # a URL may hold a password
    raise ConfigError.of(scheme, problem, subject="choice of a store")


@attrs.frozen(kw_only=True)
class StoreChoice:
    """What a person said of where sessions stand.

    Args:
        store: `files`, or a URL; `None` leaves it to the settings.
        namespace: whose sessions are meant in a store that many share; default as in the settings, or the name of the
            project's folder.
    """

    store: str | None = None
    namespace: str | None = None

    def sessions(self, dirs: AppDirs) -> ProjectSessions:
        """Return the sessions as every command uses them.

        Raises:
            ConfigError: the settings have problems.
        """
        settings = load_settings(dirs)
        name = self._name(settings)
        if name == FILES:
            return ProjectSessions.of(dirs)
        namespace = self._namespace(settings, dirs)
        return SharedSessions.of_store(
            partial(open_named_store, name, dirs, namespace=namespace),
            dirs.state / "sessions",
        )

    async def opened(self, dirs: AppDirs) -> SessionStore:
        """Open the store; whoever opened it closes it.

        Raises:
            ConfigError: the settings have problems, or no installed module knows such a store.
            StoreError: the store refuses.
        """
        settings = load_settings(dirs)
        namespace = self._namespace(settings, dirs)
        return await open_named_store(self._name(settings), dirs, namespace=namespace)

    def _name(self, settings: Settings) -> str:
        if self.store is not None:
            return self.store
        if settings.read().sessions.store == FILES:
            return FILES
        # a reference may stand there for the whole URL
        return settings.source(_KEY)[0]

    def _namespace(self, settings: Settings, dirs: AppDirs) -> str:
        return self.namespace or settings.read().sessions.namespace or dirs.root.name


FILES_OF_PROJECT: Final = StoreChoice(store=FILES)
"""The files of the project, whatever the settings say."""
