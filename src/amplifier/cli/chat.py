"""`amplifier chat`: turns of one session, typed at a terminal."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import click

from amplifier.cli._options import is_debug, session_choices, session_options

__all__ = ["chat", "run_chat"]


@click.command()
@session_options
@click.pass_context
def chat(ctx: click.Context) -> None:
    """Talk with an agent.

    What is typed while an answer comes is the next prompt. /help lists the commands, Esc stops an answer,
    Shift-Tab changes the mode, Ctrl-D ends the chat.
    """
    run_chat(ctx)


def run_chat(
    ctx: click.Context, *, resume: str | None = None, latest: bool = False
) -> None:
    """Hold a chat in a new session, in the one that `resume` names, or in the latest.

    Raises:
        click.ClickException: there is no terminal, or what it needs is not installed.
    """
    _require_chat()
    # help and wrong usage need no runtime
    from amplifier.cli._chat.chat_session import converse

    choices = session_choices(ctx)
    converse(
        choices.plan_options(),
        choices.wanted(resume=resume, latest=latest),
        choices.consent,
        backend=choices.backend,
        debug=is_debug(ctx),
    )


def _require_chat() -> None:
    if find_spec("prompt_toolkit") is None:
        # wrong usage alone names it
        from amplifier_kit.installation import install_command

        raise click.ClickException(
            f"a chat needs the package prompt_toolkit: {install_command('amplifier[cli]')};"
            " 'amplifier run PROMPT' needs none"
        )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(
            "a chat needs a terminal; 'amplifier run' reads its prompt from standard input"
        )
