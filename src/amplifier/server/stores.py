"""Where a server's sessions stand: a store for each tenant, and one for the server's tokens and its audit log."""

from __future__ import annotations

import re
from typing import Final

import attrs

from amplifier.app.directories import AppDirs
from amplifier.app.store.choice import FILES, open_named_store, served_files
from amplifier.app.store.file_store import FileSessionStore
from amplifier.app.store.store import ProjectSessions
from amplifier_kit.files.private_append import make_folders
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.stores import NamespacedStore, SessionStore

__all__ = ["DEFAULT_TENANT", "ServerStores", "Tenant", "check_tenant"]

DEFAULT_TENANT: Final = "default"
"""The tenant whose sessions work in the folder in which the server was started."""

# no tenant can be called like it, so that none reads the tokens
_SERVER: Final = "_server"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


@attrs.frozen(eq=False)
class Tenant:
    """Who shares nothing with the others.

    Args:
        name: its name.
        dirs: where its sessions work; no two tenants work in one folder.
        store: what any server process reads of its sessions.
    """

    name: str
    dirs: AppDirs
    store: SessionStore

    @property
    def files(self) -> ProjectSessions:
        """The sessions themselves, as every command has them."""
        return ProjectSessions.of(self.dirs)


@attrs.define(eq=False)
class ServerStores:
    """The stores of a server, each opened when it is first needed.

    Args:
        name: `files`, or the URL of a store that several machines share.
        dirs: of the folder in which the server was started.
    """

    name: str
    dirs: AppDirs
    _tenants: dict[str, Tenant] = attrs.field(factory=dict)
    _server: SessionStore | None = None

    async def server(self) -> SessionStore:
        """Return the server's own store.

        Raises:
            StoreError: it cannot be opened.
        """
        if self._server is None:
            self._server = await self._open(_SERVER, self.dirs)
        return self._server

    async def tenant(self, name: str) -> Tenant:
        """Return a tenant.

        Raises:
            ConfigError: none is called so; the name may come from what an engine stored.
            StoreError: its store cannot be opened.
        """
        found = self._tenants.get(name)
        if found is None:
            check_tenant(name)
            dirs = self._places_of(name)
            store = await self._open(name, dirs)
            found = self._tenants.setdefault(name, Tenant(name, dirs, store))
            if found.store is not store:  # somebody else was faster
                await store.aclose()
        return found

    async def aclose(self) -> None:
        """Close them all."""
        opened = [tenant.store for tenant in self._tenants.values()]
        if self._server is not None:
            opened.append(self._server)
        self._tenants.clear()
        self._server = None
        for store in opened:
            await store.aclose()

    def _places_of(self, name: str) -> AppDirs:
        if name == DEFAULT_TENANT:
            return self.dirs
        # beside the default tenant's folder: below it, that one would read the others' files
        served = self.dirs.working_dir
        folder = served.with_name(f"{served.name}-tenants") / name
        make_folders(folder)
        # its own root: a repository around it would make all tenants one project
        return attrs.evolve(self.dirs, working_dir=folder, root=folder)

    async def _open(self, namespace: str, dirs: AppDirs) -> SessionStore:
        if self.name == FILES:
            return FileSessionStore(served_files(self.dirs, namespace))
        if namespace != _SERVER:
            server = await self.server()
            # connections are few, and tenants may be many
            if isinstance(server, NamespacedStore):
                return server.in_namespace(namespace)
        return await open_named_store(self.name, dirs, namespace=namespace)


def check_tenant(name: str, *, place: str = "tenant", subject: str = "token") -> None:
    """Refuse what no tenant is called.

    Args:
        name: what a tenant shall be called.
        place: where the name stands, for the message.
        subject: what it stands in, likewise.

    Raises:
        ConfigError: the name is none.
    """
    if not _NAME.fullmatch(name):
        problem = "expected lower-case letters, digits and hyphens, at most 63; got "
        raise ConfigError.of(place, f"{problem}{name!r:.80}", subject=subject)
