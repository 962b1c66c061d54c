"""`amplifier mcp add`, `list`, `show`, `tools`, `remove`: the MCP servers that sessions connect to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

import click

from amplifier.cli._app_dirs import find_app_dirs
from amplifier.cli._options import flag, made_of_options, scope_option, yes_option
from amplifier.cli._quiet import run_quietly
from amplifier.cli._tables import output_option, say_json, say_table
from amplifier.cli._terminal import notice, one_line, say, visible

if TYPE_CHECKING:
    from amplifier.app.mcp.look import ServersReport
    from amplifier.app.sessions.composition import Composition
    from amplifier_kit.mcp_servers import ShownServer

__all__ = ["COMMANDS"]

_SECONDS = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=15.0,
    show_default=True,
    help="Seconds that one server may take.",
)


@click.command("add")
@click.argument("name", required=False)
@click.argument("target", nargs=-1, metavar="[URL | -- COMMAND [ARGUMENT]...]")
@click.option(
    "--env",
    metavar="NAME[=VALUE]",
    multiple=True,
    help="A variable of the program; NAME alone passes the one of that name on.",
)
@click.option(
    "--header",
    "headers",
    metavar="'NAME: VALUE'",
    multiple=True,
    help="A header of each request to the URL.",
)
@scope_option
@flag("--force", help="Put it in place of one of its name.")
@yes_option
@click.pass_context
def _add(
    ctx: click.Context,
    name: str | None,
    target: Sequence[str],
    env: Sequence[str],
    headers: Sequence[str],
    scope: str,
    *,
    force: bool,
    yes: bool,
) -> None:
    """Let sessions connect to the MCP server NAME: a program, or a URL. Nothing is started now.

    Secrets are not written out: keep them with 'amplifier config secret set', and write '${VARIABLE}'. Without NAME,
    the servers that this folder's files declare are shown and offered.
    """
    if name is None:
        _offer(ctx, scope, yes=yes)
        return
    if not target:
        raise click.UsageError("a URL, or -- and the command of a program, is missing")
    from amplifier.app.mcp.entries import ServerEntry, add_server, unset_variables
    from amplifier.app.mcp.look import require_package

    require_package()
    dirs = find_app_dirs()
    config = ServerEntry(target=target, env=env, headers=headers).to_config()
    path = add_server(name, config, scope=scope, dirs=dirs, force=force)
    notice(f"New sessions have the MCP server {name}, by {path}")
    for variable in unset_variables(config, dirs):
        notice(f"{variable} is not set yet: amplifier config secret set {variable}")
    notice(f"Try it: amplifier mcp tools {name}")


@click.command("list")
@_SECONDS
@made_of_options
@output_option
@click.pass_context
def _list(ctx: click.Context, timeout: float, output: str) -> None:
    """List the MCP servers, whether each can be connected to, and why not.

    Each is started for a moment; one of a project's folder only once you trust it.
    """
    from amplifier.app.mcp.look import is_read

    composition = _composition(ctx)
    found = _look(ctx, composition, timeout)
    if output == "json":
        say_json([server.to_dict() for server in found.servers])
        return
    if not found.servers:
        notice("There is no MCP server; amplifier mcp add NAME -- COMMAND, or a URL")
        return
    rows = [
        (
            one_line(server.name, 60),
            server.state,
            str(len(server.tools)),
            _declared_by(server),
            one_line(server.place, 80),
        )
        for server in found.servers
    ]
    say_table(("SERVER", "STATE", "TOOLS", "DECLARED BY", "PLACE"), rows)
    for server in found.servers:
        if server.problem is not None:
            notice(f"{one_line(server.name, 60)}: {one_line(server.problem, 300)}")
    is_offered = any(server.declared_by == "project" for server in found.servers)
    if is_offered and (found.pending or not is_read(composition)):
        notice("What this folder's files declare is not used: amplifier mcp add")
    elif not is_read(composition):
        notice("Sessions do not connect to them: amplifier mcp add NAME …")


@click.command("show")
@click.argument("name")
@_SECONDS
@made_of_options
@output_option
@click.pass_context
def _show(ctx: click.Context, name: str, timeout: float, output: str) -> None:
    """Show the MCP server NAME: how it is reached, whether it can be, and its tools."""
    from amplifier_kit.open_data import as_object

    found = _look(ctx, _composition(ctx), timeout)
    server = found.require(name)
    if output == "json":
        say_json(server.to_dict())
        return
    say(f"{one_line(server.name, 60)}: {server.state}")
    if server.problem is not None:
        say(f"  {one_line(server.problem, 300)}")
    say(f"  declared by: {_declared_by(server)}")
    say(f"  {'url' if 'url' in server.written else 'command'}: {visible(server.place)}")
    for label in ("env", "headers"):
        for key, value in as_object(server.written.get(label)).items():
            say(f"  {label}: {one_line(key, 60)} = {one_line(str(value), 100)}")
    for tool, reason in server.held_back.items():
        say(f"  held back: {one_line(tool, 60)} ({one_line(reason, 200)})")
    _write_tools(found, [server])


@click.command("tools")
@click.argument("name", required=False)
@_SECONDS
@made_of_options
@output_option
@click.pass_context
def _tools(ctx: click.Context, name: str | None, timeout: float, output: str) -> None:
    """List the tools of the MCP server NAME, or of all, with what they do.

    What a server says of its own tools allows nothing, so that their effects are unknown, and calls are asked about.
    """
    found = _look(ctx, _composition(ctx), timeout)
    servers = found.servers if name is None else (found.require(name),)
    if output == "json":
        say_json(
            [
                {"server": server.name, **found.tools[tool].to_dict()}
                for server in servers
                for tool in server.tools
            ]
        )
        return
    _write_tools(found, servers)
    for server in servers:
        if server.problem is not None:
            notice(f"{one_line(server.name, 60)}: {one_line(server.problem, 300)}")
        elif not server.tools:
            notice(f"{one_line(server.name, 60)} offers no tool.")


@click.command("remove")
@click.argument("name")
@scope_option
def _remove(name: str, scope: str) -> None:
    """Take the MCP server NAME out of a scope's settings."""
    from amplifier.app.mcp.entries import remove_server

    path = remove_server(name, scope=scope, dirs=find_app_dirs())
    notice(f"New sessions are without the MCP server {name}, by {path}")


