"""What the commands of a server share: its stores, and what has to be installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from amplifier.cli._sessions import require_locks

if TYPE_CHECKING:
    from amplifier.server.stores import ServerStores

__all__ = ["require_server", "stores_of"]


def require_server(backend: str) -> None:
    """Refuse to serve where a package is missing.

    Raises:
        click.ClickException: names the extra.
    """
    for name, extra in (
        ("hypercorn", "server"),
        ("starlette", "server"),
        (backend, backend),
    ):
        if find_spec(name) is None:
            # wrong usage alone names it
            from amplifier_kit.installation import install_command

            raise click.ClickException(
                f"To serve sessions, {name} is needed: {install_command(f'amplifier[{extra}]')}"
            )


def stores_of(name: str) -> ServerStores:
    """Return the stores of a server in this folder; the person's secrets are in the environment afterwards.

    Raises:
        click.ClickException: a package is missing.
    """
    # with the runtime: help and wrong usage need none
    from amplifier.app.directories import Places
    from amplifier.app.settings.secrets import SecretStore

    require_server("anyio")
    require_locks()
    from amplifier.server.stores import ServerStores

    places = Places.find()
    SecretStore.of(places).enter()
    return ServerStores(name, places)
