"""`amplifier run`: one turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from amplifier.cli._options import (
    ChosenSession,
    flag,
    is_debug,
    session_choices,
    turn_options,
)
from amplifier.cli._shell_completion import sessions

if TYPE_CHECKING:
    from amplifier.app.sessions.later_turns import LaterTurn

__all__ = ["run", "run_turn"]


@click.command()
@click.argument("prompt", required=False)
@turn_options
@click.option(
    "--resume",
    metavar="ID",
    help="Resume a stored session: its id, the beginning of it, or its name.",
    shell_complete=sessions,
)
@flag("--continue", "latest", help="Resume the latest session of this project.")
@click.pass_context
def run(
    ctx: click.Context, prompt: str | None, resume: str | None, latest: bool
) -> None:
    """Answer PROMPT and stop.

    Without PROMPT it is read from standard input; with both, what is piped in stands below PROMPT. Files that
    PROMPT mentions as @FILE are read; those that stand in what is piped in only with --mentions. Standard output
    carries only the answer. What a hook asks is asked at the terminal, whatever is piped; without a terminal it is
    denied, or waits with --ask-later. Ctrl-C stops after the running step, a second one at once.
    """
    if resume is not None and latest:
        raise click.UsageError("--resume names a session, --continue the latest one")
    run_turn(ctx, prompt, resume=resume, latest=latest)


def run_turn(
    ctx: click.Context, prompt: str | None, *, resume: str | None, latest: bool
) -> None:
    """Run one turn of a new session, of the one that `resume` names, or of the latest.

    Raises:
        click.UsageError: the options contradict each other, or there is no prompt.
    """
    # with the runtime: help and wrong usage need neither
    from amplifier.cli._stdin import read_prompt

    choices = session_choices(ctx)
    given = read_prompt(prompt, mentions=choices.mentions, files=choices.file)
    if choices.ask_later:
        _refuse_beside_ask_later(choices)
    if choices.agent is not None:
        _refuse_beside_agent(choices, is_resumed=latest or resume is not None)
        from amplifier.cli._agent_turns import answer_by_agent

        answer_by_agent(
            given,
            choices.agent,
            form=choices.output,
            backend=choices.backend,
            debug=is_debug(ctx),
            consent=choices.consent,
        )
        return
    from amplifier.cli._turns import answer, read_schema

    schema = None if choices.schema is None else read_schema(choices.schema)
    later: LaterTurn | None = None
    if choices.ask_later:
        from amplifier.app.sessions.later_turns import LaterTurn  # few turns wait

        later = LaterTurn.of(
            given.shown, given.typed, schema=schema, accepted=choices.consent.accepted
        )
    answer(
        given,
        choices.plan_options(),
        form=choices.output,
        backend=choices.backend,
        debug=is_debug(ctx),
        consent=choices.consent,
        wanted=choices.wanted(resume=resume, latest=latest),
        schema=schema,
        later=later,
    )


def _refuse_beside_agent(choices: ChosenSession, *, is_resumed: bool) -> None:
    if is_resumed or choices.schema is not None or choices.says_what_it_is_made_of:
        raise click.UsageError(
            "--agent says all of the session: use it without --schema, --resume and what else it is made of"
        )


def _refuse_beside_ask_later(choices: ChosenSession) -> None:
    """Refuse what leaves nothing to ask, or nowhere to store a question."""
    if choices.yes or choices.keep is False or choices.agent is not None:
        raise click.UsageError(
            "--ask-later needs a stored session that asks: use it without --yes, --no-keep and --agent"
        )