@click.command("login")
@click.argument("name")
@click.option(
    "--store-in",
    "stored_in",
    type=click.Choice(["keyring", "file"]),
    default="keyring",
    show_default=True,
    help="Where tokens are stored: the system's keyring, or a file that only you read.",
)
@_SECONDS
@made_of_options
@click.pass_context
def _login(
    ctx: click.Context, name: str, stored_in: Literal["keyring", "file"], timeout: float
) -> None:
    """Sign in to the MCP server NAME, in a browser of this machine (OAuth 2.1).

    What is granted is sent to this server alone, renewed when it ends, and in no settings and no log.
    """
    composition = _composition(ctx)

    async def sign_in() -> None:
        from amplifier.app.mcp.look import open_login

        async with open_login(composition, name, timeout) as login:
            await login.sign_in(_show_address, stored_in)

    run_quietly(ctx, sign_in)
    notice(f"You are signed in to {name}.")


@click.command("logout")
@click.argument("name")
@made_of_options
@click.pass_context
def _logout(ctx: click.Context, name: str) -> None:
    """Forget what the MCP server NAME granted to you."""
    composition = _composition(ctx)

    async def sign_out() -> bool:
        from amplifier.app.mcp.look import open_login

        async with open_login(composition, name, 1.0) as login:
            return await login.sign_out()

    if not run_quietly(ctx, sign_out):
        notice(f"You were not signed in to {name}.")
        ctx.exit(1)
    notice(f"You are signed out of {name}.")


COMMANDS = (_add, _list, _show, _tools, _login, _logout, _remove)
"""The commands about servers, for the group."""


async def _show_address(address: str) -> None:
    notice(f"Sign in at {visible(address)}")
    if sys.stdin.isatty():
        click.launch(address)


def _offer(ctx: click.Context, scope: str, *, yes: bool) -> None:
    """Show what the folder's files declare, and use it after a yes."""
    from amplifier.app.mcp.entries import mount_module
    from amplifier_kit.trust import TrustStore

    composition = _composition(ctx)
    found = _look(ctx, composition, 15.0)
    offered = [server for server in found.servers if server.declared_by == "project"]
    if not offered:
        raise click.UsageError(
            "NAME is missing: this folder's files (.mcp.json) declare no server to offer"
        )
    for server in offered:
        say(f"{one_line(server.name, 60)}: {visible(server.place)}")
    for decision in found.pending:
        for item, digest in sorted(decision.items.items()):
            if digest != "absent":
                notice(f"  reads or runs {one_line(item, 200)}")
    if not yes and not click.confirm(
        "Trust these servers as they are now, and let sessions connect to them?",
        default=False,
        err=True,
    ):
        notice("Nothing is changed.")
        ctx.exit(1)
    for decision in found.pending:
        TrustStore.in_home().grant(decision)
    path = mount_module(scope, find_app_dirs())
    notice(f"New sessions connect to what trusted folders declare, by {path}")


def _composition(ctx: click.Context) -> Composition:
    from amplifier.cli._session_selection import chosen_session

    return chosen_session(ctx, keep=False).composition


def _look(
    ctx: click.Context, composition: Composition, timeout: float
) -> ServersReport:
    from amplifier.app.mcp.look import look_at_servers

    return run_quietly(ctx, partial(look_at_servers, composition, timeout))


def _declared_by(server: ShownServer) -> str:
    return {
        "plan": "settings",
        "home": "mcp.json",
        "plugin": "a plugin",
        "project": "this folder",
    }[server.declared_by]


def _write_tools(found: ServersReport, servers: Sequence[ShownServer]) -> None:
    rows = [
        (
            one_line(server.name, 60),
            one_line(name, 64),
            found.tools[name].effects_text,
            one_line(found.tools[name].description.partition("\n")[2], 80),
        )
        for server in servers
        for name in server.tools
    ]
    if rows:
        say_table(("SERVER", "TOOL", "EFFECTS", "DESCRIPTION"), rows)
