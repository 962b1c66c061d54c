"""`amplifier run`: one turn."""

from __future__ import annotations

from pathlib import Path

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

__all__ = ["run"]


@click.command()
@click.argument("prompt", required=False)
@session_options
@click.option(
    "--resume",
    metavar="ID",
    help="Resume a stored session: its id, the beginning of it, or its name.",
    shell_complete=sessions,
)
@click.option(
    "--output",
    type=click.Choice(["text", "json", "ndjson"]),
    default="text",
    show_default=True,
    help="The answer as it comes, one JSON object at the end, or a line of JSON for each event.",
)
@click.option(
    "--schema",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The JSON Schema of the answer: it is JSON that fits, or the command fails.",
)
@click.option(
    "--agent",
    metavar="MODULE:NAME",
    help="The Agent that answers, by the Python module that has it; no session is stored.",
)
@mentions_option
@current_plan_option
@debug_option
@click.pass_context
def run(
    ctx: click.Context,
    prompt: str | None,
    resume: str | None,
    output: str,
    schema: Path | None,
    agent: str | None,
    mentions: bool,
) -> None:
    """Answer PROMPT and stop.

    Without PROMPT it is read from standard input; with both, what is piped in stands below PROMPT. Files that
    PROMPT mentions as @FILE are read; those that stand in what is piped in only with --mentions. Standard output
    carries only the answer. What a hook asks is asked at the terminal, whatever is piped; without a terminal it is
    denied. Ctrl-C stops after the running step, a second one at once.
    """
    # with the runtime: help and wrong usage need neither
    from amplifier.cli._stdin import read_prompt

    given = read_prompt(prompt, mentions=mentions)
    choices = session_choices(ctx)
    if agent is not None:
        from amplifier.cli._agent_turns import answer_by_agent

        if resume is not None or schema is not None or choices.says_what_it_is_made_of:
            raise click.UsageError(
                "--agent says all of the session: use it without --schema, --resume and what else it is made of"
            )
        answer_by_agent(
            given,
            agent,
            form=output,
            backend=choices.backend,
            debug=is_debug(ctx),
            consent=choices.consent,
        )
        return
    from amplifier.cli._turns import answer

    answer(
        given,
        choices.plan_options(),
        form=output,
        backend=choices.backend,
        debug=is_debug(ctx),
        consent=choices.consent,
        wanted=choices.wanted(resume=resume),
        schema=schema,
    )
