"""`amplifier permissions`: what was allowed for longer than one session, and taking it back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs
import click

from amplifier.cli._options import flag
from amplifier.cli._tables import output_option, say_json, say_table
from amplifier.cli._terminal import notice, one_line

if TYPE_CHECKING:
    from amplifier_kit.rules.permissions import PermissionRule, Permissions

__all__ = ["permissions"]

_SHOWN: Final = 12


@click.group(invoke_without_command=True)
@click.pass_context
def permissions(ctx: click.Context) -> None:
    """Look at what you allowed for projects and everywhere, and take it back.

    Without a command it is listed. What is allowed for one session is listed by /permissions in its chat.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(_list, output="text")


@permissions.command("list")
@output_option
def _list(output: str) -> None:
    """List what is allowed, the oldest first."""
    found = _held()
    if output == "json":
        say_json([attrs.asdict(permission) for permission in found])
        return
    empty = "Nothing is allowed for longer than one session."
    heads = ("ID", "UNTIL", "WHERE", "TOOL", "WHAT")
    say_table(heads, map(_row, found), empty=empty)


@permissions.command("revoke")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@flag("--all", "everything", help="Take back everything.")
def _revoke(ids: tuple[str, ...], everything: bool) -> None:
    """Take back what is allowed under an ID, or the beginning of one; it is asked about again."""
    import anyio  # with the runtime: help and wrong usage need none

    if everything is bool(ids):
        raise click.UsageError(
            "name IDs that 'amplifier permissions list' shows, or give --all"
        )
    held = _held()
    if everything:
        chosen = held
    else:
        chosen = [_find(held, id) for id in ids]
    for permission in chosen:
        anyio.run(_store().revoke, permission.id)
        notice(f"taken back: {one_line(permission.action)}")


def _held() -> Sequence[PermissionRule]:
    import anyio

    return anyio.run(_store().list)


def _store() -> Permissions:
    from amplifier.cli._sessions import require_locks
    from amplifier_kit.rules.permissions import Permissions

    require_locks()
    return Permissions.in_home()


def _find(held: Sequence[PermissionRule], id: str) -> PermissionRule:
    found = [permission for permission in held if permission.id.startswith(id)]
    if len(found) == 1:
        return found[0]
    if found:
        problem = f"{len(found)} IDs begin with"
    else:
        problem = "nothing is allowed under"
    raise click.ClickException(
        f"{problem} {id!r}; 'amplifier permissions list' shows the IDs"
    )


def _row(permission: PermissionRule) -> tuple[str, ...]:
    if permission.expires is None:
        until = ""
    else:
        until = time.strftime("%Y-%m-%d", time.localtime(permission.expires))
    where = one_line(permission.folder) or "everywhere"
    return (
        permission.id[:_SHOWN],
        until,
        where,
        one_line(permission.tool_name),
        one_line(permission.action, 100),
    )
