"""Where a person wants their sessions: in the files of the project, or in a store of several machines."""

from __future__ import annotations

from functools import partial
from typing import Final

import attrs

from amplifier.app.directories import Places
from amplifier.app.settings.settings import Settings, load_settings
from amplifier.app.store.openers import FILES, open_named_store
from amplifier.app.store.shared import SharedSessions
from amplifier.app.store.store import SessionStore
from amplifier_sdk.stores import SessionStore as OpenStore

__all__ = ["FILES_OF_PROJECT", "StoreChoice"]

_KEY: Final = ("sessions", "store")


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

    def sessions(self, places: Places) -> SessionStore:
        """Return the sessions as every command uses them.

        Raises:
            ConfigError: the settings have problems.
        """
        settings = load_settings(places)
        name = self._name(settings)
        if name == FILES:
            return SessionStore.of(places)
        namespace = self._namespace(settings, places)
        return SharedSessions.of_store(
            partial(open_named_store, name, places, namespace=namespace),
            places.state / "sessions",
        )

    async def opened(self, places: Places) -> OpenStore:
        """Open the store; whoever opened it closes it.

        Raises:
            ConfigError: the settings have problems, or no installed module knows such a store.
            StoreError: the store refuses.
        """
        settings = load_settings(places)
        namespace = self._namespace(settings, places)
        return await open_named_store(self._name(settings), places, namespace=namespace)

    def _name(self, settings: Settings) -> str:
        if self.store is not None:
            return self.store
        if settings.read().sessions.store == FILES:
            return FILES
        # a reference may stand there for the whole URL
        return settings.source(_KEY)[0]

    def _namespace(self, settings: Settings, places: Places) -> str:
        return self.namespace or settings.read().sessions.namespace or places.root.name


FILES_OF_PROJECT: Final = StoreChoice(store=FILES)
"""The files of the project, whatever the settings say."""
