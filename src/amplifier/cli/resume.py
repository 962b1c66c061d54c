"""`amplifier resume` and `amplifier continue`: resume a stored session."""

from __future__ import annotations

import sys

import click

from amplifier.cli._options import session_choices, turn_options
from amplifier.cli._shell_completion import sessions
from amplifier.cli.chat import run_chat
from amplifier.cli.run import run_turn

__all__ = ["continue_", "resume"]


@click.command()
@click.argument("session", shell_complete=sessions)
@click.argument("prompt", required=False)
@turn_options
@click.pass_context
def resume(ctx: click.Context, session: str, prompt: str | None) -> None:
    """Resume SESSION: its id, the beginning of it, or its name.

    With PROMPT, or one that is piped in, one turn runs as with `amplifier run`; else a chat begins.
    """
    _go_on(ctx, session, prompt)


@click.command("continue")
@click.argument("prompt", required=False)
@turn_options
@click.pass_context
def continue_(ctx: click.Context, prompt: str | None) -> None:
    """Resume the latest session of this project.

    With PROMPT, or one that is piped in, one turn runs as with `amplifier run`; else a chat begins.
    """
    _go_on(ctx, None, prompt)


def _go_on(ctx: click.Context, session: str | None, prompt: str | None) -> None:
    """Resume a session, `None` for the latest: with a turn, or a chat."""
    if prompt is not None or not sys.stdin.isatty():
        run_turn(ctx, prompt, resume=session, latest=session is None)
        return
    if session_choices(ctx).needs_a_prompt:
        raise click.UsageError(
            "--output, --schema, --file, --agent and --ask-later are about one answer; give a PROMPT"
        )
    run_chat(ctx, resume=session, latest=session is None)
