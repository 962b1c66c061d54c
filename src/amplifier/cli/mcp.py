"""`amplifier mcp`: the Model Context Protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from amplifier.cli._mcp_servers import COMMANDS
from amplifier.cli._options import flag, serving_options, session_choices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplifier.app.sessions.selection import SelectedSession
    from amplifier.cli._interrupts import Interrupts

__all__ = ["mcp", "serve"]


@click.group()
def mcp() -> None:
    """Connect sessions to MCP servers, and serve them as one.

    A session has the tools of the servers that settings, profiles and trusted folders declare.
    """


for _command in COMMANDS:
    mcp.add_command(_command)


@mcp.command()
@click.option(
    "--tool",
    "tools",
    metavar="NAME",
    multiple=True,
    help="A tool to serve; may be given several times.",
)
@flag(
    "--http",
    help="Serve over HTTP at 127.0.0.1, to those who have the token AMPLIFIER_MCP_TOKEN.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8001,
    show_default=True,
    help="The port of --http; 0 takes a free one.",
)
@serving_options
@click.pass_context
def serve(ctx: click.Context, tools: tuple[str, ...], port: int, *, http: bool) -> None:
    """Serve tools, agents, commands and stored sessions to an MCP client over standard input and output, or HTTP.

    A tool that does more than read is offered only to a client that can ask the person (elicitation). Standard output
    carries the protocol alone; the log goes to standard error.
    """
    choices = session_choices(ctx)
    if choices.yes:
        raise click.UsageError("--yes: another agent calls; use --accept-edits")
    from functools import partial
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        # wrong usage alone names it
        from amplifier_kit.installation import install_command

        raise click.ClickException(
            f"mcp serve needs a package: {install_command('amplifier[mcp]')}"
        )
    from amplifier.cli._interrupts import run_interruptible
    from amplifier.cli._session_selection import chosen_session

    selected = chosen_session(ctx, keep=choices.keep)
    accepted = choices.consent.accepted
    if http:
        from amplifier.cli._mcp_http import serve_http

        serve_http(selected, tools, accepted, port, choices.backend)
        return
    run_interruptible(partial(_serve, selected, tools, accepted), choices.backend)


async def _serve(
    selected: SelectedSession,
    tools: Sequence[str],
    accepted: frozenset[str],
    _: Interrupts,
) -> None:
    from amplifier.cli._session_selection import report_opening
    from amplifier.mcp_server.service import serving_session
    from amplifier.mcp_server.transport import message_streams
    from amplifier_kit.rpc.received import RpcLimits
    from amplifier_kit.rpc.stdio import standard_streams

    async with (
        standard_streams() as (incoming, outgoing),
        serving_session(selected, tools, accepted=accepted) as service,
        message_streams(incoming, outgoing, RpcLimits()) as (received, sent),
    ):
        report_opening(service.opened, needs_provider=False)
        server = service.server()
        await server.run(received, sent, server.create_initialization_options())
