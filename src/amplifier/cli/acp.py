"""`amplifier acp`: an editor drives sessions over standard input and output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from amplifier.cli._options import (
    current_plan_option,
    is_debug,
    serving_options,
    session_choices,
)

if TYPE_CHECKING:
    from amplifier.acp import AcpAgent
    from amplifier.cli._interrupts import Interrupts

__all__ = ["acp"]


@click.command()
@serving_options
@current_plan_option
@click.pass_context
def acp(ctx: click.Context) -> None:
    """Speak the Agent Client Protocol with an editor.

    The editor starts it, opens sessions in its folders, and asks the person what has to be asked. Standard output
    carries the protocol alone; the log goes to standard error.
    """
    choices = session_choices(ctx)
    if choices.yes:
        raise click.UsageError("--yes: an editor asks the person; use --accept-edits")
    from functools import partial

    from amplifier.acp import AcpAgent
    from amplifier.cli._interrupts import run_interruptible
    from amplifier.cli._logs import configure_logs

    configure_logs(debug=is_debug(ctx))
    agent = AcpAgent(
        choices.plan_options(),
        choices.keep,
        accept_edits=choices.accept_edits,
        with_current_plan=choices.with_current_plan,
    )
    run_interruptible(partial(_serve, agent), choices.backend)


async def _serve(agent: AcpAgent, _: Interrupts) -> None:
    from amplifier_kit.rpc.stdio import standard_streams

    async with standard_streams() as (incoming, outgoing):
        await agent.serve(incoming, outgoing)
