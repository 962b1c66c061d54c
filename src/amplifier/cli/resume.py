"""`amplifier resume` and `amplifier continue`: a stored session goes on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from amplifier.cli._options import debug_option, is_debug, session_options

if TYPE_CHECKING:
    from amplifier.app.plans import PlanOptions
    from amplifier.cli._opening import Wanted

__all__ = ["continue_", "resume"]


@click.command()
@click.argument("session")
@click.argument("prompt", required=False)
@session_options
@debug_option
@click.pass_context
def resume(
    ctx: click.Context,
    session: str,
    prompt: str | None,
    profile: str | None,
    keep: bool | None,  # noqa: ARG001  # a session that is stored is kept
    provider: str | None,
    model: str | None,
    tool: str | None,
    plan: Path | None,
    backend: str,
) -> None:
    """Go on with SESSION: its id, the beginning of it, or its name.

    With PROMPT, or one that is piped in, one turn runs; else a chat begins.
    """
    from amplifier.app.plans import PlanOptions  # help and wrong usage need no runtime
    from amplifier.cli._opening import Wanted

    options = PlanOptions(profile=profile, provider=provider, model=model, first_tool=tool, file=plan)
    _go_on(ctx, options, Wanted(resume=session), prompt, backend)


@click.command("continue")
@click.argument("prompt", required=False)
@session_options
@debug_option
@click.pass_context
def continue_(
    ctx: click.Context,
    prompt: str | None,
    profile: str | None,
    keep: bool | None,  # noqa: ARG001  # a session that is stored is kept
    provider: str | None,
    model: str | None,
    tool: str | None,
    plan: Path | None,
    backend: str,
) -> None:
    """Go on with the latest session of this project.

    With PROMPT, or one that is piped in, one turn runs; else a chat begins.
    """
    from amplifier.app.plans import PlanOptions  # help and wrong usage need no runtime
    from amplifier.cli._opening import Wanted

    options = PlanOptions(profile=profile, provider=provider, model=model, first_tool=tool, file=plan)
    _go_on(ctx, options, Wanted(latest=True), prompt, backend)


def _go_on(ctx: click.Context, options: PlanOptions, wanted: Wanted, prompt: str | None, backend: str) -> None:
    if prompt is None and sys.stdin.isatty():
        from amplifier.cli._conversation import converse
        from amplifier.cli.chat import require_chat

        require_chat()
        converse(options, wanted, backend=backend, debug=is_debug(ctx))
        return
    from amplifier.cli._stdin import read_prompt
    from amplifier.cli._turns import answer

    answer(read_prompt(prompt), options, form="text", backend=backend, debug=is_debug(ctx), wanted=wanted)
