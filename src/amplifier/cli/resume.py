"""`amplifier resume` and `amplifier continue`: resume a stored session."""

from __future__ import annotations

import sys

import click

from amplifier.cli._options import (
    current_plan_option,
    debug_option,
    is_debug,
    mentions_option,
    session_choices,
    session_options,
)
from amplifier.cli._shell_completion import sessions

__all__ = ["continue_", "resume"]


@click.command()
@click.argument("session", shell_complete=sessions)
@click.argument("prompt", required=False)
@session_options
@mentions_option
@current_plan_option
@debug_option
@click.pass_context
def resume(
    ctx: click.Context, session: str, prompt: str | None, mentions: bool
) -> None:
    """Resume SESSION: its id, the beginning of it, or its name.

    With PROMPT, or one that is piped in, one turn runs; else a chat begins.
    """
    _go_on(ctx, session, prompt, mentions=mentions)


@click.command("continue")
@click.argument("prompt", required=False)
@session_options
@mentions_option
@current_plan_option
@debug_option
@click.pass_context
def continue_(ctx: click.Context, prompt: str | None, mentions: bool) -> None:
    """Resume the latest session of this project.

    With PROMPT, or one that is piped in, one turn runs; else a chat begins.
    """
    _go_on(ctx, None, prompt, mentions=mentions)


def _go_on(
    ctx: click.Context, session: str | None, prompt: str | None, *, mentions: bool
) -> None:
    """Resume a session, `None` for the latest: with a turn, or a chat."""
    choices = session_choices(ctx)
    wanted = choices.wanted(resume=session, latest=session is None)
    if prompt is None and sys.stdin.isatty():
        # help and wrong usage need no runtime
        from amplifier.cli._chat.chat_session import converse
        from amplifier.cli.chat import require_chat

        require_chat()
        converse(
            choices.plan_options(),
            wanted,
            choices.consent,
            backend=choices.backend,
            debug=is_debug(ctx),
        )
        return
    from amplifier.cli._stdin import read_prompt
    from amplifier.cli._turns import answer

    answer(
        read_prompt(prompt, mentions=mentions),
        choices.plan_options(),
        form="text",
        backend=choices.backend,
        debug=is_debug(ctx),
        consent=choices.consent,
        wanted=wanted,
    )
