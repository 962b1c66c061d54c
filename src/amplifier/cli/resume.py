"""`amplifier resume` and `amplifier continue`: resume a stored session."""

from __future__ import annotations

import sys

import click

from amplifier.cli._options import is_debug, session_choices, turn_options
from amplifier.cli._shell_completion import sessions
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
    choices = session_choices(ctx)
    if choices.needs_a_prompt:
        raise click.UsageError(
            "--output, --schema, --file, --agent and --ask-later are about one answer; give a PROMPT"
        )
    # help and wrong usage need no runtime
    from amplifier.cli._chat.chat_session import converse
    from amplifier.cli.chat import require_chat

    require_chat()
    converse(
        choices.plan_options(),
        choices.wanted(resume=session, latest=session is None),
        choices.consent,
        backend=choices.backend,
        debug=is_debug(ctx),
    )
