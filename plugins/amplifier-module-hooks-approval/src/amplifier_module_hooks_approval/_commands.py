"""The command `/permissions`: lists permissions and revokes them."""

from __future__ import annotations

import time
from functools import partial

from amplifier_kit.commands import CommandAnswer, CommandError, SessionCommand
from amplifier_kit.rules.permissions import PermissionRule, Permissions
from amplifier_kit.terminal import one_line

__all__ = ["commands_of"]


def commands_of(permissions: Permissions) -> list[SessionCommand]:
    """Make the commands of a session."""
    return [
        SessionCommand(
            name="permissions",
            make=partial(_act, permissions),
            description="List what you allowed for longer than one call, or take it back.",
            argument_hint="[revoke ID|all]",
            source="hooks-approval",
        )
    ]


async def _act(permissions: Permissions, typed: str) -> CommandAnswer:
    """List the permissions, or take back those that are named."""
    words = typed.split()
    try:
        held = await permissions.list()
        if not words:
            return CommandAnswer(
                text="\n".join(map(_line, held))
                or "Nothing is allowed for longer than one call."
            )
        if words[0] != "revoke" or len(words) != 2:
            raise CommandError("write /permissions, or /permissions revoke ID")
        named = [
            each for each in held if words[1] == "all" or each.id.startswith(words[1])
        ]
        if words[1] != "all" and len(named) != 1:
            raise CommandError(
                f"{len(named)} permissions begin with {words[1]!r}; /permissions lists them"
            )
        for permission in named:
            await permissions.revoke(permission.id)
    except OSError as error:
        raise CommandError(str(error)) from error
    return CommandAnswer(
        text=f"Taken back: {len(named)}. What they allowed is asked about again."
    )


def _line(permission: PermissionRule) -> str:
    until = ""
    if permission.expires is not None:
        until = (
            f", until {time.strftime('%Y-%m-%d', time.localtime(permission.expires))}"
        )
    where = ""
    if permission.scope == "project":
        where = f" {permission.folder}"
    what = one_line(permission.action, 120)
    return f"{permission.id[:12]}  {permission.scope}{where}{until}  {permission.tool_name}: {what}"
