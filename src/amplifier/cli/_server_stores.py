"""What the commands of a server share: its stores, and what has to be installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from amplifier.cli._app_dirs import find_app_dirs, find_secrets
from amplifier.cli._options import OptionGroup, flag
from amplifier.cli._sessions import require_locks

if TYPE_CHECKING:
    from amplifier.server.stores import ServerStores

__all__ = ["require_server", "server_options", "stores_of"]

server_options: Final = OptionGroup(
    click.option(
        "--store",
        default="files",
        show_default=True,
        metavar="STORE",
        help="Where sessions, events and tokens stand: files, or a URL that several machines share.",
    ),
    click.option(
        "-P", "--profile", metavar="NAME", help="The profile of new sessions."
    ),
    click.option("-p", "--provider", metavar="ID", help="The provider module."),
    click.option("-m", "--model", metavar="NAME", help="The model to ask for."),
    click.option(
        "--plan",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A mount plan (YAML or JSON) instead of profile and settings.",
    ),
    click.option(
        "--backend",
        type=click.Choice(["asyncio", "trio"]),
        default="asyncio",
        show_default=True,
        help="The event loop; trio needs the extra amplifier[trio].",
    ),
    flag(
        "--json-logs",
        help="Write each record of the log as a JSON object on standard error, those of requests too.",
    ),
)
"""Adds where sessions stand, what new ones are made of, the event loop, and how the log is written."""


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
    require_server("anyio")
    require_locks()
    from amplifier.server.stores import ServerStores

    dirs = find_app_dirs()
    find_secrets().enter()
    return ServerStores(name, dirs)
