"""`amplifier token`: who may call a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar

import click

from amplifier.cli._terminal import notice, one_line, say

if TYPE_CHECKING:
    from amplifier.server.roles import Role
    from amplifier.server.token_store import TokenStore

__all__ = ["token"]

T = TypeVar("T")

_DAY: Final = 86_400.0

_store_option = click.option(
    "--store",
    default="files",
    show_default=True,
    metavar="STORE",
    help="The store of the server: files, or a URL.",
)


@click.group()
def token() -> None:
    """Say who may call `amplifier serve`; a running server notices at once."""


@token.command("add")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["reader", "operator", "owner"]),
    default="operator",
    show_default=True,
    help="Who reads; who also runs turns and answers; who also deletes and audits.",
)
@click.option(
    "--tenant",
    default="default",
    show_default=True,
    help="Whose sessions it finds; tenants share nothing.",
)
@click.option(
    "--days",
    type=click.FloatRange(min=0, min_open=True, max=36_500),
    help="Days after which it lets nobody in any more. [default: never]",
)
@_store_option
def _add(name: str, role: Role, tenant: str, days: float | None, store: str) -> None:
    """Make a token for NAME; it goes to standard output this once, and is stored as a hash."""
    lasts = None if days is None else days * _DAY
    say(_with_tokens(store, lambda tokens: tokens.add(name, tenant, role, lasts=lasts)))
    notice(f"{one_line(name)} is {role} of tenant {one_line(tenant)}")


@token.command("list")
@_store_option
def _list(store: str) -> None:
    """List the tokens, without their secrets."""
    for each in _with_tokens(store, lambda tokens: tokens.load()):
        until = "" if each.expires is None else f"  until {_date(each.expires)}"
        say(f"{one_line(each.name)}  {each.role}  {each.tenant}{until}")


@token.command("remove")
@click.argument("name")
@_store_option
def _remove(name: str, store: str) -> None:
    """Let nobody in any more with the token of NAME."""
    _with_tokens(store, lambda tokens: tokens.remove(name))
    notice(f"{one_line(name)} may call no more")


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(" ", "minutes")


def _with_tokens(name: str, use: Callable[[TokenStore], Awaitable[T]]) -> T:
    import anyio

    from amplifier.cli._server_stores import stores_of

    stores = stores_of(name)

    async def used() -> T:
        from amplifier.server.token_store import TokenStore

        try:
            return await use(TokenStore(await stores.server()))
        finally:
            await stores.aclose()

    return anyio.run(used)
